#include "cmd/http/generation.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "cmd/http/api_error.h"

namespace tgi::http {
namespace {

double seconds(double milliseconds) {
  return milliseconds / 1000;
}

}  // namespace

// Turns what the daemon and its socket throw into what the client is told.
template <typename Ask>
auto Generation::guarded(Ask ask) {
  try {
    return ask();
  } catch (const ipc::Stopped& stopped) {
    if (stopped.why() == ipc::Stopped::Why::kPeerGone) throw ClientGone();
    throw ApiError(503, "shutting_down", "the server is shutting down; the answer is cut off here");
  } catch (const Error& error) {
    throw daemon_error(error, started_);
  }
}

Generation::Generation(std::shared_ptr<Scope> scope, std::vector<ipc::GenerateRequest> asked)
    : scope_(std::move(scope)) {
  ipc::ClientOptions options = scope_->service().daemon;
  options.peer_fd = scope_->peer_fd();
  guarded([&] {
    for (ipc::GenerateRequest& request : asked) {
      request.announce = true;
      request.model = scope_->daemon_model();
      exchanges_.push_back(
          std::make_unique<ipc::Exchange>(options, ipc::kGenerate, ipc::to_json(request)));
    }
    return 0;
  });
}

std::optional<Generation::Event> Generation::next(int timeout_ms) {
  if (next_kept_ < kept_.size()) return std::move(kept_[next_kept_++]);
  return receive(timeout_ms);
}

std::optional<Generation::Event> Generation::receive(int timeout_ms) {
  std::optional<Event> event = guarded([&]() -> std::optional<Event> {
    if (exchanges_.size() != 1) return poll_all(timeout_ms);
    std::optional<ipc::Reply> reply = exchanges_.front()->next(timeout_ms);
    if (!reply) return std::nullopt;
    return Event{.prompt = 0, .reply = std::move(*reply)};
  });
  return take(std::move(event));
}

std::optional<Generation::Event> Generation::take(std::optional<Event> event) {
  if (!event) return std::nullopt;
  note(event->reply);
  if (event->reply.done) exchanges_[event->prompt].reset();
  return event;
}

void Generation::begin_round() {
  next_to_read_ = 0;
}

std::optional<Generation::Event> Generation::try_next() {
  if (next_kept_ < kept_.size()) return std::move(kept_[next_kept_++]);
  return take(guarded([&]() -> std::optional<Event> {
    for (; next_to_read_ <= exchanges_.size(); ++next_to_read_) {
      // What was read before goes first; then one more exchange is read from.
      const size_t first = next_to_read_ == 0 ? 0 : next_to_read_ - 1;
      const size_t end = next_to_read_ == 0 ? exchanges_.size() : next_to_read_;
      for (size_t prompt = first; prompt < end; ++prompt) {
        if (exchanges_[prompt] == nullptr) continue;
        std::optional<ipc::Reply> reply = exchanges_[prompt]->next_read();
        if (reply) return Event{.prompt = prompt, .reply = std::move(*reply)};
      }
      if (next_to_read_ < exchanges_.size() && exchanges_[next_to_read_] != nullptr) {
        exchanges_[next_to_read_]->read();
      }
    }
    return std::nullopt;
  }));
}

std::vector<int> Generation::fds() const {
  std::vector<int> out;
  for (const auto& exchange : exchanges_) {
    if (exchange != nullptr) out.push_back(exchange->fd());
  }
  return out;
}

std::optional<Generation::Event> Generation::poll_all(int timeout_ms) {
  for (;;) {
    for (size_t i = 0; i < exchanges_.size(); ++i) {
      const size_t prompt = (turn_ + i) % exchanges_.size();
      if (exchanges_[prompt] == nullptr) continue;
      if (std::optional<ipc::Reply> reply = exchanges_[prompt]->try_next()) {
        turn_ = prompt + 1;
        return Event{.prompt = prompt, .reply = std::move(*reply)};
      }
    }
    std::vector<pollfd> fds = {
        {.fd = scope_->peer_fd(), .events = POLLRDHUP, .revents = 0},
        {.fd = scope_->service().daemon.cancel_fd, .events = POLLIN, .revents = 0}};
    for (const auto& exchange : exchanges_) {
      if (exchange != nullptr)
        fds.push_back({.fd = exchange->fd(), .events = POLLIN, .revents = 0});
    }
    const int count = ::poll(fds.data(), fds.size(), timeout_ms);
    if (count == 0) return std::nullopt;
    if (count < 0 && errno != EINTR) throw Error(Code::kInternal, "poll failed");
    if (fds[0].revents != 0) throw ipc::Stopped(ipc::Stopped::Why::kPeerGone);
    if (fds[1].revents != 0) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
  }
}

void Generation::note(const ipc::Reply& reply) {
  RequestRecord& record = scope_->record();
  const auto add = [](std::optional<int64_t>& total, int64_t count) {
    total = total.value_or(0) + count;
  };
  if (reply.accepted) {
    ++num_accepted_;
    num_prompt_characters_ += reply.accepted->num_prompt_characters;
    record.validation_s = scope_->elapsed_s();
    add(record.num_prompt_tokens, reply.accepted->num_prompt_tokens);
    record.max_new_tokens = reply.accepted->max_new_tokens;
  }
  if (reply.token) started_ = true;
  if (!reply.done) return;
  ++num_done_;
  const ipc::DoneEvent& done = *reply.done;
  const ipc::Timings& times = done.timings;
  // The accepted event came a little later than the queue began.
  const double began_s = scope_->elapsed_s() - seconds(times.total_ms);
  record.validation_s = std::max(0.0, std::min(record.validation_s.value_or(began_s), began_s));
  record.queue_s = seconds(times.queue_ms);
  record.prefill_s = seconds(times.time_to_first_token_ms - times.queue_ms);
  record.decode_s = seconds(times.decode_ms);
  record.inference_s = seconds(times.total_ms - times.queue_ms);
  add(record.num_cached_tokens, done.num_cached_tokens);
  add(record.num_generated_tokens, done.best.num_generated_tokens);
  add(record.num_skipped_tokens, done.best.num_skipped_tokens);
  for (const auto& other : done.others) {
    add(record.num_generated_tokens, other.num_generated_tokens);
    add(record.num_skipped_tokens, other.num_skipped_tokens);
  }
  record.seed = done.seed;
}

std::vector<ipc::DoneEvent> Generation::wait() {
  std::vector<ipc::DoneEvent> out(exchanges_.size());
  while (!is_done()) {
    std::optional<Event> event = next(-1);
    if (event->reply.done) out[event->prompt] = std::move(*event->reply.done);
  }
  return out;
}

void Generation::wait_until_accepted() {
  while (num_accepted_ < exchanges_.size()) kept_.push_back(std::move(*receive(-1)));
}

Response generated_response(const Scope& scope,
                            const Generation& generation,
                            const ipc::OrderedJson& body) {
  Response response = json_response(200, body);
  response.headers = timing_headers(scope, generation.num_prompt_characters());
  return response;
}

}  // namespace tgi::http
