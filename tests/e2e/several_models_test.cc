// Several models in one daemon, over its socket and from the command line.
#include <filesystem>
#include <map>

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
                           "hello\n/model\n/model second\nand now\n/model no/third\n/model demo\n"
                           "/show\n");
  CHECK_THAT(ran.out, Catch::Contains("* demo ") && Catch::Contains(", the default") &&
                          Catch::Contains("  second ") && Catch::Contains("not loaded") &&
                          Catch::Contains("messages 4"));
  CHECK_THAT(ran.err, Catch::Contains("there is no model no/third: /model lists those"));
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
  CHECK_THAT(tgi({"show", "second"}).out, Catch::Contains("built in"));
  const Ran refused = tgi({"load", "demo", "--name", "large", "--kv-cache-memory", "900000GiB"});
  CHECK(refused.exit_status == code_row(Code::kOutOfMemory).exit_status);
  CHECK_THAT(refused.err, Catch::Contains("loaded beside it: demo "));
  CHECK(daemon.status().others.size() == 1);
  CHECK(tgi({"unload", "second"}).exit_status == 0);
  CHECK(daemon.status().others.empty());
  CHECK(tgi({"unload", "second"}).exit_status == code_row(Code::kNotFound).exit_status);
  CHECK(daemon.status().model);
}

TEST_CASE("a load by the default model's own name replaces it, so that names stay unique") {
  const Home home;
  REQUIRE(home.run({"create", "mario", "-f", "-"}, "FROM demo\nSYSTEM You are Mario.\n").err == "");
  const DaemonProcess daemon(home, with({"--model", "demo"}));
  const auto tgi = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--socket", daemon.socket()});
    return home.run(words);
  };
  CHECK(tgi({"load", "demo", "--name", "demo"}).exit_status == 0);
  CHECK(daemon.status().others.empty());
  CHECK(daemon.status().model->served_name == "demo");
  // What a preset's file is called the daemon doesn't know, and the command does.
  REQUIRE(tgi({"load", "mario"}).exit_status == 0);
  CHECK(tgi({"load", "demo", "--name", "mario"}).exit_status == 0);
  CHECK(daemon.status().others.empty());
  CHECK(daemon.status().model->served_name == "mario");
  CHECK(tgi({"load", "demo", "--name", "demo"}).exit_status == 0);
  CHECK(daemon.status().others.size() == 1);
  const Ran refused = tgi({"load", "demo"});
  CHECK(refused.exit_status == 3);
  CHECK_THAT(refused.err, Catch::Contains("tgi unload demo"));
  CHECK(tgi({"unload"}).exit_status == 0);
  CHECK(tgi({"unload"}).exit_status == code_row(Code::kNotFound).exit_status);
  CHECK(tgi({"ps"}).out.find("stays") == tgi({"ps"}).out.rfind("stays"));  // of the other one alone
}

TEST_CASE("a model that the daemon has not is loaded beside what it has, and given way for") {
  const Home home;
  REQUIRE(home.run({"create", "mario", "-f", "-"}, "FROM demo\nSYSTEM You are Mario.\n").err == "");
  std::filesystem::create_directories(home.file("models"));
  std::filesystem::copy(TGI_SOURCE_DIR "/assets/demo", home.file("models/of my own"));
  const DaemonProcess daemon(home, with({"--model", "demo", "--max-models", "2"}));
  const auto names = [&](const std::string& phase) {
    std::vector<std::string> out;
    const ipc::Status status = daemon.status();
    if (status.phase == phase) out.emplace_back("");
    for (const ipc::OtherModelStatus& other : status.others) {
      if (other.phase == phase) out.push_back(other.name);
    }
    return out;
  };
  CHECK(home.run({"run", "mario", "hi"}).exit_status == 0);
  CHECK(names("ready") == std::vector<std::string>{"", "mario"});
  // Of those that may, the one that was unused for longest.
  const Ran own = home.run({"generate", "Once", "-m", home.file("models/of my own")});
  CHECK(own.err == "");
  CHECK(names("ready") == std::vector<std::string>{"mario", "of-my-own"});
  CHECK(names("not loaded") == std::vector<std::string>{""});
  CHECK(home.run({"generate", "Once", "-m", "demo"}).out == own.out);  // the same weights
  CHECK(names("ready") == std::vector<std::string>{"", "of-my-own"});
  // By its path once more: it is the one that is there.
  CHECK(home.run({"generate", "Once", "-m", home.file("models/of my own")}).out == own.out);
  CHECK(daemon.status().others.size() == 2);
  // Both are listed, with the time of their use.
  const Ran ls = home.run({"ls", "--json"});
  std::map<std::string, bool> is_used;
  const ipc::OrderedJson listed = ipc::OrderedJson::parse(ls.out);
  for (const ipc::OrderedJson& each : listed) {
    is_used[each["name"].get<std::string>()] = !each["last_used_at"].is_null();
  }
  CHECK(is_used == std::map<std::string, bool>{
                       {"demo", false}, {"mario", true}, {home.file("models/of my own"), true}});
  const Ran chat = home.run({"chat"}, "/model mario\nhi\n/model\n");
  CHECK(chat.err == "");
  CHECK_THAT(chat.out, Catch::Contains("* mario"));
}

TEST_CASE("a chat goes on with a model of this machine that the daemon has not") {
  const Home home;
  REQUIRE(home.run({"create", "mario", "-f", "-"}, "FROM demo\nSYSTEM You are Mario.\n").err == "");
  const DaemonProcess daemon(home, with({"--model", "demo"}));
  const Ran ran = home.run({"chat", "--max-new-tokens", "4"}, "hello\n/model mario\nand now\n");
  CHECK(ran.err == "");
  CHECK(ran.exit_status == 0);
  REQUIRE(daemon.status().others.size() == 1);
  CHECK(daemon.status().others.front().counters.num_requests == 1);
}

}  // namespace tgi
