#include "daemon/access.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/error.h"

namespace tgi::daemon {
namespace {

std::optional<AccessRules::Group> find_group(const std::string& name, std::string_view flag) {
  if (name.empty()) return std::nullopt;
  try {
    return AccessRules::Group{.id = ipc::group_named(name), .name = name};
  } catch (const Error& error) {
    throw error.in(flag);
  }
}

std::string user_name(uid_t uid) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? fmt::format("user {}", uid) : std::string(found->pw_name);
}

}  // namespace

AccessRules::AccessRules(const Options& options, bool is_handed_over)
    : settings_{.owner = ::geteuid(),
                .is_handed_over = is_handed_over,
                .use_group = find_group(options.allow_group, "--allow-group"),
                .manage_group = find_group(options.manage_group, "--manage-group")} {}

bool AccessRules::may(Access access, const ipc::Credentials& client) const {
  if (client.uid == settings_.owner || client.uid == 0) return true;
  const auto is_in = [&](const std::optional<Group>& group) {
    return group && client.is_member(group->id);
  };
  if (is_in(settings_.manage_group)) return true;
  return access == Access::kUse && (settings_.is_handed_over || is_in(settings_.use_group));
}

void AccessRules::require(Access access,
                          std::string_view method,
                          const ipc::Credentials& client) const {
  if (may(access, client)) return;
  const std::string owner = user_name(settings_.owner);
  const std::string who = settings_.owner == 0 ? "root" : fmt::format("root and {}", owner);
  const std::string group =
      settings_.manage_group
          ? fmt::format(
                "{0} and the members of the group {1} may: an administrator makes {2} one "
                "with `adduser {2} {1}`, which a new login takes over",
                who, settings_.manage_group->name, user_name(client.uid))
          : fmt::format("{} may; an administrator lets a group in with --manage-group", who);
  throw Error(Code::kForbidden,
              fmt::format("{}: you may use this daemon, but not manage it; {}", method, group));
}

std::optional<gid_t> AccessRules::socket_group() const {
  if (settings_.use_group) return settings_.use_group->id;
  if (settings_.manage_group) return settings_.manage_group->id;
  return std::nullopt;
}

}  // namespace tgi::daemon
