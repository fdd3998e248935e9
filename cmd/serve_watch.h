// Looks after the daemon behind a gateway: sees what model it has, and starts it again when it has
// died, if this gateway started it. A daemon that somebody else started is theirs; one that was
// told to stop stays so.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "cmd/serve_options.h"
#include "ipc/client.h"
#include "ipc/start_daemon.h"

namespace tgi {

struct ServeWatchOptions {
  std::string socket_path;
  ServeOptions serve;  // what a daemon is started with
  pid_t daemon = 0;    // that answers now; it is ours when it is a child of this process
  std::string model;   // that it has, as its status names it
  std::chrono::milliseconds period{250};
  // How long to wait before it is started again; doubled each time, up to the longest.
  std::chrono::milliseconds first_wait{250};
  std::chrono::milliseconds longest_wait{30'000};

  // Called on the watch's thread, when a model is another one or the daemon a new one.
  std::function<void(const ipc::Status&)> on_model;
  std::function<void(bool is_trouble, const std::string&)> on_event;
};

// Safe from any thread.
class ServeWatch {
 public:
  explicit ServeWatch(ServeWatchOptions options);
  ~ServeWatch();  // the daemon goes on

  // Why the daemon is not there just now, and what is done about it; "" when it is.
  std::string trouble() const;

  // Somebody else saw that the daemon has this model: it is the one to start a daemon with again.
  void note_model(const std::string& model);

 private:
  void run(const std::stop_token& stop);
  void see_death();
  void adopt(pid_t daemon);
  bool look();
  void start_again();
  void set_next_start();
  void take(const ipc::Status& status);
  void note_beside(const ipc::Status& status);
  void set_trouble(std::string trouble);
  bool wait(const std::stop_token& stop, std::chrono::milliseconds time) const;

  const ServeWatchOptions options_;
  const UniqueFd over_;  // an eventfd, readable when the watch is to end
  const ipc::Client client_;
  // Used by the watch's thread alone:
  pid_t daemon_ = 0;  // whose end is waited for; 0: none
  pid_t seen_ = 0;    // the last that answered
  std::string model_;
  std::string beside_;                           // the models beside it, each as NAME=PATH
  std::vector<ipc::NamedModel> loaded_beside_;   // those that come back with a new daemon
  std::vector<ipc::NamedModel> on_demand_;       // ... and those that it is to know
  std::map<std::string, ipc::ModelStay> stays_;  // ... and how long all of them stay
  bool has_looked_ = false;                      // so that these are known
  bool is_dead_ = false;                         // and is to be started again
  int num_starts_ = 0;                           // since it last ran for a while
  std::chrono::steady_clock::time_point started_at_;
  std::chrono::steady_clock::time_point next_start_;

  mutable std::mutex mutex_;
  std::string trouble_;     // guarded by mutex_, as all below
  std::string last_model_;  // as model_, whoever saw it
  std::jthread thread_;     // last: begins when all is there
};

}  // namespace tgi
