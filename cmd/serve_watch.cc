#include "cmd/serve_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/error.h"
#include "cmd/serve_daemon.h"

namespace tgi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Who ran as long as this has not died of what it was started with.
constexpr std::chrono::seconds kRanWell{60};

std::string models_beside(const ipc::Status& status) {
  std::string out;
  for (const ipc::OtherModelStatus& other : status.others) {
    const ipc::ModelStatus* const known = other.known();
    if (known == nullptr) continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", other.name, known->name);
  }
  return out;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit status {}", WEXITSTATUS(status));
}

}  // namespace

ServeWatch::ServeWatch(ServeWatchOptions options)
    : options_(std::move(options)),
      over_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      client_({.socket_path = options_.socket_path, .cancel_fd = over_.get()}),
      daemon_(options_.daemon),
      seen_(options_.daemon),
      model_(options_.model),
      started_at_(Clock::now()),
      last_model_(options_.model),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

ServeWatch::~ServeWatch() {
  thread_.request_stop();
  const uint64_t one = 1;
  (void)!::write(over_.get(), &one, sizeof one);
}

std::string ServeWatch::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void ServeWatch::note_model(const std::string& model) {
  const std::lock_guard lock(mutex_);
  last_model_ = model;
}

void ServeWatch::set_trouble(std::string trouble) {
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(trouble);
}

bool ServeWatch::wait(const std::stop_token& stop, milliseconds time) const {
  pollfd over{.fd = over_.get(), .events = POLLIN, .revents = 0};
  ::poll(&over, 1, static_cast<int>(time.count()));
  return !stop.stop_requested();
}

void ServeWatch::run(const std::stop_token& stop) {
  while (wait(stop, options_.period)) {
    try {
      see_death();
      if (!look() && is_dead_ && Clock::now() >= next_start_) start_again();
    } catch (const std::exception& error) {
      if (stop.stop_requested()) return;
      options_.on_event(true, fmt::format("watching the daemon: {}", error.what()));
    }
  }
}

// The end of the daemon that was started by this process.
void ServeWatch::see_death() {
  if (daemon_ == 0) return;
  int status = 0;
  const pid_t ended = ::waitpid(daemon_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return;
  daemon_ = 0;
  if (ended < 0) return;  // no child of this process: somebody else's
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    options_.on_event(false, "the daemon was told to stop, and is not started again");
    set_trouble("the daemon was told to stop; `tgi load` starts one");
    return;
  }
  if (Clock::now() - started_at_ > kRanWell) num_starts_ = 0;
  is_dead_ = true;
  set_next_start();
  const std::string how =
      fmt::format("the daemon {} and is being started again", how_it_ended(status));
  options_.on_event(true, how);
  set_trouble(how);
}

// Each once. Whether it is a child of this process, waiting for it tells.
void ServeWatch::adopt(pid_t daemon) {
  if (daemon == seen_) return;
  daemon_ = seen_ = daemon;
}

void ServeWatch::set_next_start() {
  const auto factor = int64_t{1} << std::min(num_starts_, 20);
  next_start_ = Clock::now() + std::min(options_.first_wait * factor, options_.longest_wait);
}

// Who loaded or named them does not matter: they are what requests ask for.
void ServeWatch::note_beside(const ipc::Status& status) {
  has_looked_ = true;
  loaded_beside_.clear();
  on_demand_.clear();
  stays_ = {{"", status.stay}};
  for (const ipc::OtherModelStatus& other : status.others) {
    const ipc::ModelStatus* const known = other.known();
    stays_[other.name] = other.stay;
    if (other.model) {
      loaded_beside_.push_back({other.name, other.model->name});
    } else if (known != nullptr) {
      on_demand_.push_back({other.name, known->name});
    } else if (other.phase == "not loaded") {
      on_demand_.push_back({other.name, other.path});
    }
  }
}

// Whether there is a daemon with a model, whoever started it.
bool ServeWatch::look() {
  std::optional<ipc::Status> status;
  try {
    status = client_.status();
  } catch (const Error&) {
    return false;
  }
  adopt(static_cast<pid_t>(status->pid));
  if (status->known() == nullptr) return false;
  if (!trouble().empty() || status->known()->name != model_) {
    take(*status);
    return true;
  }
  note_beside(*status);
  if (models_beside(*status) != beside_) {
    beside_ = models_beside(*status);
    if (options_.on_model) options_.on_model(*status);
    options_.on_event(false, beside_.empty() ? fmt::format("the only model is now {}", model_)
                                             : fmt::format("beside it are now {}", beside_));
  }
  return true;
}

void ServeWatch::take(const ipc::Status& status) {
  const bool is_new = !trouble().empty();
  is_dead_ = false;
  set_trouble("");
  model_ = status.known()->name;
  note_model(model_);
  beside_ = models_beside(status);
  note_beside(status);
  if (options_.on_model) options_.on_model(status);
  options_.on_event(
      false, fmt::format("{} {}", is_new ? "the daemon is back with" : "the model is now", model_));
}

void ServeWatch::start_again() {
  ++num_starts_;
  started_at_ = Clock::now();
  try {
    ServeOptions serve = options_.serve;
    if (has_looked_) {
      serve.beside = loaded_beside_;
      serve.on_demand = on_demand_;
      serve.stays = stays_;
    }
    {
      const std::lock_guard lock(mutex_);
      if (!last_model_.empty()) serve.model_path = last_model_;
    }
    const ipc::Status status = prepare_served_model(client_, serve, {});
    adopt(static_cast<pid_t>(status.pid));
    take(status);
  } catch (const ipc::Stopped&) {
    // The watch is over.
  } catch (const Error& error) {
    set_next_start();
    const std::string how =
        fmt::format("the daemon can't be started again (try {}): {}", num_starts_, error.what());
    options_.on_event(true, how);
    set_trouble(how);
  }
}

}  // namespace tgi
