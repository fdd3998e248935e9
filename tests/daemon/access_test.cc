// Who may do what, with credentials as the system would tell them.
#include "daemon/access.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "base/error.h"
#include "base/unique_fd.h"
#include "tests/catch.h"

namespace tgi::daemon {
namespace {

constexpr uid_t kOwner = 700;
constexpr gid_t kUsers = 800;
constexpr gid_t kManagers = 801;

ipc::Credentials client(uid_t uid, gid_t gid, std::vector<gid_t> groups = {}) {
  return {.pid = 1, .uid = uid, .gid = gid, .groups = std::move(groups)};
}

struct Rights {
  bool use;
  bool manage;
  bool operator==(const Rights&) const = default;
};

Rights rights(const AccessRules& rules, const ipc::Credentials& who) {
  return {rules.may(Access::kUse, who), rules.may(Access::kManage, who)};
}

constexpr Rights kNothing = {false, false};
constexpr Rights kUseOnly = {true, false};
constexpr Rights kAll = {true, true};

std::string refusal(const AccessRules& rules, const ipc::Credentials& who) {
  try {
    rules.require(Access::kManage, "load", who);
  } catch (const Error& error) {
    CHECK(error.code() == Code::kForbidden);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a daemon of one user serves that user and root with everything, and nobody else") {
  const AccessRules rules({.owner = kOwner});
  CHECK(rights(rules, client(kOwner, 5)) == kAll);
  CHECK(rights(rules, client(0, 0)) == kAll);
  CHECK(rights(rules, client(1000, 1000)) == kNothing);
  CHECK(rights(rules, client(1000, 0, {0, kOwner})) == kNothing);  // groups are no users
  CHECK_FALSE(rules.socket_group());
}

TEST_CASE("of two groups one may use the daemon, the other one may manage it too") {
  const AccessRules rules({.owner = kOwner,
                           .use_group = AccessRules::Group{kUsers, "users"},
                           .manage_group = AccessRules::Group{kManagers, "managers"}});
  CHECK(rights(rules, client(1000, kUsers)) == kUseOnly);
  CHECK(rights(rules, client(1000, 1000, {5, kUsers})) == kUseOnly);
  CHECK(rights(rules, client(1000, kManagers)) == kAll);
  CHECK(rights(rules, client(1000, 1000, {kUsers, kManagers})) == kAll);
  CHECK(rights(rules, client(1000, 1000, {5, 6})) == kNothing);
  CHECK(rights(rules, client(kOwner, 5)) == kAll);
  CHECK(rights(rules, client(0, 0)) == kAll);
  CHECK(rules.socket_group() == kUsers);
}

TEST_CASE("one group alone: using needs no managers, and managers may use") {
  const AccessRules users({.owner = kOwner, .use_group = AccessRules::Group{kUsers, "users"}});
  CHECK(rights(users, client(1000, kUsers)) == kUseOnly);
  CHECK(rights(users, client(1000, kManagers)) == kNothing);
  const AccessRules managers(
      {.owner = kOwner, .manage_group = AccessRules::Group{kManagers, "managers"}});
  CHECK(rights(managers, client(1000, kManagers)) == kAll);
  CHECK(rights(managers, client(1000, kUsers)) == kNothing);
  CHECK(managers.socket_group() == kManagers);
}

TEST_CASE("whom a socket that was handed over lets in may use the daemon, and no more") {
  const AccessRules rules({.owner = kOwner, .is_handed_over = true});
  CHECK(rights(rules, client(1000, 1000)) == kUseOnly);
  CHECK(rights(rules, client(kOwner, 5)) == kAll);
  const AccessRules with_managers({.owner = kOwner,
                                   .is_handed_over = true,
                                   .manage_group = AccessRules::Group{kManagers, "managers"}});
  CHECK(rights(with_managers, client(1000, 1000, {kManagers})) == kAll);
  CHECK(rights(with_managers, client(1000, 1000)) == kUseOnly);
}

TEST_CASE("a refusal names the method, who may, and how to become one of them") {
  const AccessRules rules({.owner = 0,
                           .use_group = AccessRules::Group{kUsers, "users"},
                           .manage_group = AccessRules::Group{kManagers, "managers"}});
  const std::string text = refusal(rules, client(1000000, kUsers));
  CHECK_THAT(text, Catch::StartsWith("load: you may use this daemon, but not manage it") &&
                       Catch::Contains("root and the members of the group managers may") &&
                       Catch::Contains("adduser user 1000000 managers"));
  CHECK(refusal(rules, client(1000000, kManagers)).empty());
  const AccessRules alone({.owner = 0, .use_group = AccessRules::Group{kUsers, "users"}});
  CHECK_THAT(refusal(alone, client(1000000, kUsers)), Catch::Contains("--manage-group"));
}

TEST_CASE("a group that is not there is refused with its flag") {
  Options options;
  options.manage_group = "no-such-group";
  CHECK_THROWS_WITH(AccessRules(options, false),
                    Catch::Contains("--manage-group") && Catch::Contains("no group no-such-group"));
}

TEST_CASE("the system tells all groups of a peer") {
  std::array<int, 2> fds{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
  const UniqueFd one(fds[0]);
  const UniqueFd other(fds[1]);
  const ipc::Credentials self = ipc::credentials_of(one.get());
  CHECK(self.pid == ::getpid());
  CHECK(self.uid == ::geteuid());
  CHECK(self.is_member(::getegid()));
  std::vector<gid_t> groups(static_cast<size_t>(::getgroups(0, nullptr)));
  REQUIRE(::getgroups(static_cast<int>(groups.size()), groups.data()) >= 0);
  for (const gid_t group : groups) CHECK(self.is_member(group));
  CHECK_FALSE(self.is_member(123456));
}

}  // namespace tgi::daemon
