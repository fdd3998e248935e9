// Which client may ask for what. The socket's file keeps strangers away; who is let in is told
// apart here, by the credentials that the system has of the connection. Values without threads.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "daemon/options.h"
#include "ipc/socket_access.h"

namespace tgi::daemon {

// The classes of methods; the table in dispatch.cc says which method is of which.
enum class Access {
  kUse,     // takes nothing from others: answers, counters
  kManage,  // decides for all, or reads and writes files as the daemon's user
};

class AccessRules {
 public:
  struct Group {
    gid_t id = 0;
    std::string name;
  };

  // The daemon's own user and root may do everything. `is_handed_over`: the socket is a service
  // manager's, and those that its owner and mode let in may use the daemon.
  struct Settings {
    uid_t owner = 0;
    bool is_handed_over = false;
    std::optional<Group> use_group{};
    std::optional<Group> manage_group{};  // its members may use the daemon too
  };

  explicit AccessRules(Settings settings) : settings_(std::move(settings)) {}

  // Throws kInvalidArgument for a group that this machine does not have.
  AccessRules(const Options& options, bool is_handed_over);

  bool may(Access access, const ipc::Credentials& client) const;

  // Throws kForbidden, saying who may.
  void require(Access access, std::string_view method, const ipc::Credentials& client) const;

  // The one group that a socket's file of our own can have; nothing: the owner's alone.
  std::optional<gid_t> socket_group() const;

 private:
  Settings settings_;
};

}  // namespace tgi::daemon
