#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "cmd/sampling_flags.h"
#include "ipc/protocol.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

std::string last_message(FakeSession& session) {
  return session.request().params["messages"].back()["content"].get<std::string>();
}

// Says "re: " and the last message, in pieces.
void reply(FakeSession& session) {
  const std::string text = "re: " + last_message(session);
  session.send_text(text.substr(0, 3));
  session.send_text(text.substr(3));
  ipc::DoneEvent done;
  done.best.text = text;
  done.best.num_generated_tokens = 2;
  session.send_done(done);
}

// The requests of the chat without the questions for the status.
std::vector<OrderedJson> asked(const FakeDaemon& daemon) {
  std::vector<OrderedJson> out;
  for (const std::string& request : daemon.requests()) {
    if (request.starts_with("generate ")) out.push_back(OrderedJson::parse(request.substr(9)));
  }
  return out;
}

bool at_prompt(Process& chat) {
  return chat.wait_for_output(">>> ") && chat.wait_for_keys();
}

RunSetup chat_on_terminal() {
  return {.arguments = {"chat", "--raw"}, .input = {}, .environment = {}, .output_file = {}};
}

}  // namespace

TEST_CASE("chat without a terminal answers line after line and remembers") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  const Ran ran = home.run({"chat", "--system", "be brief", "--top-k", "5"}, "one\ntwo");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out == "re: one\nre: two\n");
  CHECK(ran.err.empty());
  const auto requests = asked(daemon);
  REQUIRE(requests.size() == 2);
  CHECK(requests[1]["messages"].dump() ==
        R"([{"role":"system","content":"be brief"},{"role":"user","content":"one"},)"
        R"({"role":"assistant","content":"re: one"},{"role":"user","content":"two"}])");
  CHECK(requests[1]["top_k"] == 5);
  CHECK(requests[1]["stream"] == true);
}

TEST_CASE("tools that the model calls are shown, and what is read next are their results") {
  const Home home;
  std::atomic<int> num_asked = 0;
  const FakeDaemon daemon(
      home.socket(), ready_model([&](FakeSession& session) {
        if (++num_asked != 1) return reply(session);
        ipc::DoneEvent done;
        done.best.reasoning = "I should look.";
        done.best.tool_calls = {
            {.index = 0, .id = "a", .name = "look", .arguments = R"({"at":"x"})"},
            {.index = 1, .id = "b", .name = "ping", .arguments = "{}"}};
        done.best.finish_reason = ipc::FinishReason::kEosToken;
        session.send_done(done);
      }));
  const std::string tools = home.write(
      "tools.json", R"({"tools": [{"name": "look", "parameters": {}}, {"type": "function",
                                 "function": {"name": "ping"}}]})");
  const Ran ran = home.run(
      {"chat", "--tools", tools, "--reasoning-effort", "low", "--max-reasoning-tokens", "5"},
      "what is there?\na tree\npong\nthanks\n");
  INFO(ran.err);
  CHECK(ran.exit_status == 0);
  CHECK(ran.out ==
        "{\"id\":\"a\",\"name\":\"look\",\"arguments\":{\"at\":\"x\"}}\n"
        "{\"id\":\"b\",\"name\":\"ping\",\"arguments\":{}}\n"
        "re: pong\nre: thanks\n");
  const auto requests = asked(daemon);
  REQUIRE(requests.size() == 3);
  CHECK(requests[0]["tools"].dump() ==
        R"([{"type":"function","function":{"name":"look","parameters":{}}},)"
        R"({"type":"function","function":{"name":"ping"}}])");
  CHECK(requests[0]["reasoning_effort"] == "low");
  CHECK(requests[0]["max_reasoning_tokens"] == 5);
  CHECK(
      requests[1]["messages"].dump() ==
      R"([{"role":"user","content":"what is there?"},{"role":"assistant","content":"",)"
      R"("tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":)"
      R"("{\"at\":\"x\"}"}},{"id":"b","type":"function","function":{"name":"ping","arguments":"{}"}}]},)"
      R"({"role":"tool","tool_call_id":"a","name":"look","content":"a tree"},)"
      R"({"role":"tool","tool_call_id":"b","name":"ping","content":"pong"}])");
  CHECK(requests[2]["messages"].size() == 6);
}

TEST_CASE(
    "a chat whose input ends before the result of a call ends, and a file without tools is "
    "refused") {
  const Home home;
  const FakeDaemon daemon(
      home.socket(), ready_model([](FakeSession& session) {
        ipc::DoneEvent done;
        done.best.tool_calls = {{.index = 0, .id = "a", .name = "look", .arguments = "{}"}};
        session.send_done(done);
      }));
  const std::string tools = home.write("tools.json", R"([{"name": "look"}])");
  const Ran ran = home.run({"chat", "--tools", tools}, "go\n");
  CHECK(ran.exit_status == 0);
  CHECK(asked(daemon).size() == 1);
  struct Row {
    std::string text;
    std::string message;
  };
  for (const Row& row :
       {Row{"{", "not valid JSON at line 1"}, Row{"[]", "expected a JSON list of tools"},
        Row{"3", "expected a JSON list of tools"}}) {
    const std::string path = home.write("bad.json", row.text);
    const Ran bad = home.run({"chat", "--tools", path}, "go\n");
    CHECK(bad.exit_status == 3);
    CHECK_THAT(bad.err, Catch::Contains("bad.json: ") && Catch::Contains(row.message));
  }
  CHECK(home.run({"chat", "--tools", "/nonexistent/x"}, "go\n").exit_status == 4);
}

TEST_CASE("a message may have several lines") {
  struct Row {
    std::string input;
    std::string message;
  };
  const Row row =
      GENERATE(Row{"a\\\nb\\\nc\n", "a\nb\nc"}, Row{"\"\"\"\na\n\nb\n\"\"\"\n", "a\n\nb"},
               Row{"\"\"\"a\nb\"\"\"\n", "a\nb"}, Row{"\"\"\"one\"\"\"\n", "one"},
               Row{"//slash\n", "/slash"}, Row{"\n\nafter empty lines\n", "after empty lines"},
               Row{"\"\"\"\nnever closed", "never closed\n"});
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  CHECK(home.run({"chat"}, row.input).exit_status == 0);
  const auto requests = asked(daemon);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0]["messages"].back()["content"] == row.message);
}

TEST_CASE("chat commands change what is asked") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  const Ran ran = home.run({"chat"},
                           "/set temperature 0.5\n/set top_k 7\n/set stop \"\\n\"\n/system first\n"
                           "hi\n/set top_k off\n/clear\n/system second\nagain\n/regenerate\n"
                           "/quit\nnever asked\n");
  CHECK(ran.exit_status == 0);
  CHECK(ran.err.empty());
  const auto requests = asked(daemon);
  REQUIRE(requests.size() == 3);
  CHECK(requests[0]["temperature"] == 0.5);
  CHECK(requests[0]["top_k"] == 7);
  CHECK(requests[0]["stop"].dump() == R"(["\n"])");
  CHECK(requests[0]["messages"].size() == 2);
  CHECK_FALSE(requests[1].contains("top_k"));
  CHECK(requests[1]["messages"].dump() ==
        R"([{"role":"system","content":"second"},{"role":"user","content":"again"}])");
  CHECK(requests[2]["messages"] == requests[1]["messages"]);
}

TEST_CASE("chat commands that show something") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  const Ran ran = home.run({"chat", "--seed", "3"}, "/set\n/system\n/help\n");
  CHECK_THAT(ran.out,
             Catch::StartsWith("seed 3\nstats off\ncontext stop\nno system message\n/help"));
  CHECK_THAT(ran.out, Catch::Contains("/regenerate"));
}

TEST_CASE("a wrong chat command is reported and changes nothing") {
  struct Row {
    std::string command;
    std::string message;
  };
  const Row row = GENERATE(
      Row{"/nope", "/nope: no such command"},
      Row{"/set temperature 0", "without it the likeliest token is taken"},
      Row{"/set nope 1", "nope: no such parameter; known are max-new-tokens"},
      Row{"/set seed", "/set seed: expected a value"}, Row{"/set best-of 2", "no such parameter"},
      Row{"/set stats maybe", "stats: expected on or off"}, Row{"/clear now", "takes no arguments"},
      Row{"/regenerate", "there is no answer yet"}, Row{"/save", "/save: expected a file name"},
      Row{"/load /nonexistent/x", "No such file"});
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  const Ran ran = home.run({"chat"}, row.command + "\nhi\n");
  CHECK_THAT(ran.err, Catch::Contains(row.message));
  CHECK(ran.exit_status == (row.command.starts_with("/load") ? 4 : 3));
  CHECK(ran.out == "re: hi\n");
  CHECK(asked(daemon).at(0)["messages"].size() == 1);
}

TEST_CASE("a turn that fails is taken back and the chat goes on") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            if (last_message(session) == "bad") {
                              session.send_error(Code::kUnsupported, "no");
                            } else {
                              reply(session);
                            }
                          }));
  const Ran ran = home.run({"chat"}, "bad\n\xFF\ngood\n");
  CHECK(ran.exit_status == 5);
  CHECK(ran.out == "re: good\n");
  CHECK(ran.err == "error: no\nerror: the message is not valid UTF-8 at its byte 0\n");
  CHECK(asked(daemon).back()["messages"].size() == 1);
}

TEST_CASE("a model without a chat template goes on with each line as it stands, which is said") {
  const Home home;
  const FakeDaemon daemon(home.socket(), [](FakeSession& session) {
    if (session.request().method != "generate") {
      ipc::Status status = ready_status();
      status.model->has_chat_template = false;
      return session.send(ipc::encode_result(ipc::to_json(status)));
    }
    ipc::DoneEvent done;
    done.best.text = "<" + session.request().params["prompt"].get<std::string>() + ">";
    done.best.num_generated_tokens = 2;
    session.send_text(done.best.text);
    session.send_done(done);
  });
  const auto says_once = [](const std::string& err) {
    return err.find("no chat template") != std::string::npos &&
           err.find("no chat template") == err.rfind("no chat template");
  };
  const Ran ran = home.run({"chat"}, "one\ntwo\n/regenerate\n\"\"\"\na\nb\n\"\"\"\n");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out == "<one>\n<two>\n<two>\n<a\nb>\n");
  CHECK(says_once(ran.err));
  for (const OrderedJson& request : asked(daemon)) {
    CHECK_FALSE(request.contains("messages"));
    CHECK_FALSE(request.contains("parse_answer"));
  }
  // What has no place without a template is refused, before anything is answered.
  const std::vector<std::vector<std::string>> needs = {{"chat", "--system", "be brief"},
                                                       {"chat", "--reasoning-effort", "low"}};
  for (const std::vector<std::string>& words : needs) {
    const Ran refused = home.run(words, "one\ntwo\n");
    CHECK(refused.exit_status == code_row(Code::kUnsupported).exit_status);
    CHECK(refused.out.empty());
    CHECK(says_once(refused.err));
  }
  // On a terminal it is said before anything is typed.
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(chat.wait_for_output("no chat template"));
  REQUIRE(at_prompt(chat));
  chat.write("one\n");
  CHECK(chat.wait_for_output("<one>"));
  chat.write("/bye\n");
  CHECK(chat.wait() == 0);
}

TEST_CASE("a saved conversation can be gone on with") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  const std::string path = home.file("talk.json");
  CHECK(home.run({"chat", "--system", "s"}, "one\n/save " + path + "\n").exit_status == 0);
  CHECK(OrderedJson::parse(read_file(path))["messages"].size() == 3);
  CHECK(home.run({"chat"}, "/load " + path + "\ntwo\n").exit_status == 0);
  const OrderedJson messages = asked(daemon).back()["messages"];
  CHECK(messages.size() == 4);
  CHECK(messages[0]["content"] == "s");
  CHECK(home.run({"chat", "--load", path}, "three\n").exit_status == 0);
  CHECK(asked(daemon).back()["messages"].size() == 4);
  for (const auto& entry : std::filesystem::directory_iterator(home.file("."))) {
    CHECK_FALSE(entry.path().string().starts_with(path + "."));  // no temporary file stays
  }
}

TEST_CASE("a file that is no conversation is refused by name") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  const std::string path = home.write("bad.json", GENERATE("{", "{}", "[]", "[1]", "[{}]"));
  const Ran ran = home.run({"chat", "--load", path}, "hi\n");
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Catch::StartsWith("error: " + path + ": "));
}

TEST_CASE("stats go to stderr after each answer") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  const Ran ran = home.run({"chat", "--stats"}, "one\n");
  CHECK(ran.out == "re: one\n");
  CHECK_THAT(ran.err, Catch::StartsWith("prompt 0 tokens (0 cached), generated 2 (length)"));
}

TEST_CASE("on a terminal chat edits lines, answers, and ends with Ctrl-D") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(at_prompt(chat));
  chat.write("helloX\x7Fж\n");  // a typing error taken back, then a letter of two bytes
  REQUIRE(chat.wait_for_output("re: helloж"));
  REQUIRE(at_prompt(chat));
  chat.write("\x04");
  chat.read_to_end();
  CHECK(chat.wait() == 0);
  CHECK(asked(daemon).at(0)["messages"].back()["content"] == "helloж");
}

TEST_CASE("Ctrl-C stops the answer and not the chat, and what was said stays") {
  const Home home;
  std::promise<bool> left;
  std::atomic<int> num_asked = 0;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            if (++num_asked > 1) return reply(session);
                            session.send_text("a long sto");
                            left.set_value(session.client_leaves_within(5000));
                          }));
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(at_prompt(chat));
  chat.write("tell me\n");
  REQUIRE(chat.wait_for_output("a long sto"));
  chat.interrupt();
  CHECK(left.get_future().get());
  REQUIRE(chat.wait_for_output("(stopped; "));
  REQUIRE(at_prompt(chat));
  const std::string after = chat.output().substr(chat.output().find("(stopped; "));
  CHECK(after.find("^C") ==
        std::string::npos);  // it was one Ctrl-C, not one for the prompt as well
  chat.write("go on\n");
  REQUIRE(chat.wait_for_output("re: go on"));
  REQUIRE(at_prompt(chat));
  chat.write("\x04");
  chat.read_to_end();
  CHECK(chat.wait() == 0);
  CHECK(asked(daemon).at(1)["messages"][1]["content"] == "a long sto");
}

TEST_CASE("Ctrl-C before an answer begins stops the turn and keeps the conversation") {
  const Home home;
  std::promise<bool> left;
  std::promise<void> is_asking;
  std::atomic<bool> hold = false;
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) {
    if (session.request().method == "status" && hold.exchange(false)) {
      is_asking.set_value();
      left.set_value(session.client_leaves_within(5000));
      return;
    }
    ready_model(reply)(session);
  });
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(at_prompt(chat));
  chat.write("one\n");
  REQUIRE(chat.wait_for_output("re: one"));
  REQUIRE(at_prompt(chat));
  hold = true;
  chat.write("two\n");
  is_asking.get_future().wait();
  chat.interrupt();
  CHECK(left.get_future().get());
  REQUIRE(chat.wait_for_output("(stopped)"));
  REQUIRE(at_prompt(chat));
  chat.write("three\n");
  REQUIRE(chat.wait_for_output("re: three"));
  REQUIRE(at_prompt(chat));
  chat.write("\x04");
  chat.read_to_end();
  CHECK(chat.wait() == 0);
  CHECK(asked(daemon).back()["messages"].dump() ==
        R"([{"role":"user","content":"one"},{"role":"assistant","content":"re: one"},)"
        R"({"role":"user","content":"three"}])");
}

TEST_CASE("Ctrl-D typed during an answer ends the chat after it") {
  const Home home;
  std::promise<void> typed;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            session.send_text("begin");
                            typed.get_future().wait();
                            session.send_text(" end");
                            session.send_done({});
                          }));
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(at_prompt(chat));
  chat.write("go\n");
  REQUIRE(chat.wait_for_output("begin"));
  chat.write("\x04");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  typed.set_value();
  REQUIRE(chat.wait_for_output(" end"));
  chat.read_to_end();
  CHECK(chat.wait() == 0);
}

TEST_CASE("a chat that is ended by a signal gives the terminal back as it was") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(at_prompt(chat));
  // The prompt is written before libedit takes the terminal over, and it notes that it has after it
  // did: a signal in between leaves the terminal as it is just then.
  for (int i = 0; i < 500 && chat.takes_lines(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(!chat.takes_lines());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(chat.pid(), SIGTERM);
  CHECK(chat.wait() == 128 + SIGTERM);
  CHECK(chat.takes_lines());
}

TEST_CASE("Ctrl-C at the prompt clears the line") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(at_prompt(chat));
  chat.write("forget this");
  REQUIRE(chat.wait_for_output("forget this"));
  chat.interrupt();
  REQUIRE(chat.wait_for_output("^C"));
  REQUIRE(at_prompt(chat));
  chat.write("kept\n");
  REQUIRE(chat.wait_for_output("re: kept"));
  REQUIRE(at_prompt(chat));
  chat.write("/quit\n");
  chat.read_to_end();
  CHECK(chat.wait() == 0);
  REQUIRE(asked(daemon).size() == 1);
  CHECK(asked(daemon)[0]["messages"].size() == 1);
}

TEST_CASE("the history of a chat is private and there again the next time") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(reply));
  {
    Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
    REQUIRE(at_prompt(chat));
    chat.write("remember me\n");
    REQUIRE(chat.wait_for_output("re: remember me"));
    REQUIRE(at_prompt(chat));
    chat.write("\x04");
    chat.read_to_end();
    CHECK(chat.wait() == 0);
  }
  struct stat status {};
  REQUIRE(::stat((home.state() + "/chat_history").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(at_prompt(chat));
  chat.write("\x10\n");  // Ctrl-P: the line before
  REQUIRE(chat.wait_for_output("re: remember me"));
  REQUIRE(at_prompt(chat));
  chat.write("\x04");
  chat.read_to_end();
  CHECK(chat.wait() == 0);
  CHECK(asked(daemon).size() == 2);
}

TEST_CASE("a chat on a terminal outlives a daemon that was replaced") {
  const Home home;
  auto daemon = std::make_unique<FakeDaemon>(home.socket(), ready_model(reply));
  Process chat(home, chat_on_terminal(), Process::Kind::kTerminal);
  REQUIRE(at_prompt(chat));
  daemon.reset();
  chat.write("anyone\n");
  REQUIRE(chat.wait_for_output("error"));
  REQUIRE(at_prompt(chat));
  daemon = std::make_unique<FakeDaemon>(home.socket(), ready_model(reply));
  chat.write("back\n");
  REQUIRE(chat.wait_for_output("re: back"));
  REQUIRE(at_prompt(chat));
  chat.write("\x04");
  chat.read_to_end();
  CHECK(chat.wait() == 0);
  CHECK(asked(*daemon).at(0)["messages"].size() == 1);
}

TEST_CASE("every generation parameter of the wire has a flag") {
  std::set<std::string> fields;
  for (const SamplingFlag& flag : sampling_flags()) fields.insert(std::string(flag.field));
  ipc::GenerateParams all;
  all.max_new_tokens = all.min_new_tokens = all.top_k = all.truncate = all.speculate = 1;
  all.temperature = all.top_p = all.typical_p = all.min_p = 0.5;
  all.repetition_penalty = all.frequency_penalty = all.presence_penalty = 0.5;
  all.do_sample = true;
  all.seed = 1;
  all.stop = {"x"};
  const OrderedJson wire = ipc::to_json(all);
  for (const auto& item : wire.items()) {
    if (item.key() == "details") continue;  // a flag of its own
    CAPTURE(item.key());
    CHECK(fields.contains(item.key()));
  }
  CHECK(fields.size() == wire.size() - 1);
}

}  // namespace tgi
