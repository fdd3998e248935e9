// The events of answers in the background: read from any of them on, and followed.
#include "cmd/http/event_log.h"

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

std::shared_ptr<std::atomic<int64_t>> no_bytes() {
  return std::make_shared<std::atomic<int64_t>>(0);
}

// A connection: what is watched, and the client that may leave.
struct Peers {
  Peers() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    server = UniqueFd(ends[0]);
    client = UniqueFd(ends[1]);
  }
  UniqueFd server;
  UniqueFd client;
};

class Text final : public BodyWriter {
 public:
  bool write(std::string_view bytes) override {
    if (num_left == 0) return false;
    --num_left;
    text += bytes;
    return true;
  }
  std::string text;
  int num_left = 1000;
};

}  // namespace

TEST_CASE("events are read from any of them on, a part at a time") {
  EventLog log(no_bytes());
  for (const char* event : {"a", "b", "c"}) log.add(event);
  CHECK(log.read(0).bytes == "abc");
  CHECK_FALSE(log.read(0).is_all);
  CHECK(log.read(2).bytes == "c");
  CHECK(log.read(2).next == 3);
  CHECK(log.read(9).bytes.empty());
  log.end();
  CHECK(log.read(0).is_all);
  CHECK(log.read(9).is_all);
  for (int i = 0; i < 3; ++i) log.add(std::string(40000, 'x'));
  const EventLog::Part part = log.read(3);
  CHECK(part.next == 5);
  CHECK_FALSE(part.is_all);
  CHECK(log.read(part.next).is_all);
}

TEST_CASE("several follow what is still written, each from where it asked") {
  EventLog log(no_bytes());
  log.add("0");
  Peers peers;
  Text all;
  Text late;
  bool all_done = false;
  bool late_done = false;
  {
    std::jthread first([&] { all_done = log.follow(0, peers.server.get(), all); });
    std::jthread second([&] { late_done = log.follow(2, peers.server.get(), late); });
    for (const char* event : {"1", "2", "3"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      log.add(event);
    }
    log.end();
  }
  CHECK(all_done);
  CHECK(late_done);
  CHECK(all.text == "0123");
  CHECK(late.text == "23");
  Text again;
  CHECK(log.follow(1, peers.server.get(), again));
  CHECK(again.text == "123");
}

TEST_CASE("who follows ends when the client leaves or takes nothing") {
  EventLog log(no_bytes());
  log.add("a");
  Peers peers;
  Text none;
  none.num_left = 0;
  CHECK_FALSE(log.follow(0, peers.server.get(), none));
  Text text;
  bool is_done = true;
  {
    std::jthread follower([&] { is_done = log.follow(0, peers.server.get(), text); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    peers.client.reset();
  }
  CHECK_FALSE(is_done);
  CHECK(text.text == "a");
}

}  // namespace tgi::http
