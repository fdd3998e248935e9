// What clients that misbehave get, and that nobody else notices.
#include <chrono>
#include <random>
#include <thread>

#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {

TEST_CASE("rubbish on the socket gets a typed error and hurts nobody") {
  const Home home;
  const DaemonProcess daemon(home);
  const auto answer_to = [&](const std::string& bytes) {
    RawConnection connection(daemon.socket());
    connection.send(bytes);
    return connection.read_line();
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hello\n", "JSON"},
      {"[]\n", "request"},
      {"{}\n", "method"},
      {"\xff\xfe\n", "UTF-8"},
      {R"({"method": "explode"})"
       "\n",
       "explode"},
      {R"({"method": "generate", "params": {"promt": "x"}})"
       "\n",
       "promt"},
      {R"({"method": "generate", "params": {"prompt": 5}})"
       "\n",
       "prompt"},
      {R"({"method": "generate", "params": {"prompt": ""}})"
       "\n",
       "empty"},
      {R"({"method": "generate", "params": {"prompt": "x", "temperature": -1}})"
       "\n",
       "temperature"},
      {R"({"method": "generate", "params": {"prompt": "x", "max_new_tokens": 100000}})"
       "\n",
       "1024"},
      {R"({"method": "generate", "params": {"messages": [{"role": "user"}]}})"
       "\n",
       ""},
      {R"({"method": "generate", "params": {"messages": "hi"}})"
       "\n",
       "messages"},
      {"{\"method\": \"generate\", \"params\": " + std::string(100, '[') + std::string(100, ']') +
           "}\n",
       "deep"},
  };
  for (const auto& [bytes, expected] : cases) {
    INFO(bytes);
    const std::string line = answer_to(bytes);
    INFO(line);
    REQUIRE_FALSE(line.empty());
    const ipc::Reply reply = ipc::decode_reply(line);
    if (!expected.empty()) {
      REQUIRE(reply.error);
      CHECK(std::string(reply.error->what()).find(expected) != std::string::npos);
      CHECK(reply.error->code() != Code::kInternal);
    }
  }
  std::mt19937 random(4);
  for (int i = 0; i < 50; ++i) {
    std::string noise(random() % 2000 + 1, ' ');
    for (char& c : noise) c = static_cast<char>(random());
    RawConnection connection(daemon.socket());
    connection.send(noise + "\n");
    CHECK_FALSE(connection.read_line().empty());
  }
  CHECK(daemon.becomes_idle());
  CHECK(daemon.status().phase == "ready");
}

TEST_CASE("large requests are answered as small ones are, and forgotten with their client") {
  const Home home;
  const DaemonProcess daemon(home);
  const std::string blanks(size_t{kUnderSanitizers ? 2 : 8} << 20, ' ');
  const auto answer_to = [&](const std::string& line) {
    RawConnection connection(daemon.socket());
    connection.send(line + blanks + "\n");
    return ipc::decode_reply(connection.read_line(60000));
  };
  const ipc::Reply refused = answer_to(R"({"method": "generate", "params": {"promt": "x"}})");
  REQUIRE(refused.error);
  CHECK_THAT(refused.error->what(), Catch::Contains("promt"));
  const ipc::Reply done =
      answer_to(R"({"method": "generate", "params": {"prompt": "Once", "max_new_tokens": 3}})");
  REQUIRE(done.done);
  CHECK(done.done->best.num_generated_tokens == 3);
  CHECK(answer_to(R"({"method": "status"})").result);
  for (int i = 0; i < 8; ++i) {
    RawConnection connection(daemon.socket());
    connection.send(R"({"method": "generate", "params": {"prompt": "Once", "ignore_eos": true}})" +
                    blanks + "\n");
  }
  CHECK(daemon.becomes_idle(60000));
}

TEST_CASE("clients that leave in every phase free what they held") {
  const Home home;
  const DaemonProcess daemon(home, {"--max-running", "4", "--max-batch-tokens", "16"});
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    RawConnection connection(daemon.socket());
    if (round % 7 == 0) continue;
    connection.send_request(ipc::kGenerate,
                            {{"prompt_ids", std::vector<int>(random() % 400 + 1, 5)},
                             {"stream", true},
                             {"ignore_eos", true}});
    if (round % 3 == 0) (void)connection.read_line();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 4));
  }
  CHECK(daemon.becomes_idle());
}

TEST_CASE("a client that stops reading is paused and then cancelled while others run on") {
  const Home home;
  const DaemonProcess daemon(home, {"--slow-reader-timeout", "1"});
  RawConnection slow(daemon.socket());
  // Twenty alternatives for each token make the answer larger than what a socket holds.
  slow.send_request(
      ipc::kGenerate,
      {{"prompt", "Once"}, {"stream", true}, {"ignore_eos", true}, {"top_n_tokens", 20}});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ipc::GenerateRequest other;
  other.prompt = "One day";
  other.params.max_new_tokens = 50;
  other.params.ignore_eos = true;
  CHECK(daemon.client().generate(other, {}).best.num_generated_tokens == 50);
  CHECK(daemon.becomes_idle(10000));
  CHECK(daemon.status().counters.num_cancelled == 1);
}

}  // namespace tgi
