// Several models in one daemon, over its socket and from the command line.
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

const std::vector<std::string> kSmall = {"--backend",          "cpu", "--kv-cache-memory", "1MiB",
                                         "--max-total-tokens", "64"};

std::vector<std::string> with(std::vector<std::string> flags) {
  flags.insert(flags.end(), kSmall.begin(), kSmall.end());
  return flags;
}

ipc::DoneEvent ask(const ipc::Client& client, const std::optional<std::string>& model) {
  ipc::GenerateRequest request;
  request.model = model;
  request.prompt = "Once upon a time";
  request.params.max_new_tokens = 4;
  return client.generate(request, {});
}

}  // namespace

TEST_CASE("a daemon with two models answers by the one that a request names") {
  const Home home;
  const DaemonProcess daemon(home, with({"--model", "demo", "--model", "second=demo"}));
  REQUIRE(daemon.wait_for([](const ipc::Status& status) {
    return status.others.size() == 1 && status.others.front().phase == "ready";
  }));
  const ipc::Client client = daemon.client();
  const std::string text = ask(client, std::nullopt).best.text;
  CHECK(ask(client, "second").best.text == text);  // the same weights
  ipc::Status status = daemon.status();
  CHECK(status.counters.num_requests == 1);
  CHECK(status.others.front().name == "second");
  CHECK(status.others.front().counters.num_requests == 1);
  CHECK(status.others.front().model->served_name == "second");
  CHECK_THROWS_WITH(ask(client, "third"),
                    Catch::Contains("third") && Catch::Contains("demo, second"));
  const ipc::OrderedJson second = {{"model", "second"}};
  CHECK(client.call(ipc::kTokenize, {{"model", "second"}, {"prompt", "hi"}}) ==
        client.call(ipc::kTokenize, {{"prompt", "hi"}}));
  CHECK(client.call(ipc::kAdapters, second).contains("adapters"));
  client.call(ipc::kUnload, second);
  status = daemon.status();
  CHECK(status.others.empty());
  CHECK(status.model);
  CHECK(ask(client, std::nullopt).best.text == text);
}

TEST_CASE("a chat goes on with another model, which is loaded for it") {
  const Home home;
  const DaemonProcess daemon(home, {"--model", "demo", "--on-demand", "second=demo"});
  const Ran ran = home.run({"chat", "--max-new-tokens", "4"},
                           "hello\n/model\n/model second\nand now\n/model third\n/model demo\n"
                           "/show\n");
  CHECK_THAT(ran.out, Catch::Contains("* demo ") && Catch::Contains(", the default") &&
                          Catch::Contains("  second ") && Catch::Contains("not loaded") &&
                          Catch::Contains("messages 4"));
  CHECK_THAT(ran.err, Catch::Contains("the daemon has no model third: /model lists those"));
  CHECK(ran.exit_status == code_row(Code::kNotFound).exit_status);
  const ipc::Status status = daemon.status();
  CHECK(status.counters.num_requests == 1);
  CHECK(status.others.front().counters.num_requests == 1);
}

TEST_CASE("adapters are those of the model that is named") {
  const Home home;
  const DaemonProcess daemon(home, with({"--model", "demo", "--model", "second=demo"}));
  REQUIRE(daemon.wait_for([](const ipc::Status& status) {
    return status.others.size() == 1 && status.others.front().phase == "ready";
  }));
  CHECK(home.run({"adapters", "-m", "second"}).exit_status == 0);
  const Ran ran = home.run({"adapters", "-m", "third", "--unload", "x"});
  CHECK(ran.exit_status == code_row(Code::kNotFound).exit_status);
  CHECK_THAT(ran.err, Catch::Contains("third"));
}

TEST_CASE("models are loaded, asked, listed and unloaded by name from the command line") {
  const Home home;
  const DaemonProcess daemon(home, with({"--model", "demo"}));
  const auto tgi = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--socket", daemon.socket()});
    return home.run(words);
  };
  const Ran loaded = tgi({"load", "demo", "--name", "second"});
  CHECK(loaded.exit_status == 0);
  CHECK_THAT(loaded.out, Catch::Contains("as second"));
  const Ran first = tgi({"generate", "Once", "--max-new-tokens", "4"});
  const Ran named = tgi({"generate", "Once", "--max-new-tokens", "4", "-m", "second"});
  CHECK(named.exit_status == 0);
  CHECK(named.out == first.out);
  CHECK(daemon.status().others.front().counters.num_requests == 1);
  const Ran ps = tgi({"ps"});
  CHECK_THAT(ps.out, Catch::Contains("memory of all") && Catch::Contains("second (demo)"));
  const Ran refused = tgi({"load", "demo", "--name", "large", "--kv-cache-memory", "900000GiB"});
  CHECK(refused.exit_status == code_row(Code::kOutOfMemory).exit_status);
  CHECK_THAT(refused.err, Catch::Contains("loaded beside it: demo "));
  CHECK(daemon.status().others.size() == 1);
  CHECK(tgi({"unload", "second"}).exit_status == 0);
  CHECK(daemon.status().others.empty());
  CHECK(tgi({"unload", "second"}).exit_status == code_row(Code::kNotFound).exit_status);
  CHECK(daemon.status().model);
}

}  // namespace tgi
