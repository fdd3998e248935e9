#include "tests/gateway_load/stand_in_daemon.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/gateway_load/stamp.h"
#include "tests/ipc/fake_daemon.h"

namespace tgi {
namespace {

constexpr int64_t kStartAfterNs = 100'000'000;  // lets the gateway finish with the requests
constexpr size_t kTokensPerFill = 64;
constexpr int64_t kMaxTotalTokens = int64_t{1} << 30;

ipc::Status status() {
  ipc::Status out = ready_status();
  out.pid = ::getpid();
  out.model->max_total_tokens = kMaxTotalTokens;
  out.model->max_best_of = 16;
  out.model->max_stop_sequences = 16;
  out.model->max_top_n_tokens = 20;
  out.model->has_chat_template = true;
  return out;
}

ipc::TokenEvent token_event(const std::string& text) {
  return {.index = 0,
          .token = {.id = 1234, .text = " word", .logprob = -1.25, .special = false},
          .text = text,
          .top_tokens = {}};
}

// The number of a stream is all that its prompt says.
size_t stream_of(const ipc::GenerateRequest& request) {
  std::string text = request.prompt.value_or("");
  if (request.messages) text = request.messages->at(0).at("content").get<std::string>();
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw Error(Code::kInvalidArgument, "expected a prompt with the number of a stream");
  }
  return number;
}

}  // namespace

struct StandInDaemon::Session {
  UniqueFd fd;
  uint64_t id = 0;
  ipc::LineReader reader;
  std::string out;  // not yet written: from num_written on
  size_t num_written = 0;
  bool watches_writable = false;
  bool close_when_written = false;
  size_t stream = 0;
  size_t num_tokens = 0;  // to give; 0: no stream
  size_t next_token = 0;
  int64_t due_ns = 0;
  bool unpaced = false;  // begun, and goes as fast as it can
};

StandInDaemon::StandInDaemon(const std::string& socket_path)
    : listener_(ipc::listen_unix(socket_path)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const std::string line = ipc::encode_token_event(token_event("@"));
  const size_t at = line.find('@');
  token_head_ = line.substr(0, at);
  token_tail_ = line.substr(at + 1);
  for (const int fd : {listener_.fd(), stop_.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  thread_ = std::jthread([this] {
    try {
      run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "error: the stand-in daemon: %s\n", error.what());
      std::abort();
    }
  });
}

StandInDaemon::~StandInDaemon() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void StandInDaemon::set_pace(const Pace& pace, std::function<void()> on_start) {
  const std::lock_guard lock(mutex_);
  next_pace_ = pace;
  next_on_start_ = std::move(on_start);
}

void StandInDaemon::run() {
  std::array<epoll_event, 256> events;
  for (;;) {
    timespec timeout{};
    if (!due_.empty()) {
      const int64_t left = std::max<int64_t>(due_.front().at_ns - monotonic_ns(), 0);
      timeout = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    }
    const int count = ::epoll_pwait2(epoll_.get(), events.data(), events.size(),
                                     due_.empty() ? nullptr : &timeout, nullptr);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.fd == stop_.get()) return;
      if (event.data.fd == listener_.fd()) {
        accept_all();
        continue;
      }
      const auto found = sessions_.find(event.data.fd);
      if (found == sessions_.end()) continue;
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        on_readable(*found->second);
      } else if ((event.events & EPOLLOUT) != 0) {
        flush(*found->second);
      }
    }
    write_due();
  }
}

void StandInDaemon::accept_all() {
  while (std::optional<UniqueFd> fd = listener_.accept()) {
    auto session = std::make_unique<Session>();
    session->fd = std::move(*fd);
    session->id = ++num_sessions_;
    Session& added = *session;
    epoll_event event{.events = EPOLLIN, .data = {.fd = added.fd.get()}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, added.fd.get(), &event);
    sessions_.emplace(added.fd.get(), std::move(session));
    send(added, ipc::encode_hello({}));
  }
}

void StandInDaemon::on_readable(Session& session) {
  if (ipc::read_into(session.fd.get(), session.reader) == ipc::ReadStatus::kClosed) {
    return close(session);
  }
  const int fd = session.fd.get();
  while (std::optional<std::string> line = session.reader.next()) {
    on_request(session, *line);
    if (!sessions_.contains(fd)) return;  // it left
  }
}

void StandInDaemon::on_request(Session& session, const std::string& line) {
  try {
    const ipc::Request request = ipc::decode_request(line);
    if (request.method == ipc::kGenerate) return on_generate(session, request.params);
    session.close_when_written = true;
    if (request.method == ipc::kStatus) {
      return send(session, ipc::encode_result(ipc::to_json(status())));
    }
    if (request.method == ipc::kMetrics) {
      return send(session, ipc::encode_result(ipc::to_json(std::vector<ipc::MetricFamily>{})));
    }
    throw Error(Code::kNotFound, "the stand-in has no method " + request.method);
  } catch (const Error& error) {
    session.close_when_written = true;
    send(session, ipc::encode_error(error));
  }
}

void StandInDaemon::on_generate(Session& session, const ipc::OrderedJson& params) {
  const ipc::GenerateRequest request = ipc::generate_request_from_json(params);
  if (!request.stream || !request.params.max_new_tokens) {
    throw Error(Code::kUnsupported, "the stand-in only streams, max_new_tokens tokens");
  }
  session.stream = stream_of(request);
  session.num_tokens = static_cast<size_t>(*request.params.max_new_tokens);
  waiting_.push_back(&session);
  if (request.announce) {
    send(session, ipc::encode_accepted_event({.num_prompt_tokens = 8,
                                              .num_prompt_characters = 8,
                                              .max_new_tokens = *request.params.max_new_tokens}));
  }
  start_if_all_came();
}

void StandInDaemon::start_if_all_came() {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < next_pace_.num_streams) return;
    pace_ = next_pace_;
    on_start_ = next_on_start_;
  }
  const int64_t begin = monotonic_ns() + kStartAfterNs;
  const double gap_ns = pace_.tokens_per_s > 0 ? 1e9 / pace_.tokens_per_s : 0;
  const auto count = static_cast<double>(waiting_.size());
  for (size_t i = 0; i < waiting_.size(); ++i) {
    Session& session = *waiting_[i];
    const double phase = pace_.in_step ? 0 : static_cast<double>(i) / count;
    session.due_ns = begin + std::llround(gap_ns * phase);
    due_.push_back({session.due_ns, session.fd.get(), session.id});
  }
  std::make_heap(due_.begin(), due_.end(), std::greater<>());
  waiting_.clear();
}

void StandInDaemon::write_due() {
  // What became due meanwhile waits for its turn: requests and closed sockets are seen in between.
  const int64_t now = monotonic_ns();
  if (on_start_ && !due_.empty() && due_.front().at_ns <= now) std::exchange(on_start_, nullptr)();
  while (!due_.empty() && due_.front().at_ns <= now) {
    std::pop_heap(due_.begin(), due_.end(), std::greater<>());
    const Due due = due_.back();
    due_.pop_back();
    const auto found = sessions_.find(due.fd);
    if (found == sessions_.end() || found->second->id != due.session_id) continue;
    Session& session = *found->second;
    if (pace_.tokens_per_s <= 0) {
      session.unpaced = true;
      flush(session);
      continue;
    }
    const bool is_last = session.next_token + 1 == session.num_tokens;
    session.due_ns += std::llround(1e9 / pace_.tokens_per_s);
    const Due next{session.due_ns, due.fd, due.session_id};
    write_token(session);
    flush(session);
    if (is_last) continue;
    due_.push_back(next);
    std::push_heap(due_.begin(), due_.end(), std::greater<>());
  }
}

void StandInDaemon::write_token(Session& session) {
  const bool is_last = session.next_token + 1 == session.num_tokens;
  std::string text;
  append_stamp({session.stream, session.next_token++, monotonic_ns()}, text);
  if (!is_last) {
    session.out += token_head_;
    session.out += text;
    session.out += token_tail_;
    session.out += '\n';
    return;
  }
  ipc::TokenEvent last = token_event(text);
  last.finish_reason = ipc::FinishReason::kLength;
  ipc::DoneEvent done;
  done.best.text = "the end";
  done.best.num_generated_tokens = static_cast<int64_t>(session.num_tokens);
  done.num_prompt_tokens = 8;
  session.out += ipc::encode_token_event(last) + "\n" + ipc::encode_done_event(done) + "\n";
  session.close_when_written = true;
}

void StandInDaemon::fill(Session& session) {
  for (size_t i = 0; i < kTokensPerFill && session.next_token < session.num_tokens; ++i) {
    write_token(session);
  }
}

void StandInDaemon::send(Session& session, std::string_view line) {
  session.out += line;
  session.out += '\n';
  flush(session);
}

void StandInDaemon::flush(Session& session) {
  for (;;) {
    std::string_view rest = std::string_view(session.out).substr(session.num_written);
    const ipc::WriteStatus result = ipc::write_from(session.fd.get(), rest);
    if (result == ipc::WriteStatus::kClosed) return close(session);
    session.num_written = session.out.size() - rest.size();
    if (result == ipc::WriteStatus::kWouldBlock) return watch(session, true);
    session.out.clear();
    session.num_written = 0;
    if (session.close_when_written) return close(session);
    if (!session.unpaced) return watch(session, false);
    fill(session);
  }
}

void StandInDaemon::watch(Session& session, bool writable) {
  if (session.watches_writable == writable) return;
  session.watches_writable = writable;
  epoll_event event{.events = EPOLLIN, .data = {.fd = session.fd.get()}};
  if (writable) event.events |= EPOLLOUT;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, session.fd.get(), &event);
}

void StandInDaemon::close(Session& session) {
  std::erase(waiting_, &session);
  sessions_.erase(session.fd.get());
}

}  // namespace tgi
