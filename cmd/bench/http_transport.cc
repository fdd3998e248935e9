#include "cmd/bench/http_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/descriptor_limit.h"
#include "base/error.h"
#include "cmd/bench/http_request.h"
#include "cmd/bench/sse_parser.h"

namespace tgi::bench {
namespace {

constexpr size_t kKeptErrorBytes = 8192;

}  // namespace

struct HttpTransport::Stream final : curl::Receiver {
  HttpTransport& owner;
  curl::Transfer transfer;
  RequestRecord* record = nullptr;
  SseParser parser{};
  std::string body_of_error{};
  bool ended = false;  // the answer said so itself

  explicit Stream(HttpTransport& owner_) : owner(owner_) {
    transfer.prepare(request_settings(owner.target_, api_path(owner.target_.api, true), true),
                     *this);
  }

  bool on_body(std::string_view text) override {
    if (record->http_status == 0) record->http_status = transfer.status();
    if (record->http_status != 200) {
      const size_t room = kKeptErrorBytes - std::min(kKeptErrorBytes, body_of_error.size());
      body_of_error.append(text.substr(0, room));
      return true;
    }
    const double when_s = owner.now_s();
    try {
      parser.feed(text, [&](std::string_view data) { take_event(data, when_s); });
    } catch (const std::exception& error) {
      fail("malformed event", error.what());
      return false;
    }
    return true;
  }

  void fail(std::string kind, std::string message) {
    if (!record->error_kind.empty()) return;
    record->error_kind = std::move(kind);
    record->error = std::move(message);
  }

  void take_event(std::string_view data, double when_s) {
    const AnswerEvent event = read_event(data);
    if (event.has_output) record->output_s.push_back(when_s);
    if (event.num_prompt_tokens) record->num_prompt_tokens = event.num_prompt_tokens;
    if (event.num_output_tokens) record->num_output_tokens = event.num_output_tokens;
    if (event.num_cached_tokens) record->num_cached_tokens = event.num_cached_tokens;
    ended = ended || event.is_end;
    if (event.error.empty()) return;
    fail(event.error_kind.empty() ? "error event" : "error event " + event.error_kind, event.error);
  }
};

HttpTransport::HttpTransport(HttpTarget target, int cancel_fd)
    : target_(std::move(target)), poller_(cancel_fd), group_(*this) {
  raise_descriptor_limit();
}

HttpTransport::~HttpTransport() {
  cancel_all();
  streams_.clear();
}

HttpTransport::Stream& HttpTransport::free_stream() {
  if (!idle_.empty()) {
    Stream* stream = idle_.back();
    idle_.pop_back();
    return *stream;
  }
  return *streams_.emplace_back(std::make_unique<Stream>(*this));
}

void HttpTransport::start(const PlannedRequest& request, RequestRecord& record) {
  Stream& stream = free_stream();
  stream.record = &record;
  stream.parser = SseParser();
  stream.body_of_error.clear();
  stream.ended = false;
  stream.transfer.set_body(request_body(target_.api, target_.body,
                                        prompt_text(request.prompt, target_.words),
                                        request.num_output_tokens, true));
  group_.add(stream.transfer);
}

std::vector<RequestRecord*> HttpTransport::wait(BenchClock::time_point until) {
  for (;;) {
    const auto deadline = group_deadline_ ? std::min(until, *group_deadline_) : until;
    for (const epoll_event& event : poller_.wait(deadline)) {
      group_.act(event.data.fd, {.readable = (event.events & (EPOLLIN | EPOLLHUP)) != 0,
                                 .writable = (event.events & EPOLLOUT) != 0,
                                 .error = (event.events & EPOLLERR) != 0});
    }
    if (group_deadline_ && *group_deadline_ <= BenchClock::now()) {
      group_deadline_.reset();
      group_.act_on_time();
    }
    collect_finished();
    if (!finished_.empty() || interrupted() || BenchClock::now() >= until) {
      return std::exchange(finished_, {});
    }
  }
}

void HttpTransport::collect_finished() {
  while (const std::optional<curl::FinishedTransfer> finished = group_.next_finished()) {
    finish(static_cast<Stream&>(*finished->receiver), finished->outcome);
  }
}

void HttpTransport::finish(Stream& stream, const curl::Outcome& outcome) {
  RequestRecord& record = *stream.record;
  record.end_s = now_s();
  group_.remove(stream.transfer);
  if (record.http_status == 0) record.http_status = stream.transfer.status();
  if (!outcome.ok()) {
    stream.fail(error_kind(outcome.failure), outcome.reason);
  } else if (record.http_status != 200) {
    stream.fail(fmt::format("http {}", record.http_status),
                describe_refusal(record.http_status, stream.body_of_error));
  } else {
    try {
      stream.parser.finish([&](std::string_view data) { stream.take_event(data, record.end_s); });
    } catch (const Error& error) {
      stream.fail("malformed event", error.what());
    }
    if (!stream.ended) {
      stream.fail(record.output_s.empty() ? "no events" : "cut answer",
                  record.output_s.empty() ? "the answer is not a stream of events"
                                          : "the stream ended before the answer did");
    }
  }
  record.finished = true;
  finished_.push_back(&record);
  stream.record = nullptr;
  idle_.push_back(&stream);
}

void HttpTransport::cancel_all() {
  for (const auto& stream : streams_) {
    if (stream->record == nullptr) continue;
    group_.remove(stream->transfer);
    stream->record = nullptr;
    idle_.push_back(stream.get());
  }
}

void HttpTransport::watch(int socket, bool reading, bool writing) {
  poller_.watch(socket, (reading ? EPOLLIN : 0U) | (writing ? EPOLLOUT : 0U));
}

void HttpTransport::wake_after(std::optional<std::chrono::milliseconds> time) {
  group_deadline_.reset();
  if (time) group_deadline_ = BenchClock::now() + *time;
}

}  // namespace tgi::bench
