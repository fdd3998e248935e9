// Many at once, and what it costs in memory.
#include <memory>
#include <thread>

#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {

TEST_CASE("a thousand requests at once are queued and none is lost") {
  const Home home;
  const DaemonProcess daemon(home);
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < 1000; ++i) {
    connections.push_back(std::make_unique<RawConnection>(daemon.socket()));
    connections.back()->send_request(
        ipc::kGenerate, {{"prompt", "There was a cat number " + std::to_string(i % 50)},
                         {"max_new_tokens", 8},
                         {"ignore_eos", true}});
  }
  std::vector<std::string> first(50);
  for (size_t i = 0; i < connections.size(); ++i) {
    const ipc::Reply reply = ipc::decode_reply(connections[i]->read_line(60000));
    REQUIRE(reply.done);
    CHECK(reply.done->best.num_generated_tokens == 8);
    std::string& expected = first[i % 50];
    if (expected.empty()) expected = reply.done->best.text;
    CHECK(reply.done->best.text == expected);
  }
  CHECK(daemon.becomes_idle());
  CHECK(daemon.status().counters.num_requests == 1000);
}

TEST_CASE("a full queue refuses at once and says so") {
  const Home home;
  const DaemonProcess daemon(home, {"--max-waiting", "1", "--max-running", "1"});
  std::vector<std::unique_ptr<RawConnection>> connections;
  int num_refused = 0;
  for (int i = 0; i < 12; ++i) {
    connections.push_back(std::make_unique<RawConnection>(daemon.socket()));
    connections.back()->send_request(
        ipc::kGenerate, {{"prompt", "Once"}, {"max_new_tokens", 900}, {"ignore_eos", true}});
  }
  for (const auto& connection : connections) {
    const ipc::Reply reply = ipc::decode_reply(connection->read_line(30000));
    CHECK((reply.done || reply.error));
    if (reply.error) {
      CHECK(reply.error->code() == Code::kOverloaded);
      ++num_refused;
    }
  }
  CHECK(num_refused >= 8);
}

TEST_CASE("resident memory stays within weights, KV plan and 150 MB") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("skipped: a sanitizer's own memory would be measured");
#else
  const Home home;
  const DaemonProcess daemon(home);
  const auto work = [&](int seed) {
    ipc::GenerateRequest request;
    request.prompt_ids = std::vector<int32_t>(600, seed % 500);
    request.params.ignore_eos = true;
    (void)daemon.client().generate(request, {});
  };
  std::vector<std::jthread> clients;
  for (int i = 0; i < 8; ++i) clients.emplace_back(work, i);
  clients.clear();
  const ipc::Status status = daemon.status();
  CHECK(status.rss_bytes <
        status.model->memory.weights + status.model->memory.kv_cache + 150'000'000);
#endif
}

}  // namespace tgi
