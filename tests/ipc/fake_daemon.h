// A daemon that plays a script, for testing clients: real socket, real framing, no engine. Each
// connection runs the script on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "ipc/line_socket.h"
#include "ipc/protocol.h"
#include "tests/temp_folder.h"

namespace tgi {

class FakeSession {
 public:
  FakeSession(UniqueFd fd, const std::atomic<bool>& stopping)
      : fd_(std::move(fd)), stopping_(stopping) {}

  // Reads the request; false when the client left before sending one.
  bool receive_request();
  const ipc::Request& request() const { return request_; }

  void send(std::string_view line);  // adds the newline
  void send_text(const std::string& text, int id = 0);
  void send_done(const ipc::DoneEvent& event) { send(ipc::encode_done_event(event)); }
  void send_error(Code code, const std::string& message);

  bool client_leaves_within(int timeout_ms);
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  ipc::LineReader reader_;
  ipc::Request request_;
  const std::atomic<bool>& stopping_;
};

class FakeDaemon {
 public:
  using Script = std::function<void(FakeSession&)>;

  FakeDaemon(const std::string& socket_path,
             Script script,
             std::string hello = ipc::encode_hello({}));
  ~FakeDaemon();

  // Every request that came, as "method params".
  std::vector<std::string> requests() const;

 private:
  void serve(UniqueFd client);

  ipc::UnixListener listener_;
  const Script script_;
  const std::string hello_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;  // guarded by mutex_
  std::vector<std::thread> sessions_;  // of the accepting thread, then of the destructor
  std::thread acceptor_;
};

// Answers `status` with a ready demo model and hands `generate` on.
FakeDaemon::Script ready_model(FakeDaemon::Script generate);
ipc::Status ready_status();

}  // namespace tgi
