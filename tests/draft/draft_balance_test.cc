#include "engine/draft/draft_balance.h"

#include "tests/catch.h"

namespace tgi {
namespace {

// Steps until drafts are given up; -1: they are not.
int steps_until_off(DraftBalance& balance, double spent_ms, double worth_ms, int most = 1000) {
  for (int i = 1; i <= most; ++i) {
    balance.observe(spent_ms, worth_ms);
    balance.pass(spent_ms);
    if (balance.is_off()) return i;
  }
  return -1;
}

}  // namespace

TEST_CASE("drafts that lose time are given up, and those that gain are not") {
  DraftBalance loses;
  CHECK(steps_until_off(loses, 3, 2) == 16);
  DraftBalance gains;
  CHECK(steps_until_off(gains, 2, 3) == -1);
  // What was gained is soon forgotten.
  CHECK(steps_until_off(gains, 3, 1) < 64);
}

TEST_CASE("what drafts lose is a hundredth of all time at most") {
  for (const double spent_ms : {1.1, 2.0, 5.0}) {
    DraftBalance balance;
    double lost_ms = 0;
    double all_ms = 0;
    int num_tries = 0;
    for (int step = 0; step < 100000; ++step) {
      const bool is_off = balance.is_off();
      const double ms = is_off ? 1.0 : spent_ms;
      if (!is_off) {
        balance.observe(spent_ms, 1.0);
        lost_ms += spent_ms - 1.0;
        ++num_tries;
      }
      balance.pass(ms);
      all_ms += ms;
    }
    INFO(spent_ms);
    CHECK(num_tries > 16);
    CHECK(lost_ms < 0.02 * all_ms);
  }
}

TEST_CASE("one disturbed step is no reason to give drafts up for long") {
  DraftBalance balance;
  for (int i = 0; i < 40; ++i) balance.observe(1.0, 1.5);
  balance.observe(1000.0, 1.5);
  CHECK_FALSE(balance.is_off());
}

TEST_CASE("steps of which nothing is known are not judged") {
  DraftBalance balance;
  CHECK(steps_until_off(balance, 1, 0) == -1);
}

}  // namespace tgi
