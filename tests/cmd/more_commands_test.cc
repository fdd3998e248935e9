// tokenize, detokenize, render, run, logs, version, pull, and flags before the command.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/detokenize.h"
#include "ipc/placed_model.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

// A daemon with the demo as its default model, and those beside it that it is told of. Loads the
// models of `loadable` when they are asked for, and no others.
struct DaemonWithOthers {
  std::vector<std::string> loadable;
  std::set<std::string> taken_meanwhile{};  // names by which others load something
  bool answers_old = false;                 // it does not say which name a model got
  std::mutex mutex{};
  std::vector<ipc::OtherModelStatus> others{};  // guarded by mutex

  std::vector<std::string> names() {
    const std::lock_guard lock(mutex);
    std::vector<std::string> out;
    for (const ipc::OtherModelStatus& each : others) out.push_back(each.name);
    return out;
  }

  void keep(FakeSession& session, ipc::OtherModelStatus& model) const {
    if (std::ranges::find(loadable, model.path) == loadable.end()) {
      model.phase = "failed";
      model.phase_detail = "it is broken";
      return session.send_error(Code::kInvalidArgument, model.phase_detail);
    }
    model.phase = "ready";
    model.phase_detail.clear();
    model.model = ready_status().model;
    model.model->name = model.path;
    session.send(ipc::encode_result(OrderedJson::object()));
  }

  void answer(FakeSession& session) {
    const std::string& method = session.request().method;
    const OrderedJson& params = session.request().params;
    const std::lock_guard lock(mutex);
    const auto named = [&] {
      return std::ranges::find(others, params.value("model", ""), &ipc::OtherModelStatus::name);
    };
    if (method == ipc::kStatus) {
      ipc::Status status = ready_status();
      status.others = others;
      return session.send(ipc::encode_result(ipc::to_json(status)));
    }
    if (method == ipc::kKeep && named() != others.end()) return keep(session, *named());
    if (method == ipc::kLoad) {
      if (answers_old) return session.send(ipc::encode_result(OrderedJson::object()));
      std::string name = params.value("name", "");
      const auto is_taken = [&] {
        return taken_meanwhile.contains(name) ||
               std::ranges::find(others, name, &ipc::OtherModelStatus::name) != others.end();
      };
      for (int i = 2; is_taken(); ++i) name = params.value("name", "") + "-" + std::to_string(i);
      others.push_back({.name = name,
                        .phase = "not loaded",
                        .phase_detail = "",
                        .path = params.value("model", "")});
      const ipc::PlacedModel placed{.model = "", .name = name, .is_new = true};
      return session.send(ipc::encode_result(ipc::to_json(placed)));
    }
    if (method == ipc::kUnload) others.erase(named());
    if (method != ipc::kGenerate) return session.send(ipc::encode_result(OrderedJson::object()));
    ipc::DoneEvent done;
    done.best.text = "by " + params.value("model", "the default");
    session.send_text(done.best.text);
    session.send_done(done);
  }
};

// A tokenizer of bytes, and the template "[role]content".
FakeDaemon::Script byte_model() {
  return [](FakeSession& session) {
    const OrderedJson& params = session.request().params;
    if (session.request().method == ipc::kDetokenize) {
      ipc::DetokenizeResult result;
      for (const int32_t id : ipc::detokenize_params_from_json(params).ids) {
        result.text += static_cast<char>(id);
      }
      return session.send(OrderedJson{{"result", ipc::to_json(result)}}.dump());
    }
    if (session.request().method == ipc::kTokenize) {
      ipc::TokenizeResult result;
      result.text = params.value("prompt", "");
      for (const OrderedJson& message : params.value("messages", OrderedJson::array())) {
        result.text +=
            "[" + message["role"].get<std::string>() + "]" + message["content"].get<std::string>();
      }
      for (const char one : result.text) {
        result.tokens.emplace_back();
        result.tokens.back().id = one;
        result.tokens.back().text = std::string(1, one);
      }
      return session.send(OrderedJson{{"result", ipc::to_json(result)}}.dump());
    }
    ready_model([](FakeSession& asked) {
      ipc::DoneEvent done;
      done.best.text = asked.request().params.dump();
      asked.send_text(done.best.text);
      asked.send_done(done);
    })(session);
  };
}

std::string model_folder(const Home& home, const std::string& name) {
  std::filesystem::create_directories(home.file(name));
  home.write(name + "/config.json", "{}");
  return home.file(name);
}

}  // namespace

TEST_CASE("tokens of a text and back") {
  const Home home;
  const FakeDaemon daemon(home.socket(), byte_model());
  CHECK(home.run({"tokenize", "ab"}).out == "      97 \"a\"\n      98 \"b\"\n");
  CHECK(home.run({"tokenize", "--ids"}, "ab\n").out == "97 98\n");
  CHECK(home.run({"detokenize", "97", "98"}).out == "ab\n");
  CHECK(home.run({"detokenize"}, "[97, 98]\n").out == "ab\n");
  const Ran wrong = home.run({"detokenize", "x"});
  CHECK(wrong.exit_status == 3);
  CHECK_THAT(wrong.err, Catch::Contains("expected the id of a token") && Catch::Contains("got x"));
}

TEST_CASE("tokens and templates are those of the model that -m names") {
  const Home home;
  const FakeDaemon daemon(home.socket(), [](FakeSession& session) {
    const std::string& method = session.request().method;
    if (method == ipc::kStatus) {
      ipc::Status status = ready_status();
      status.others.push_back(
          {.name = "second", .phase = "ready", .phase_detail = "", .model = status.model});
      return session.send(OrderedJson{{"result", ipc::to_json(status)}}.dump());
    }
    byte_model()(session);
  });
  const std::vector<std::pair<std::vector<std::string>, std::string_view>> kCommands = {
      {{"tokenize", "ab"}, ipc::kTokenize},
      {{"render", "ab"}, ipc::kTokenize},
      {{"detokenize", "97"}, ipc::kDetokenize}};
  for (auto [words, method] : kCommands) {
    words.insert(words.end(), {"-m", "second"});
    const Ran ran = home.run(words);
    CAPTURE(words.front(), ran.err);
    CHECK(ran.exit_status == 0);
    REQUIRE_FALSE(daemon.requests().empty());
    const std::string asked = daemon.requests().back();
    CHECK_THAT(asked,
               Catch::StartsWith(std::string(method)) && Catch::Contains(R"("model":"second")"));
  }
}

TEST_CASE("render writes what the template makes, to the byte") {
  const Home home;
  const FakeDaemon daemon(home.socket(), byte_model());
  CHECK(home.run({"render", "hi", "--system", "be brief"}).out == "[system]be brief[user]hi");
  const std::string file = home.write("talk.json", R"([{"role":"user","content":"a"}])");
  CHECK(home.run({"render", "-f", file}).out == "[user]a");
  CHECK(home.run({"render"}).exit_status == 2);
}

TEST_CASE("run answers a prompt or a pipe as a chat") {
  const Home home;
  const FakeDaemon daemon(home.socket(), byte_model());
  for (const Ran& ran : {home.run({"run", "demo", "hi", "--system", "s"}),
                         home.run({"run", "demo", "--system", "s"}, "hi\n")}) {
    INFO(ran.err);
    CHECK(ran.exit_status == 0);
    CHECK_THAT(ran.out, Catch::Contains(
                            R"([{"role":"system","content":"s"},{"role":"user","content":"hi"}])"));
  }
}

TEST_CASE("a model that can't be loaded beside the others leaves no name") {
  const Home home;
  const std::string path = model_folder(home, "broken");
  DaemonWithOthers others;
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) { others.answer(session); });
  for (int i = 0; i < 3; ++i) {
    const Ran ran = home.run({"run", path, "hi"});
    CHECK(ran.exit_status == code_row(Code::kInvalidArgument).exit_status);
    CHECK_THAT(ran.err, Catch::Contains("it is broken"));
    CHECK(others.names().empty());
  }
  others.loadable = {path};
  for (int i = 0; i < 2; ++i) CHECK(home.run({"run", path, "hi"}).out == "by broken\n");
  CHECK(others.names() == std::vector<std::string>{"broken"});
  // One that failed under a name that somebody gave it is tried again by that.
  others.others = {{.name = "mine", .phase = "failed", .phase_detail = "no memory", .path = path}};
  CHECK(home.run({"run", path, "hi"}).out == "by mine\n");
  CHECK(others.names() == std::vector<std::string>{"mine"});
}

TEST_CASE("a name that another command takes in the same moment is left to it") {
  const Home home;
  const std::string path = model_folder(home, "second");
  DaemonWithOthers others{.loadable = {path}, .taken_meanwhile = {"second"}};
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) { others.answer(session); });
  CHECK(home.run({"run", path, "hi"}).out == "by second-2\n");
}

TEST_CASE("a daemon that does not say which name a model got is refused, by what is missing") {
  const Home home;
  const std::string path = model_folder(home, "second");
  DaemonWithOthers others{.loadable = {path}, .answers_old = true};
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) { others.answer(session); });
  const Ran ran = home.run({"run", path, "hi"});
  CHECK(ran.exit_status == code_row(Code::kInvalidArgument).exit_status);
  CHECK_THAT(ran.err, Catch::Contains("result.name: missing"));
}

TEST_CASE("a model of a path is loaded beside the others again when it was unloaded meanwhile") {
  const Home home;
  const std::string path = model_folder(home, "second");
  DaemonWithOthers others{.loadable = {path}};
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) { others.answer(session); });
  Process chat(home, {{"chat", "-m", path}, {}, {}, std::nullopt}, Process::Kind::kPipes);
  chat.write("one\n");
  REQUIRE(chat.wait_for_output("by second\n"));
  {
    const std::lock_guard lock(others.mutex);
    others.others = {{.name = "second",  // by which somebody loads another one
                      .phase = "not loaded",
                      .phase_detail = "",
                      .path = "/elsewhere/second"}};
  }
  chat.write("two\n");
  CHECK(chat.wait_for_output("by second-2\n"));
  CHECK(others.names() == std::vector<std::string>{"second", "second-2"});
}

TEST_CASE("an empty name is no model, and of a folder that is none those in it are told") {
  const Home home;
  CHECK(home.run({"run", "", "hi"}).exit_status == 2);
  CHECK(home.run({"generate", "-m", "", "hi"}).exit_status == 2);
  CHECK(home.run({"load", ""}).exit_status == code_row(Code::kInvalidArgument).exit_status);
  const std::string path = model_folder(home, "inside");
  const std::string above = std::filesystem::path(path).parent_path().string();
  const Ran ran = home.run({"run", above, "hi"});
  CHECK(ran.exit_status == code_row(Code::kNotFound).exit_status);
  CHECK_THAT(ran.err, Catch::Contains("no config.json; models in it are " + path));
  CHECK_THAT(home.run({"load", above}).err, Catch::Contains("models in it are " + path));

  // A repository of the hub's cache, and the folder that such a download left behind.
  const std::string cached = home.file("models--org--tiny");
  std::filesystem::create_directories(cached + "/snapshots");
  std::filesystem::rename(path, cached + "/snapshots/abc");
  CHECK_THAT(home.run({"load", cached}).err,
             Catch::Contains("models in it are " + cached + "/snapshots/abc"));
}

TEST_CASE("a folder with one file of GGUF in it is a model to every command") {
  const Home home;
  const std::string folder = home.file("files");
  DaemonWithOthers others{.loadable = {folder}};
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) { others.answer(session); });
  std::filesystem::create_directory(folder);
  home.write("files/mmproj-tiny.gguf", "GGUF");
  CHECK_THAT(home.run({"run", folder, "hi"}).err, Catch::Contains("has no config.json"));
  home.write("files/tiny.gguf", "GGUF");
  CHECK(home.run({"run", folder, "hi"}).out == "by files\n");
}

TEST_CASE("logs shows the log and its end") {
  const Home home;
  const Ran none = home.run({"logs"});
  CHECK(none.exit_status == 4);
  CHECK_THAT(none.err, Catch::Contains("tgid.log"));
  home.run({"logs"});
  REQUIRE(std::system(("mkdir -p " + home.state()).c_str()) == 0);
  REQUIRE(std::system(("printf 'a\\nb\\nc\\n' >" + home.state() + "/tgid.log").c_str()) == 0);
  CHECK(home.run({"logs"}).out == "a\nb\nc\n");
  CHECK(home.run({"logs", "-n", "2"}).out == "b\nc\n");
  CHECK(home.run({"logs", "-n", "9"}).out == "a\nb\nc\n");
}

TEST_CASE("version tells both versions and starts nothing") {
  const Home home;
  CHECK_THAT(home.run({"version"}).out,
             Catch::StartsWith("tgi ") && Catch::EndsWith("\ntgid is not running\n"));
  const FakeDaemon daemon(home.socket(), byte_model());
  CHECK_THAT(home.run({"version"}).out, !Catch::Contains("not running"));
  CHECK(OrderedJson::parse(home.run({"version", "--json"}).out)["daemon"].is_string());
}

TEST_CASE("flags that all commands share may stand before the command") {
  const Home home;
  const FakeDaemon daemon(home.file("other.sock"), byte_model());
  const Ran ran = home.run({"--socket", home.file("other.sock"), "-v", "tokenize", "a"});
  INFO(ran.err);
  CHECK(ran.out == "      97 \"a\"\n");
  CHECK(home.run({"--socket", home.file("other.sock"), "nonsense"}).exit_status == 2);
}

}  // namespace tgi
