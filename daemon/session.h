// One client connection: reads one request line, writes reply lines. Belongs to the I/O thread.
//
// Replies come from other threads as Outgoing values in the server's mailbox; the session turns
// them into bytes. What the socket does not take is kept, and the engine is told only about what
// was taken, so that it pauses a request whose reader is slow.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <variant>

#include "base/mailbox.h"
#include "base/unique_fd.h"
#include "ipc/line_socket.h"
#include "ipc/protocol.h"
#include "ipc/socket_access.h"

namespace tgi::daemon {

// The engine took the session's request: it wants to hear of acknowledgements, and of the client
// leaving. Both throw when the engine has no room for the message: it is to be sent again then.
struct Attached {
  std::function<void()> cancel;
  std::function<void(int32_t num_events)> acknowledge;
};

// The session's request is a job: it wants to hear of the client leaving.
struct AttachedJob {
  std::shared_ptr<std::stop_source> stop;
};

// The session's request was decoded on another thread: `act` does what it asks for, on the I/O
// thread. Never throws.
struct Decoded {
  std::function<void()> act;
};

// Something for session `session`. All but the last three are written to the client, and all of
// those but accepted, token and progress events are the last thing that is.
struct Outgoing {
  uint64_t session = 0;
  std::variant<ipc::AcceptedEvent,
               ipc::TokenEvent,
               ipc::DoneEvent,
               ipc::OrderedJson,
               ipc::ProgressEvent,
               Error,
               Attached,
               AttachedJob,
               Decoded>
      message;
};

// Sends to the outbox from any thread. The outbox is sized so that it can only be full when the I/O
// thread is stuck; then this waits for it.
void post(Mailbox<Outgoing>& outbox, Outgoing&& outgoing);

class Session {
 public:
  Session(uint64_t id, UniqueFd socket, ipc::Credentials client = {});
  ~Session();  // cancels a request that still runs, when that was not done before
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  uint64_t id() const { return id_; }
  int fd() const { return socket_.get(); }
  const ipc::Credentials& client() const { return client_; }

  // Stops when the session ends: what was not begun for it need not begin.
  std::stop_token ended() const { return ended_.get_token(); }

  enum class Input { kNothing, kRequest, kClosed };
  // Reads what is there. kRequest: `line` is the client's one request; nothing further is read.
  // Throws kInvalidArgument for a line that is too long or not UTF-8.
  Input read(std::string& line);

  void take(const Outgoing& outgoing);

  // False: the client is gone. Throws kInternal on an error that is not the client's doing.
  [[nodiscard]] bool flush();

  // Takes what is to be told to the engine when the client is gone, once: nothing when there is
  // nothing to tell.
  std::function<void()> take_cancel();

  // The engine had no room for an acknowledgement; flush() sends it again.
  bool owes_acknowledgement() const;

  bool has_unsent() const { return sent_ < unsent_.size(); }
  bool is_over() const { return last_written_ && !has_unsent(); }
  bool has_request() const { return has_request_; }
  std::chrono::steady_clock::time_point last_progress() const { return last_progress_; }

 private:
  void acknowledge() noexcept;

  const uint64_t id_;
  UniqueFd socket_;
  const ipc::Credentials client_;
  std::stop_source ended_;
  ipc::LineReader reader_;
  std::string unsent_;
  size_t sent_ = 0;  // of unsent_
  bool has_request_ = false;
  bool last_written_ = false;
  Attached attached_;
  AttachedJob attached_job_;
  int32_t num_unacknowledged_ = 0;  // token events written and not yet told to the engine
  std::chrono::steady_clock::time_point last_progress_;
};

}  // namespace tgi::daemon
