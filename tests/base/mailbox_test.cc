#include "base/mailbox.h"

#include <atomic>
#include <thread>

#include "tests/catch.h"

namespace tgi {

TEST_CASE("mailbox delivers everything from many senders in each sender's order") {
  Mailbox<int> mailbox(100000);
  std::atomic<int> num_refused{0};
  std::vector<std::jthread> senders;
  for (int sender = 0; sender < 4; ++sender) {
    senders.emplace_back([&mailbox, &num_refused, sender] {
      for (int i = 0; i < 1000; ++i) {
        if (!mailbox.try_send(sender * 1000 + i)) ++num_refused;  // Catch is not for threads
      }
    });
  }
  std::vector<int> next = {0, 0, 0, 0};
  std::vector<int> received;
  int total = 0;
  while (total < 4000) {
    mailbox.wait(1000);
    mailbox.drain(received);
    for (const int value : received) {
      CHECK(value % 1000 == next[static_cast<size_t>(value / 1000)]++);
    }
    total += static_cast<int>(received.size());
  }
  CHECK(total == 4000);
  CHECK(num_refused == 0);
}

TEST_CASE("mailbox refuses when full and leaves the value with the sender") {
  Mailbox<std::unique_ptr<int>> mailbox(1);
  REQUIRE(mailbox.try_send(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  CHECK_FALSE(mailbox.try_send(std::move(second)));
  CHECK(second != nullptr);
}

}  // namespace tgi
