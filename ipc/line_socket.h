// Lines over a Unix socket: framing, the size limit, the listening and the connecting end. Knows
// nothing of what a line means (that is protocol.h) and owns no event loop.
//
// The listening end keeps others out three times over: the folder is made with mode 0700, the
// socket has mode 0600 from the moment it exists, and peer_uid() tells the server who is asking.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"
#include "ipc/protocol.h"

namespace tgi::ipc {

// Cuts a byte stream into lines. Not thread-safe. REQUIRES: after each feed(), next() is called
// until it gives nothing; then no more than one unfinished line is ever held.
class LineReader {
 public:
  explicit LineReader(size_t max_line_bytes = kMaxLineBytes) : max_line_bytes_(max_line_bytes) {}

  void feed(std::string_view bytes);

  // The next whole line without its newline, or nothing while it is not complete. Throws
  // kInvalidArgument for a line over the limit (as soon as that is known, without waiting for its
  // end) and for invalid UTF-8; after that the stream is of no more use: close it.
  std::optional<std::string> next();

  // Bytes of a line whose newline has not come. Not 0 at the end of the stream: it was cut.
  size_t num_pending_bytes() const { return buffer_.size() - begin_; }

 private:
  const size_t max_line_bytes_;
  std::string buffer_;
  size_t begin_ = 0;    // of the first line not yet given out
  size_t scanned_ = 0;  // no newline in [begin_, scanned_)
};

enum class ReadStatus {
  kData,        // something was fed
  kWouldBlock,  // nothing there now
  kClosed,      // the peer closed or is gone
};

// One read of at most 64 KiB from a blocking or non-blocking socket. Throws kInternal on an error
// that is not the peer's doing.
ReadStatus read_into(int fd, LineReader& reader);

enum class WriteStatus {
  kDone,        // all written
  kWouldBlock,  // `bytes` is what is left
  kClosed,      // the peer is gone
};

// Writes from the front of `bytes` and cuts off what was written. Never raises SIGPIPE. On a
// blocking socket it ends with kDone or kClosed.
WriteStatus write_from(int fd, std::string_view& bytes);

// The listening end; at most one per path on a machine. Owned by one thread.
//
// The right to a path is a lock on PATH.lock, held while the listener lives, so that two daemons
// that start at once can't both take the path, and a socket file left by a killed daemon can be
// replaced safely. The lock file stays behind: removing it would reopen the race.
class UnixListener {
 public:
  // Without a lock the path is somebody else's: a service manager's.
  UnixListener(std::string path, UniqueFd fd, UniqueFd lock);
  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();  // removes the socket file, if the path is its own

  int fd() const { return fd_.get(); }  // non-blocking, for accept4
  const std::string& path() const { return path_; }

  // A client, non-blocking and close-on-exec, or nothing when none waits. Throws kOutOfMemory when
  // the process has no file descriptor left: stop polling the listener for a moment then.
  std::optional<UniqueFd> accept();

 private:
  std::string path_;
  UniqueFd fd_;
  UniqueFd lock_;
  // Of its socket file: who removed that, and the lock, may have made room for another daemon's.
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
};

// Throws kOverloaded when another daemon lives at `path`, kInvalidArgument when the path is too
// long, is taken by something that is not a socket, or lies in a folder others may write to.
UnixListener listen_unix(const std::string& path);

// A socket that listens already, handed over by who started this process. Throws kInvalidArgument
// when it has no path.
UnixListener adopt_listener(UniqueFd fd);

// kUnavailable because there is no daemon at all: one may be started.
class NobodyListens : public Error {
 public:
  explicit NobodyListens(const std::string& path)
      : Error(Code::kUnavailable, "no daemon is running at " + path) {}
};

// A connected, non-blocking socket. Throws NobodyListens, kUnavailable when the socket can't be
// reached for another reason, and kOverloaded when the queue of the listener is full: try again a
// moment later.
UniqueFd connect_unix(const std::string& path);

// Whether a connection would be taken up, by whomever.
bool someone_listens(const std::string& path);

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};

// Who is at the other end, as the system says it.
Peer peer_of(int fd);
inline uid_t peer_uid(int fd) {
  return peer_of(fd).uid;
}

// Only the daemon's own user and root may use it.
bool may_connect(uid_t uid);

}  // namespace tgi::ipc
