// The daemon's I/O: one thread, one epoll loop for the listening socket, all sessions, the outbox
// and signals.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mailbox.h"
#include "base/unique_fd.h"
#include "daemon/access.h"
#include "daemon/dispatch.h"
#include "daemon/jobs.h"
#include "daemon/log_file.h"
#include "daemon/model_host.h"
#include "daemon/model_loader.h"
#include "daemon/options.h"
#include "daemon/progress_watch.h"
#include "daemon/service_manager.h"
#include "daemon/session.h"
#include "ipc/line_socket.h"

namespace tgi::daemon {

class Server {
 public:
  // Listens at once, so that clients can ask how loading goes: at the socket a service manager
  // hands over, else at the one of the options. Throws what listen_unix throws.
  // Blocks SIGINT, SIGTERM and SIGPIPE for the process: make it before any thread.
  explicit Server(const Options& options);
  ~Server();

  // Loads the model of the options in the background, serves until SIGTERM, SIGINT or a stop
  // request, then drains. Returns the exit status.
  int run();

 private:
  void begin_models();
  void enroll_installed();
  void accept_clients();
  void accept(UniqueFd client);
  void accept_later(const std::exception& reason);
  bool all_get_on();
  void tell_manager();
  void serve(Session& session, uint32_t events);
  void deliver();
  void settle(Session& session);
  void close(uint64_t id);
  void tell_engine(std::function<void()> message);
  void tell_engines_again();
  void watch(int fd, uint64_t key, uint32_t events, bool known);
  void take_signal();
  void begin_stop();
  void look_after_sessions();
  int timeout_ms() const;
  bool is_finished();

  Options options_;
  ServiceManager manager_;
  std::map<std::string, ProgressWatch> progress_;  // by the model's name
  bool gets_on_ = true;                            // the engine does, as far as progress_ saw
  LogFile log_file_;
  UniqueFd signals_;
  std::optional<UniqueFd> inherited_;  // moved into listener_; whether there was one stays known
  AccessRules access_;
  ipc::UnixListener listener_;
  UniqueFd epoll_;
  Mailbox<Outgoing> outbox_;
  ModelHost models_;
  std::optional<std::chrono::milliseconds> look_again_in_;  // for models whose time is over
  std::unordered_map<uint64_t, std::unique_ptr<Session>> sessions_;
  std::vector<Outgoing> delivered_;
  // Calls for engines that had no room for them.
  std::vector<std::function<void()>> untold_;
  uint64_t last_session_;
  // Set: accepting failed, and is tried again then.
  std::optional<std::chrono::steady_clock::time_point> accept_again_at_;
  bool stopping_ = false;
  bool stopped_hard_ = false;
  std::atomic<bool> device_lost_{false};
  std::chrono::steady_clock::time_point stop_deadline_;
  std::unique_ptr<Jobs> intake_jobs_;
  std::unique_ptr<Jobs> merge_jobs_;
  std::unique_ptr<Jobs> load_jobs_;
  std::unique_ptr<ModelLoader> loader_;
  std::unique_ptr<QuantizeJobs> quantize_jobs_;
  std::unique_ptr<Services> services_;
  std::jthread drainer_;
};

}  // namespace tgi::daemon
