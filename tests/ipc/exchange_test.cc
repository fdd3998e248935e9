// One request under way: waits that end, polling, and who may stop it.
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <thread>

#include "ipc/client.h"
#include "tests/catch.h"
#include "tests/ipc/fake_daemon.h"

namespace tgi::ipc {
namespace {

using Clock = std::chrono::steady_clock;

struct SocketPair {
  SocketPair() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    near.reset(fds[0]);
    far.reset(fds[1]);
  }
  UniqueFd near;
  UniqueFd far;
};

// Lets a script of the daemon go on.
class Gate {
 public:
  void open() { opened_.set_value(); }
  void wait() { opened_.get_future().wait_for(std::chrono::seconds(10)); }

 private:
  std::promise<void> opened_;
};

TokenInfo token(int32_t id) {
  TokenInfo out;
  out.id = id;
  out.text = "x";
  return out;
}

Stopped::Why stopped_by(Exchange& exchange) {
  try {
    (void)exchange.next(10'000);
  } catch (const Stopped& stopped) {
    CHECK(stopped.code() == Code::kCancelled);
    return stopped.why();
  }
  throw std::runtime_error("nothing was thrown");
}

}  // namespace

TEST_CASE("an exchange hands out replies one by one, and nothing when the time is up") {
  const TempFolder folder;
  Gate gate;
  const FakeDaemon daemon(folder.file("s"), [&](FakeSession& session) {
    session.send(encode_accepted_event({.num_prompt_tokens = 3}));
    session.send_text("a");
    gate.wait();
    session.send_text("b");
    session.send_done({});
  });
  Exchange exchange({.socket_path = folder.file("s")}, kGenerate, OrderedJson{{"prompt", "hi"}});
  std::optional<Reply> reply = exchange.next(10'000);
  REQUIRE((reply && reply->accepted));
  CHECK(reply->accepted->num_prompt_tokens == 3);
  reply = exchange.next(-1);
  REQUIRE((reply && reply->token));
  CHECK(reply->token->text == "a");

  const auto began = Clock::now();
  CHECK_FALSE(exchange.next(60));
  CHECK(Clock::now() - began >= std::chrono::milliseconds(55));
  CHECK_FALSE(exchange.next(0));
  CHECK_FALSE(exchange.try_next());

  gate.open();
  pollfd fd{.fd = exchange.fd(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&fd, 1, 10'000) == 1);
  reply = exchange.next(10'000);
  REQUIRE((reply && reply->token));
  CHECK(reply->token->text == "b");
  reply = exchange.next(10'000);
  CHECK((reply && reply->done));
  CHECK(daemon.requests() == std::vector<std::string>{R"(generate {"prompt":"hi"})"});
}

TEST_CASE("what came in one piece is all there without another poll") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession& session) {
    std::string lines;
    for (int i = 0; i < 100; ++i) {
      lines += encode_token_event({.token = token(i), .text = "x", .top_tokens = {}});
      if (i < 99) lines += "\n";
    }
    session.send(lines);
    session.client_leaves_within(10'000);
  });
  Exchange exchange({.socket_path = folder.file("s")}, kGenerate, OrderedJson::object());
  for (int i = 0; i < 100; ++i) {
    std::optional<Reply> reply;
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (!reply && Clock::now() < deadline) {
      reply = exchange.try_next();
      if (reply) break;
      pollfd fd{.fd = exchange.fd(), .events = POLLIN, .revents = 0};
      REQUIRE(::poll(&fd, 1, 10'000) == 1);
    }
    REQUIRE(reply);
    CHECK(reply->token->token.id == i);
  }
  CHECK_FALSE(exchange.try_next());
}

TEST_CASE("an exchange throws what the daemon answers, and that it went away") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession& session) {
    if (session.request().method == "generate") {
      session.send_text("a");
      session.close();
    } else {
      session.send_error(Code::kTemplate, "no template");
    }
  });
  Exchange refused({.socket_path = folder.file("s")}, kTokenize, OrderedJson::object());
  try {
    (void)refused.next(10'000);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kTemplate);
    CHECK(error.what() == std::string("no template"));
  }
  Exchange cut({.socket_path = folder.file("s")}, kGenerate, OrderedJson::object());
  CHECK(cut.next(10'000)->token);
  try {
    (void)cut.next(10'000);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kUnavailable);
    CHECK_THAT(error.what(), Catch::Contains("in the middle of the answer"));
  }
}

TEST_CASE("a peer that closes its end stops the exchange, and the daemon sees it") {
  const TempFolder folder;
  std::promise<bool> left;
  const FakeDaemon daemon(folder.file("s"), [&](FakeSession& session) {
    session.send_text("a");
    left.set_value(session.client_leaves_within(10'000));
  });
  SocketPair peer;
  {
    Exchange exchange({.socket_path = folder.file("s"), .peer_fd = peer.near.get()}, kGenerate,
                      OrderedJson::object());
    CHECK(exchange.next(10'000)->token);
    // What the peer sends is no reason to stop.
    REQUIRE(::send(peer.far.get(), "x", 1, 0) == 1);
    CHECK_FALSE(exchange.next(50));
    peer.far.reset();
    CHECK(stopped_by(exchange) == Stopped::Why::kPeerGone);
  }
  CHECK(left.get_future().get());
}

TEST_CASE("a peer that only stops sending has left as well") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"),
                          [](FakeSession& session) { session.client_leaves_within(10'000); });
  SocketPair peer;
  Exchange exchange({.socket_path = folder.file("s"), .peer_fd = peer.near.get()}, kGenerate,
                    OrderedJson::object());
  ::shutdown(peer.far.get(), SHUT_WR);
  CHECK(stopped_by(exchange) == Stopped::Why::kPeerGone);
}

TEST_CASE("cancelling says by whom") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"),
                          [](FakeSession& session) { session.client_leaves_within(10'000); });
  SocketPair cancel;
  Exchange exchange({.socket_path = folder.file("s"), .cancel_fd = cancel.near.get()}, kGenerate,
                    OrderedJson::object());
  CHECK_FALSE(exchange.next(20));
  REQUIRE(::send(cancel.far.get(), "x", 1, 0) == 1);
  CHECK(stopped_by(exchange) == Stopped::Why::kCancelFd);
}

TEST_CASE("an exchange can be moved while it is under way") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession& session) {
    session.send_text("a");
    session.send_done({});
  });
  Exchange first = Client({.socket_path = folder.file("s")}).open(kGenerate, OrderedJson::object());
  CHECK(first.next(10'000)->token);
  Exchange second = std::move(first);
  CHECK(second.next(10'000)->done);
}

}  // namespace tgi::ipc
