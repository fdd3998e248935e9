#include "cmd/bench/socket_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor_limit.h"
#include "base/error.h"
#include "cmd/bench/prompts.h"
#include "ipc/socket_access.h"

namespace tgi::bench {
namespace {

constexpr auto kRetryAfter = std::chrono::milliseconds(5);

std::string request_line(const SocketTarget& target, const PlannedRequest& planned) {
  ipc::GenerateRequest request;
  request.prompt_ids = prompt_ids(planned.prompt, target.vocab_size);
  request.stream = true;
  request.params = target.sampling;
  request.params.max_new_tokens = planned.num_output_tokens;
  request.params.ignore_eos = true;
  request.params.use_prefix_cache = target.use_prefix_cache;
  return ipc::encode_request(ipc::kGenerate, ipc::to_json(request)) + "\n";
}

}  // namespace

struct SocketTransport::Stream {
  RequestRecord* record;
  std::string outgoing;
  std::string_view unsent;  // of outgoing
  UniqueFd fd{};
  ipc::LineReader reader{};
  bool greeted = false;
};

SocketTransport::SocketTransport(SocketTarget target, int cancel_fd)
    : target_(std::move(target)), poller_(cancel_fd) {
  raise_descriptor_limit();
}

SocketTransport::~SocketTransport() = default;

void SocketTransport::start(const PlannedRequest& request, RequestRecord& record) {
  auto stream = std::make_unique<Stream>(Stream{&record, request_line(target_, request), {}});
  stream->unsent = stream->outgoing;
  connect(std::move(stream));
}

void SocketTransport::connect(std::unique_ptr<Stream> stream) {
  try {
    stream->fd = ipc::connect_unix(target_.socket_path);
    const ipc::Peer peer = ipc::peer_of(stream->fd.get());
    if (!ipc::may_trust(peer, target_.socket_path)) {
      throw Error(Code::kUnavailable, fmt::format("the daemon at {} belongs to user {}",
                                                  target_.socket_path, peer.uid));
    }
  } catch (const Error& error) {
    if (error.code() == Code::kOverloaded) {
      waiting_.push_back(std::move(stream));
    } else {
      fail(*stream, error);
    }
    return;
  }
  const int fd = stream->fd.get();
  poller_.watch(fd, EPOLLIN);
  streams_[fd] = std::move(stream);
}

void SocketTransport::retry_waiting() {
  for (size_t i = waiting_.size(); i > 0; --i) {
    std::unique_ptr<Stream> stream = std::move(waiting_.front());
    waiting_.pop_front();
    connect(std::move(stream));
  }
}

std::vector<RequestRecord*> SocketTransport::wait(BenchClock::time_point until) {
  for (;;) {
    const auto deadline =
        waiting_.empty() ? until : std::min(until, BenchClock::now() + kRetryAfter);
    for (const epoll_event& event : poller_.wait(deadline)) {
      const auto it = streams_.find(event.data.fd);
      if (it != streams_.end()) serve(*it->second);
    }
    retry_waiting();
    if (!finished_.empty() || interrupted() || BenchClock::now() >= until) {
      return std::exchange(finished_, {});
    }
  }
}

void SocketTransport::serve(Stream& stream) {
  try {
    if (stream.greeted && !stream.unsent.empty()) write_some(stream);
    for (;;) {
      const ipc::ReadStatus status = ipc::read_into(stream.fd.get(), stream.reader);
      if (status == ipc::ReadStatus::kWouldBlock) return;
      if (status == ipc::ReadStatus::kClosed) {
        throw Error(Code::kUnavailable, "the daemon went away in the middle of the answer");
      }
      const double when_s = now_s();
      while (const auto line = stream.reader.next()) {
        if (take_line(stream, *line, when_s)) return finish(stream);
      }
    }
  } catch (const Error& error) {
    fail(stream, error);
  }
}

void SocketTransport::write_some(Stream& stream) {
  // A daemon that refuses a request before its end has said why: reading finds it.
  const bool blocked =
      ipc::write_from(stream.fd.get(), stream.unsent) == ipc::WriteStatus::kWouldBlock;
  poller_.watch(stream.fd.get(), blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

// True at the end of the answer.
bool SocketTransport::take_line(Stream& stream, const std::string& line, double when_s) {
  if (!stream.greeted) {
    const ipc::Hello hello = ipc::decode_hello(line);
    if (hello.protocol != ipc::kProtocolVersion) {
      throw Error(Code::kUnsupported, fmt::format("the daemon speaks protocol {}, this tgi {}",
                                                  hello.protocol, ipc::kProtocolVersion));
    }
    stream.greeted = true;
    write_some(stream);
    return false;
  }
  const ipc::Reply reply = ipc::decode_reply(line);
  if (reply.error) throw Error(*reply.error);
  RequestRecord& record = *stream.record;
  if (reply.token) {
    record.output_s.push_back(when_s);
    return false;
  }
  if (!reply.done) throw Error(Code::kInternal, "the daemon answered with another kind of line");
  record.num_prompt_tokens = reply.done->num_prompt_tokens;
  record.num_output_tokens = reply.done->best.num_generated_tokens;
  record.num_cached_tokens = reply.done->num_cached_tokens;
  return true;
}

void SocketTransport::finish(Stream& stream) {
  stream.record->end_s = now_s();
  stream.record->finished = true;
  finished_.push_back(stream.record);
  const int fd = stream.fd.get();
  if (fd < 0) return;
  poller_.forget(fd);
  streams_.erase(fd);
}

void SocketTransport::fail(Stream& stream, const Error& error) {
  stream.record->error_kind = code_row(error.code()).name;
  stream.record->error = error.what();
  finish(stream);
}

void SocketTransport::cancel_all() {
  for (const auto& [fd, stream] : streams_) poller_.forget(fd);
  streams_.clear();
  waiting_.clear();
}

}  // namespace tgi::bench
