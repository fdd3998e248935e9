#include "daemon/server.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "daemon/installed_models.h"
#include "ipc/socket_access.h"
#include "ipc/start_daemon.h"

namespace tgi::daemon {
namespace {

// Keys of what epoll watches; sessions count up from kFirstSession.
constexpr uint64_t kListenerKey = 0;
constexpr uint64_t kOutboxKey = 1;
constexpr uint64_t kSignalKey = 2;
constexpr uint64_t kFirstSession = 16;

constexpr size_t kOutboxCapacity = size_t{1} << 20;
constexpr std::chrono::seconds kRequestDeadline{
    30};                                        // a client that connects must ask something within
constexpr std::chrono::seconds kFlushGrace{2};  // for the last lines when the daemon ends
constexpr std::chrono::seconds kTeardown{15};   // freeing the model after that, at most
constexpr int kTickMs = 250;                    // while something has a deadline
constexpr std::chrono::milliseconds kAcceptPause{200};  // after no client could be taken
constexpr off_t kMostLogBytes = off_t{64} << 20;        // and as much of what was before

UniqueFd block_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

std::vector<ModelOptions> models_at_start(const Options& options) {
  if (options.no_model) return {};
  std::vector<ModelOptions> out = {options.model};
  for (size_t i = 1; i < options.models.size(); ++i) {
    const auto& [name, model] = options.models[i];
    out.push_back(model_options(options, {.model = model, .name = name}));
  }
  return out;
}

}  // namespace

Server::Server(const Options& options)
    : options_(options),
      log_file_(ipc::daemon_log_path(), STDERR_FILENO, kMostLogBytes),
      signals_(block_signals()),
      inherited_(take_inherited_listener()),
      access_(options, inherited_.has_value()),
      listener_(inherited_ ? ipc::adopt_listener(std::move(*inherited_))
                           : ipc::listen_unix(options.socket)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      outbox_(kOutboxCapacity),
      models_(options.drain_timeout, [this] { outbox_.wake(); }),
      last_session_(kFirstSession) {
  if (!epoll_ || !signals_)
    throw Error(Code::kInternal, fmt::format("epoll: {}", std::strerror(errno)));
  options_.socket = listener_.path();
  const std::optional<gid_t> group = access_.socket_group();
  if (group && !inherited_) ipc::share_with_group(listener_.path(), *group);
  watch(listener_.fd(), kListenerKey, EPOLLIN, false);
  watch(outbox_.fd(), kOutboxKey, EPOLLIN, false);
  watch(signals_.get(), kSignalKey, EPOLLIN, false);
  intake_jobs_ = std::make_unique<Jobs>(options.num_intake_threads);
  merge_jobs_ = std::make_unique<Jobs>(1);
  load_jobs_ = std::make_unique<Jobs>(1);
  loader_ = std::make_unique<ModelLoader>(models_, *load_jobs_,
                                          ModelLoaderOptions{.max_models = options.max_models});
  quantize_jobs_ = std::make_unique<QuantizeJobs>(outbox_);
  options_.model.on_failure = [this] {
    device_lost_ = true;
    outbox_.wake();
  };
  services_ = std::make_unique<Services>(Services{.options = options_,
                                                  .access = access_,
                                                  .models = models_,
                                                  .loader = *loader_,
                                                  .intake_jobs = *intake_jobs_,
                                                  .merge_jobs = *merge_jobs_,
                                                  .load_jobs = *load_jobs_,
                                                  .quantize_jobs = *quantize_jobs_,
                                                  .outbox = outbox_,
                                                  .started_at = std::chrono::steady_clock::now(),
                                                  .socket_stays = inherited_.has_value(),
                                                  .stop = [this] { begin_stop(); }});
}

Server::~Server() {
  sessions_.clear();
  // Jobs may still hold the model and write to the outbox: they end first.
  drainer_ = {};
  load_jobs_.reset();  // what it gave out begins in the others
  intake_jobs_.reset();
  merge_jobs_.reset();
  quantize_jobs_.reset();
}

void Server::watch(int fd, uint64_t key, uint32_t events, bool known) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (::epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) {
    throw Error(Code::kInternal, fmt::format("epoll_ctl: {}", std::strerror(errno)));
  }
}

int Server::run() {
  log_info("listening", {{"socket", options_.socket}, {"version", ipc::kVersion}});
  begin_models();
  manager_.ready();
  std::array<epoll_event, 64> events{};
  while (!is_finished()) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
    if (count < 0 && errno != EINTR)
      throw Error(Code::kInternal, fmt::format("epoll_wait: {}", std::strerror(errno)));
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      switch (event.data.u64) {
        case kListenerKey:
          accept_clients();
          break;
        case kOutboxKey:
          deliver();
          break;
        case kSignalKey:
          take_signal();
          break;
        default:
          if (const auto it = sessions_.find(event.data.u64); it != sessions_.end())
            serve(*it->second, event.events);
      }
    }
    look_after_sessions();
    look_again_in_ = loader_->look(std::chrono::steady_clock::now());
    tell_manager();
    log_file_.look(std::chrono::steady_clock::now());
    // The engine has answered everybody; a device that failed needs a new process.
    if (device_lost_) begin_stop();
  }
  log_info("stopped");
  return device_lost_ ? code_row(Code::kDeviceLost).exit_status : 0;
}

// Those that are loaded at the start are announced before the first client asks.
void Server::begin_models() {
  const ModelTerms terms{.keep_alive = options_.keep_alive};
  std::vector<ModelOptions> models = models_at_start(options_);
  const auto num_loaded = options_.max_models == 0
                              ? models.size()
                              : std::min(models.size(), static_cast<size_t>(options_.max_models));
  for (size_t i = 0; i < models.size(); ++i) {
    i < num_loaded ? models_.announce_load(models[i]) : models_.enroll(models[i], terms);
  }
  for (const auto& [name, model] : options_.on_demand) {
    models_.enroll(model_options(options_, {.model = model, .name = name}), terms);
  }
  if (options_.load_installed) enroll_installed();
  models.resize(num_loaded);
  for (const ModelOptions& model : models) {
    // The service manager is told how it went.
    loader_->load(model, terms, [this](const auto&, const Error*) { outbox_.wake(); });
  }
}

// What was given by the command line goes before, under its own name.
void Server::enroll_installed() {
  for (const auto& [name, model] : installed_models()) {
    const bool is_known = std::ranges::any_of(models_.all(), [&](const auto& each) {
      return each.first == name || each.second->standing().path == model;
    });
    if (is_known) continue;
    models_.enroll(model_options(options_, {.model = model, .name = name}),
                   {.keep_alive = options_.keep_alive});
  }
}

void Server::accept_clients() {
  try {
    while (auto client = listener_.accept()) accept(std::move(*client));
    accept_again_at_.reset();
  } catch (const std::exception& error) {
    accept_later(error);
  }
}

void Server::accept(UniqueFd client) {
  ipc::Credentials who = ipc::credentials_of(client.get());
  if (!access_.may(Access::kUse, who)) {
    log_warn("refused a connection", {{"uid", who.uid}, {"pid", who.pid}});
    return;
  }
  const uint64_t id = ++last_session_;
  auto session = std::make_unique<Session>(id, std::move(client), std::move(who));
  watch(session->fd(), id, EPOLLIN | EPOLLRDHUP, false);
  Session& added = *sessions_.emplace(id, std::move(session)).first->second;
  settle(added);
}

// No descriptor or no memory left, of this process or of the machine: clients wait in the queue of
// the socket until a session ends, or for a moment when none has: what is short may be held by
// somebody else. Polling the listener meanwhile would be a busy loop.
void Server::accept_later(const std::exception& reason) {
  if (!accept_again_at_) {
    log_warn("can't accept, clients wait",
             {{"error", reason.what()}, {"sessions", sessions_.size()}});
    watch(listener_.fd(), kListenerKey, 0, true);
  }
  accept_again_at_ = std::chrono::steady_clock::now() + kAcceptPause;
}

// Each engine by itself: steps of one are no sign of life of another.
bool Server::all_get_on() {
  const auto now = std::chrono::steady_clock::now();
  bool out = true;
  std::map<std::string, ProgressWatch> watches;
  for (const auto& [name, slot] : models_.all()) {
    const auto before = progress_.find(name);
    ProgressWatch watch =
        before == progress_.end() ? ProgressWatch(options_.stall_timeout) : before->second;
    out = watch.gets_on(slot->progress(), now) && out;
    watches.emplace(name, watch);
  }
  progress_.swap(watches);
  return out;
}

void Server::tell_manager() {
  if (!manager_.is_there()) return;
  const bool got_on = std::exchange(gets_on_, all_get_on());
  if (got_on && !gets_on_) {
    log_error(
        "requests wait and no step ends; the service manager's watchdog gets no more signs "
        "of life",
        {{"stall_timeout_s", options_.stall_timeout.count() / 1000}});
  }
  if (gets_on_) manager_.alive();
  const std::string phase = stopping_ ? "draining" : models_.phase();
  const std::string detail = stopping_ ? "" : models_.phase_detail();
  std::string text = detail.empty() ? phase : fmt::format("{}: {}", phase, detail);
  // Of several, what is not as it should be is named.
  for (const auto& [name, slot] : models_.beside()) {
    const std::string other = stopping_ ? "" : slot->phase();
    if (other == "loading" || other == "failed") text += fmt::format("; {} {}", name, other);
  }
  manager_.status(text);
}

void Server::serve(Session& session, uint32_t events) {
  const uint64_t id = session.id();
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return close(id);
  try {
    if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) {
      std::string line;
      switch (session.read(line)) {
        case Session::Input::kClosed:
          return close(id);
        case Session::Input::kRequest:
          dispatch(*services_,
                   {.session = id, .client = session.client(), .ended = session.ended()},
                   std::move(line));
          break;
        case Session::Input::kNothing:
          break;
      }
    }
  } catch (const Error& error) {
    session.take({id, error});
  } catch (const std::exception& error) {
    log_error("a connection failed", {{"error", error.what()}});
    return close(id);
  }
  settle(session);
}

void Server::deliver() {
  outbox_.drain(delivered_);
  uint64_t last = 0;
  for (const Outgoing& outgoing : delivered_) {
    const auto it = sessions_.find(outgoing.session);
    if (it == sessions_.end()) {
      // The client left before the engine had its request.
      if (const auto* attached = std::get_if<Attached>(&outgoing.message)) {
        tell_engine(attached->cancel);
      }
      if (const auto* attached = std::get_if<AttachedJob>(&outgoing.message)) {
        attached->stop->request_stop();
      }
      continue;
    }
    if (const auto* decoded = std::get_if<Decoded>(&outgoing.message)) {
      decoded->act();
      continue;
    }
    try {
      it->second->take(outgoing);
    } catch (const std::exception& error) {
      // A reply that can't be put on the wire is its own request's failure alone.
      it->second->take({outgoing.session, Error(Code::kInternal, "the reply can't be encoded")});
      log_error("a reply can't be encoded", {{"error", error.what()}});
    }
    // One write for all events of a session that came together.
    if (last != 0 && last != outgoing.session) {
      if (const auto before = sessions_.find(last); before != sessions_.end())
        settle(*before->second);
    }
    last = outgoing.session;
  }
  if (const auto it = sessions_.find(last); it != sessions_.end()) settle(*it->second);
  delivered_.clear();
}

// Writes what can be written and asks epoll for what the session needs next.
void Server::settle(Session& session) {
  try {
    if (!session.flush() || session.is_over()) return close(session.id());
    uint32_t events = session.has_unsent() ? uint32_t{EPOLLOUT} : 0U;
    // After the request only the end of the connection matters, and epoll always tells that.
    if (!session.has_request()) events |= EPOLLIN | EPOLLRDHUP;
    watch(session.fd(), session.id(), events, true);
  } catch (const Error& error) {
    // The failure of this connection alone.
    log_error("a connection failed", {{"error", error.what()}});
    close(session.id());
  }
}

void Server::close(uint64_t id) {
  const auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  if (auto cancel = it->second->take_cancel()) tell_engine(std::move(cancel));
  sessions_.erase(it);
  if (accept_again_at_) accept_again_at_ = std::chrono::steady_clock::now();
}

// An engine in a long step may have a full mailbox; what it is not told would run on for nobody.
void Server::tell_engine(std::function<void()> message) {
  try {
    message();
  } catch (const std::exception&) {
    untold_.push_back(std::move(message));
  }
}

void Server::tell_engines_again() {
  std::vector<std::function<void()>> messages;
  messages.swap(untold_);
  for (std::function<void()>& message : messages) tell_engine(std::move(message));
}

void Server::take_signal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    log_info("signal", {{"number", info.ssi_signo}});
    if (stopping_) stopped_hard_ = true;
    begin_stop();
  }
}

void Server::begin_stop() {
  if (stopping_) return;
  stopping_ = true;
  stop_deadline_ = std::chrono::steady_clock::now() + options_.drain_timeout;
  models_.refuse_new_work();
  loader_->stop();
  // What has not begun is told so now. What was loading would serve nobody, and a quantize job may
  // need an hour: both end soon, and can be done again.
  intake_jobs_->drop_waiting();
  merge_jobs_->drop_waiting();
  load_jobs_->drop_waiting();
  quantize_jobs_->stop_all();
  manager_.stopping(options_.drain_timeout + kFlushGrace + kTeardown);
  log_info("draining", {{"sessions", sessions_.size()}});
}

bool Server::is_finished() {
  if (!stopping_) return false;
  if (stopped_hard_) return true;
  const auto now = std::chrono::steady_clock::now();
  if (sessions_.empty()) return true;
  if (now < stop_deadline_) return false;
  // The deadline is over: what still runs gets a final error, and a moment to be written.
  if (!drainer_.joinable()) {
    drainer_ = std::jthread([this] {
      try {
        for (const auto& [name, slot] : models_.all()) {
          for (const auto& model : slot->all_models()) {
            model->engine().refuse_all(Error(Code::kCancelled, "the daemon is stopping"));
          }
        }
      } catch (const std::exception& error) {
        log_error("can't tell the running requests that the daemon stops",
                  {{"error", error.what()}});
      }
    });
  }
  return now >= stop_deadline_ + kFlushGrace;
}

int Server::timeout_ms() const {
  if (stopping_) return 20;
  if (accept_again_at_) return static_cast<int>(kAcceptPause.count());
  if (!untold_.empty()) return kTickMs;
  for (const auto& [id, session] : sessions_) {
    if (!session->has_request() || session->has_unsent() || session->owes_acknowledgement())
      return kTickMs;
  }
  auto out = manager_.heartbeat();
  if (look_again_in_) out = std::min(out.value_or(*look_again_in_), *look_again_in_);
  constexpr int64_t kLongest = 3'600'000;  // well below what an int holds
  return out ? static_cast<int>(std::min<int64_t>(out->count(), kLongest)) : -1;
}

void Server::look_after_sessions() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<uint64_t> idle;
  std::vector<uint64_t> owing;
  for (const auto& [id, session] : sessions_) {
    const auto quiet = now - session->last_progress();
    if (!session->has_request() && quiet > kRequestDeadline) idle.push_back(id);
    if (session->has_unsent() && quiet > options_.model.slow_reader_timeout + kFlushGrace)
      idle.push_back(id);
    if (session->owes_acknowledgement()) owing.push_back(id);
  }
  for (const uint64_t id : idle) close(id);
  for (const uint64_t id : owing) {
    if (const auto it = sessions_.find(id); it != sessions_.end()) settle(*it->second);
  }
  tell_engines_again();
  if (accept_again_at_ && now >= *accept_again_at_) {
    accept_clients();
    if (!accept_again_at_) watch(listener_.fd(), kListenerKey, EPOLLIN, true);
  }
}

}  // namespace tgi::daemon
