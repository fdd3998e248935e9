#include "cmd/http/stream_pump.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tgi::http {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kLookEveryMs = 500;  // at keep-alives and slow readers
constexpr int kMaxEvents = 256;

// The framing of HTTP/1.1's chunked bodies; holds what the client has not taken.
class PendingBody final : public BodyWriter {
 public:
  explicit PendingBody(int fd) : fd_(fd) {}

  bool write(std::string_view bytes) override {
    fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", bytes.size());
    pending_ += bytes;
    pending_ += "\r\n";
    return true;
  }

  bool is_empty() const { return sent_ == pending_.size(); }
  size_t num_flushed() const { return num_flushed_; }  // bytes, in all

  // Throws ClientGone.
  void flush() {
    while (!is_empty()) {
      const ssize_t count = ::send(fd_, pending_.data() + sent_, pending_.size() - sent_,
                                   MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (count < 0) throw ClientGone();
      sent_ += static_cast<size_t>(count);
      num_flushed_ += static_cast<size_t>(count);
    }
    pending_.clear();
    sent_ = 0;
  }

 private:
  const int fd_;
  std::string pending_;
  size_t sent_ = 0;  // of pending_
  size_t num_flushed_ = 0;
};

// The way of a stream that can't be framed in chunks (HTTP/1.0): on its own thread.
void run_blocking(const StreamTask& task, Generation& generation, EventWriter& events) {
  while (!generation.is_done()) {
    Generation::Event event = next_event(generation, events);
    if (generation.is_done()) task.scope->give_back_permits();
    task.on_event(event, events);
  }
  task.on_end(events);
}

bool run_task(const StreamTask& task, BodyWriter& writer) {
  EventWriter events(writer, *task.framing);
  const auto fail = [&](const ApiError& error) { task.on_error(error, events); };
  std::shared_ptr<Generation> generation;
  const auto start = [&] { generation = task.start(); };
  if (!run_stream(*task.scope, start, fail)) return false;
  if (generation == nullptr) return true;  // the client was told why
  if (const int fd = writer.chunked_fd(); fd >= 0) {
    return task.scope->service().pumps->next().run(task, generation, fd);
  }
  return run_stream(
      *task.scope, [&] { run_blocking(task, *generation, events); }, fail);
}

}  // namespace

Response stream_response(StreamTask task, int64_t num_prompt_characters) {
  Response response = event_stream(*task.scope, *task.framing, num_prompt_characters);
  response.stream = [task = std::move(task)](BodyWriter& writer) { return run_task(task, writer); };
  return response;
}

class StreamPump::Job {
 public:
  Job(const StreamTask& task, std::shared_ptr<Generation> generation, int client_fd)
      : task_(task), generation_(std::move(generation)), client_fd_(client_fd), body_(client_fd) {}

  // Says what the daemon has said since, as far as the client takes it.
  void step() {
    guarded([this] {
      if (!has_ended_ && body_.is_empty()) {
        generation_->begin_round();
        while (std::optional<Generation::Event> event = generation_->try_next()) {
          if (generation_->is_done()) task_.scope->give_back_permits();
          task_.on_event(*event, events_);
        }
        if (generation_->is_done()) end();
      }
    });
  }

  void fail(const ApiError& error) {
    if (has_ended_) return;
    guarded([&] { throw error; });
  }

  void client_left() {
    task_.scope->client_left();
    is_over_ = true;
  }

  void keep_alive() {
    guarded([this] { events_.keep_alive(); });
  }

  bool is_over() const { return is_over_ || (has_ended_ && body_.is_empty()); }
  bool is_blocked() const { return !body_.is_empty(); }
  bool has_ended() const { return has_ended_; }
  bool has_lost_client() const { return is_over_; }
  Clock::time_point last_progress() const { return last_progress_; }
  int client_fd() const { return client_fd_; }
  const Generation& generation() const { return *generation_; }

  bool is_ready = false;        // in the list of those to be stepped
  bool watches_daemon = false;  // its exchanges are in the epoll
  std::binary_semaphore finished{0};
  std::shared_ptr<Job> self;  // while the pump has it

 private:
  void end() {
    has_ended_ = true;
    task_.on_end(events_);
  }

  template <typename Work>
  void guarded(Work work) {
    const size_t before = body_.num_flushed();
    try {
      run_stream(*task_.scope, work, [this](const ApiError& error) {
        has_ended_ = true;
        task_.on_error(error, events_);
      });
      body_.flush();
    } catch (const ClientGone&) {
      return client_left();
    }
    if (body_.num_flushed() > before) last_progress_ = Clock::now();
  }

  const StreamTask& task_;
  const std::shared_ptr<Generation> generation_;
  const int client_fd_;
  PendingBody body_;
  EventWriter events_{body_, *task_.framing};
  bool has_ended_ = false;                          // all is said
  bool is_over_ = false;                            // without its client
  Clock::time_point last_progress_ = Clock::now();  // the client took something
};

StreamPump::StreamPump(int cut_off_fd, milliseconds write_timeout)
    : write_timeout_(write_timeout),
      cut_off_fd_(cut_off_fd),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      last_look_(Clock::now()) {
  if (!watch(wake_.get(), EPOLLIN, nullptr, EPOLL_CTL_ADD) ||
      !watch(cut_off_fd, EPOLLIN, nullptr, EPOLL_CTL_ADD)) {
    throw Error(Code::kInternal, fmt::format("epoll: {}", std::strerror(errno)));
  }
  thread_ = std::jthread([this] { loop(); });
}

StreamPump::~StreamPump() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

bool StreamPump::watch(int fd, uint32_t events, Job* job, int operation) const {
  epoll_event event{};
  event.events = events;
  event.data.ptr = job;
  return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

bool StreamPump::run(const StreamTask& task,
                     std::shared_ptr<Generation> generation,
                     int client_fd) {
  const auto job = std::make_shared<Job>(task, std::move(generation), client_fd);
  job->self = job;
  {
    const std::lock_guard lock(mutex_);
    new_jobs_.push_back(job.get());
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  job->finished.acquire();
  return !job->has_lost_client();
}

void StreamPump::take_new_jobs() {
  uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  pollfd cut{.fd = cut_off_fd_, .events = POLLIN, .revents = 0};
  if (!cut_off_ && ::poll(&cut, 1, 0) > 0) {
    cut_off_ = true;
    watch(cut_off_fd_, 0, nullptr, EPOLL_CTL_DEL);
  }
  const std::lock_guard lock(mutex_);
  for (Job* job : new_jobs_) {
    jobs_.insert(job);
    if (!watch(job->client_fd(), EPOLLRDHUP, job, EPOLL_CTL_ADD)) job->client_left();
    make_ready(*job);  // something may have come before it was watched
  }
  new_jobs_.clear();
}

void StreamPump::make_ready(Job& job) {
  if (!job.is_ready) ready_.push_back(&job);
  job.is_ready = true;
}

void StreamPump::loop() {
  std::array<epoll_event, kMaxEvents> events{};
  for (;;) {
    const int timeout_ms = jobs_.empty() ? -1 : kLookEveryMs;
    const int count = ::epoll_wait(epoll_.get(), events.data(), kMaxEvents, timeout_ms);
    bool is_woken = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      auto* const job = static_cast<Job*>(event.data.ptr);
      is_woken = is_woken || job == nullptr;
      if (job == nullptr || job->is_over()) continue;
      if ((event.events & EPOLLRDHUP) != 0) job->client_left();
      make_ready(*job);
    }
    if (is_woken) take_new_jobs();
    if (cut_off_) {
      for (Job* job : jobs_) {
        job->fail(ApiError(503, "shutting_down",
                           "the server is shutting down; the answer is cut off here"));
        make_ready(*job);
      }
    }
    look_at_clock();
    for (size_t i = 0; i < ready_.size(); ++i) settle(*ready_[i]);  // settling may add to them
    ready_.clear();
    const std::lock_guard lock(mutex_);
    if (ending_ && jobs_.empty()) return;
  }
}

// One step of a stream, and what is to be watched for the next.
void StreamPump::settle(Job& job) {
  job.is_ready = false;
  const bool was_blocked = job.is_blocked();
  if (!job.is_over()) job.step();
  if (job.is_over()) {
    for (const int fd : job.generation().fds()) watch(fd, 0, nullptr, EPOLL_CTL_DEL);
    watch(job.client_fd(), 0, nullptr, EPOLL_CTL_DEL);
    jobs_.erase(&job);
    const std::shared_ptr<Job> last = std::move(job.self);
    last->finished.release();
    return;
  }
  const bool wants_daemon = !job.is_blocked() && !job.has_ended();
  if (wants_daemon != job.watches_daemon) {
    for (const int fd : job.generation().fds()) {
      const bool done = watch(fd, EPOLLIN, &job, wants_daemon ? EPOLL_CTL_ADD : EPOLL_CTL_DEL);
      if (done || !wants_daemon) continue;
      job.fail(ApiError(500, "internal", "the stream can't be watched"));
      make_ready(job);
    }
    job.watches_daemon = wants_daemon;
  }
  if (job.is_blocked() != was_blocked || job.has_ended()) {
    watch(job.client_fd(), EPOLLRDHUP | (job.is_blocked() ? EPOLLOUT : 0U), &job, EPOLL_CTL_MOD);
  }
}

// Streams that were silent for long get a comment, clients that take nothing are given up.
void StreamPump::look_at_clock() {
  const auto now = Clock::now();
  if (now - last_look_ < milliseconds(kLookEveryMs)) return;
  last_look_ = now;
  for (Job* job : jobs_) {
    const auto silence = now - job->last_progress();
    if (job->is_blocked() ? silence < write_timeout_ : silence < milliseconds(kKeepAliveMs)) {
      continue;
    }
    job->is_blocked() ? job->client_left() : job->keep_alive();
    make_ready(*job);
  }
}

StreamPumps::StreamPumps(int count, int cut_off_fd, milliseconds write_timeout) {
  for (int i = 0; i < count; ++i) {
    pumps_.push_back(std::make_unique<StreamPump>(cut_off_fd, write_timeout));
  }
}

}  // namespace tgi::http
