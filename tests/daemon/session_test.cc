// A session and an engine that has no room for what it is told.
#include "daemon/session.h"

#include <sys/socket.h>

#include "tests/catch.h"

namespace tgi::daemon {
namespace {

struct Pair {
  UniqueFd client;
  UniqueFd server;
};

Pair connected_pair() {
  std::array<int, 2> fds{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

[[noreturn]] void refuse() {
  throw Error(Code::kOverloaded, "the engine's mailbox is full; try again later");
}

ipc::TokenEvent token_event() {
  return {.token = {.id = 1, .text = "a", .logprob = -1.0}, .text = "a", .top_tokens = {}};
}

}  // namespace

TEST_CASE("a session that ends while the engine has no room ends all the same") {
  Pair pair = connected_pair();
  int num_cancels = 0;
  {
    Session session(1, std::move(pair.server));
    session.take({1, Attached{.cancel =
                                  [&] {
                                    ++num_cancels;
                                    refuse();
                                  },
                              .acknowledge = [](int32_t) {}}});
  }
  CHECK(num_cancels == 1);
}

TEST_CASE("a request is cancelled once, and not after its last line") {
  int num_cancels = 0;
  const Attached attached{.cancel = [&] { ++num_cancels; }, .acknowledge = [](int32_t) {}};
  {
    Pair pair = connected_pair();
    Session session(1, std::move(pair.server));
    CHECK_FALSE(session.take_cancel());
    session.take({1, attached});
    const std::function<void()> cancel = session.take_cancel();
    REQUIRE(cancel);
    cancel();
  }
  CHECK(num_cancels == 1);
  {
    Pair pair = connected_pair();
    Session session(2, std::move(pair.server));
    session.take({2, attached});
    session.take({2, Error(Code::kInternal, "the end")});
  }
  CHECK(num_cancels == 1);
}

TEST_CASE("an acknowledgement that the engine has no room for is sent again, none is lost") {
  Pair pair = connected_pair();
  int32_t num_acknowledged = 0;
  bool has_room = false;
  Session session(1, std::move(pair.server));
  session.take({1, Attached{.cancel = [] {},
                            .acknowledge =
                                [&](int32_t num_events) {
                                  if (!has_room) refuse();
                                  num_acknowledged += num_events;
                                }}});
  constexpr int kNumEvents = 100;
  for (int i = 0; i < kNumEvents; ++i) session.take({1, token_event()});
  CHECK(session.flush());
  CHECK(session.owes_acknowledgement());
  CHECK(session.flush());
  CHECK(num_acknowledged == 0);
  has_room = true;
  CHECK(session.flush());
  CHECK(num_acknowledged == kNumEvents);
  CHECK_FALSE(session.owes_acknowledgement());
}

TEST_CASE("what was not begun for a session learns of its end") {
  Pair pair = connected_pair();
  auto session = std::make_unique<Session>(1, std::move(pair.server));
  const std::stop_token ended = session->ended();
  CHECK_FALSE(ended.stop_requested());
  session.reset();
  CHECK(ended.stop_requested());
}

}  // namespace tgi::daemon
