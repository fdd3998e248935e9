// tgid --num-shard: what a user sees of several ranks.
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

Ran tell_story(const Home& home) {
  return home.run({"generate", "Once upon a time", "--max-new-tokens", "40"});
}

}  // namespace

TEST_CASE("two ranks tell the story of one, and ps says that there are two") {
  const Home home;
  std::string of_one;
  {
    const DaemonProcess daemon(home, {"--dtype", "f32"});
    of_one = tell_story(home).out;
    CHECK(daemon.status().model->num_shard == 1);
  }
  const DaemonProcess daemon(home, {"--dtype", "f32", "--num-shard", "2"});
  const Ran ran = tell_story(home);
  INFO(ran.err);
  CHECK(ran.exit_status == 0);
  CHECK(ran.out == of_one);
  CHECK(tell_story(home).out == of_one);
  CHECK_THAT(home.run({"ps"}).out, Catch::Contains(", 2 ranks, "));
  CHECK_THAT(home.run({"ps", "--json"}).out, Catch::Contains(R"("num_shard":2)"));
  // A gateway is told when the daemon is not as it was asked for.
  const Ran serve = home.run({"serve", "--http", ":0", "--num-shard", "4"});
  CHECK(serve.exit_status == 3);
  CHECK_THAT(serve.err, Catch::Contains("has --num-shard 2, not 4 as asked for"));
}

TEST_CASE("a model is loaded on other numbers of ranks, and one that can't be leaves it in place") {
  const Home home;
  const DaemonProcess daemon(home);
  Ran ran = home.run({"load", "demo", "--num-shard", "4"});
  INFO(ran.err);
  CHECK(ran.exit_status == 0);
  CHECK(daemon.status().model->num_shard == 4);
  ran = home.run({"load", "demo", "--num-shard", "3"});
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Catch::Contains("num_heads of the model is 8, which can't be dealt out to 3 "
                                      "ranks evenly"));
  CHECK(daemon.status().phase == "ready");
  CHECK(daemon.status().model->num_shard == 4);
  CHECK(tell_story(home).exit_status == 0);
  // What is not said again is as the daemon was started.
  CHECK(home.run({"load", "demo"}).exit_status == 0);
  CHECK(daemon.status().model->num_shard == 1);
}

TEST_CASE("ranks drain on SIGTERM, and idle ones cost nothing") {
  const Home home;
  DaemonProcess daemon(home, {"--num-shard", "4"});
  CHECK(tell_story(home).exit_status == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double before = daemon.cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  CHECK(daemon.cpu_seconds() - before < 0.03);
  RawConnection running(daemon.socket());
  running.send_request(ipc::kGenerate, {{"prompt", "Once upon a time"},
                                        {"stream", true},
                                        {"ignore_eos", true},
                                        {"max_new_tokens", 200}});
  REQUIRE(ipc::decode_reply(running.read_line()).token);
  daemon.signal(SIGTERM);
  ipc::Reply reply;
  do {
    reply = ipc::decode_reply(running.read_line());
  } while (reply.token);
  REQUIRE(reply.done);
  CHECK(reply.done->best.num_generated_tokens == 200);
  CHECK(daemon.wait() == 0);
}

}  // namespace tgi
