// Many transfers on one thread, driven by a loop of the owner's that watches their sockets.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "cmd/curl/transfer.h"

namespace tgi::curl {

// What a group asks of the loop. It calls these from within its own functions.
class Watcher {
 public:
  virtual ~Watcher() = default;

  // From now on, until asked for other events: call act() when these come. An exception breaks the
  // transfers of this socket off.
  virtual void watch(int socket, bool reading, bool writing) = 0;
  virtual void forget(int socket) = 0;
  // Call act_on_time() after so long, and not when it was asked for before; nothing: not at all.
  virtual void wake_after(std::optional<std::chrono::milliseconds> time) = 0;
};

struct SocketEvents {
  bool readable = false;
  bool writable = false;
  bool error = false;
};

struct FinishedTransfer {
  Receiver* receiver = nullptr;  // that the transfer was prepared with
  Outcome outcome;
};

class TransferGroup {
 public:
  // `watcher` must outlive the group, and the group its transfers' time in it.
  explicit TransferGroup(Watcher& watcher);
  ~TransferGroup();

  // Begins a transfer that was prepared. It stays where it is until it is removed, finished or not.
  void add(Transfer& transfer);
  void remove(Transfer& transfer);

  void act(int socket, SocketEvents events);
  void act_on_time();

  // One that finished since; nothing when there is no other. It is still to be removed. Throws what
  // its receiver threw.
  std::optional<FinishedTransfer> next_finished();

 private:
  struct Multi;

  const std::unique_ptr<Multi> multi_;
};

}  // namespace tgi::curl
