// Chat on a pseudo-terminal: pastes, Ctrl-C between turns, and what the commands say there.
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

void echo_prompt(FakeSession& session) {
  ipc::DoneEvent done;
  done.best.text =
      "re: " + session.request().params["messages"].back()["content"].get<std::string>();
  done.best.num_generated_tokens = 2;
  done.num_prompt_tokens = 5;
  session.send_text(done.best.text);
  session.send_done(done);
}

std::vector<OrderedJson> generated(const FakeDaemon& daemon) {
  std::vector<OrderedJson> out;
  for (const std::string& request : daemon.requests()) {
    if (request.starts_with("generate ")) out.push_back(OrderedJson::parse(request.substr(9)));
  }
  return out;
}

RunSetup on_terminal(std::vector<std::string> arguments) {
  return {.arguments = std::move(arguments),
          .input = {},
          .environment = {{"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}},
          .output_file = {}};
}

bool prompts(Process& chat) {
  return chat.wait_for_output(">>> ") && chat.wait_for_keys();
}

}  // namespace

TEST_CASE("what a terminal pastes is one turn, whatever lines it has") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo_prompt));
  Process chat(home, on_terminal({"chat"}), Process::Kind::kTerminal);
  REQUIRE(prompts(chat));
  chat.write("look: \x1b[200~int f() {\r\treturn 1;\r}\x1b[201~ ok?\n");
  REQUIRE(prompts(chat));
  chat.write("\x1b[200~/bye\x1b[201~\n");
  CHECK(chat.wait() == 0);
  const auto requests = generated(daemon);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0]["messages"].back()["content"] == "look: int f() {\n\treturn 1;\n} ok?");
}

TEST_CASE("a chat that is stopped and goes on has its line, its keys and its pastes again") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo_prompt));
  Process chat(home, on_terminal({"chat"}), Process::Kind::kTerminal);
  REQUIRE(prompts(chat));
  chat.write("abc");
  REQUIRE(chat.wait_for_output("abc"));
  for (int i = 0; i < 3; ++i) {
    ::kill(chat.pid(), SIGSTOP);
    int status = 0;
    REQUIRE(::waitpid(chat.pid(), &status, WUNTRACED) == chat.pid());
    REQUIRE(WIFSTOPPED(status));
    chat.take_lines();  // as a shell makes it for its commands
    ::kill(chat.pid(), SIGCONT);
    REQUIRE(chat.wait_for_output("\x1b[?2004h"));
    REQUIRE(chat.wait_for_output(">>> abc"));
    REQUIRE(chat.wait_for_keys());
  }
  // Ctrl-Z stops nobody here, for nobody could make it go on; it loses nothing either.
  for (int i = 0; i < 2; ++i) {
    chat.write("\x1a");
    REQUIRE(chat.wait_for_output("\x1b[?2004l"));
    REQUIRE(chat.wait_for_output(">>> abc"));
    REQUIRE(chat.wait_for_keys());
  }
  chat.write("\x01-\x05");  // to the line's begin and back to its end
  REQUIRE(chat.wait_for_output("-"));
  chat.write("\x1b[200~d\re\x1b[201~\n");
  REQUIRE(prompts(chat));
  chat.write("/bye\n");
  CHECK(chat.wait() == 0);
  const auto requests = generated(daemon);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0]["messages"].back()["content"] == "-abcd\ne");
}

TEST_CASE("a chat that a signal ends turns the terminal's marks of pastes off again") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo_prompt));
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    Process chat(home, on_terminal({"chat"}), Process::Kind::kTerminal);
    REQUIRE(prompts(chat));
    ::kill(chat.pid(), signal);
    CHECK(chat.wait_for_output("\x1b[?2004l"));
    CHECK(chat.wait() == 128 + signal);
    CHECK(chat.takes_lines());
  }
}

TEST_CASE("keys move by words and to the ends, and those without a meaning write nothing") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo_prompt));
  Process chat(home, on_terminal({"chat"}), Process::Kind::kTerminal);
  REQUIRE(prompts(chat));
  std::string typed = "one two three";
  typed += "\x1b[1;5D\x1b[1;3D";  // Ctrl and Alt with the left arrow: before two
  typed += "A";
  typed += "\x1b[1;5C";  // Ctrl and the right arrow: behind two
  typed += "B";
  typed += "\x1b[1~C\x1b[4~D";  // Home and End of a terminal that tells them by numbers
  typed += "\x1b[7~E\x1b[8~F";
  typed += "\x1b[1;2DG";          // Shift changes nothing
  typed += "\x1b[1;5H\x1b[3;5~";  // Ctrl and Delete at the begin: one word
  // Page up and down, Insert, function keys, Shift and Tab.
  typed += "\x1b[5~\x1b[6~\x1b[2~\x1b[15~\x1b[24~\x1b[1;5P\x1b[21;2~\x1b[5;5~\x1b[Z";
  chat.write(typed + "\n");
  REQUIRE(prompts(chat));
  chat.write("/bye\n");
  CHECK(chat.wait() == 0);
  const auto requests = generated(daemon);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0]["messages"].back()["content"] == " AtwoB threeDGF");
}

TEST_CASE("Ctrl-C while typed-ahead lines are answered keeps the chat and what was said") {
  const Home home;
  std::atomic<int> num_asked = 0;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            if (++num_asked != 2) return echo_prompt(session);
                            session.send_text("a long answer ");
                            session.client_leaves_within(5000);
                          }));
  Process chat(home, on_terminal({"chat"}), Process::Kind::kTerminal);
  REQUIRE(prompts(chat));
  chat.write("one\ntwo\nthree\nfour\n");
  REQUIRE(chat.wait_for_output("a long answer"));
  for (int i = 0; i < 3; ++i) chat.interrupt();
  REQUIRE(prompts(chat));
  chat.interrupt();
  REQUIRE(prompts(chat));
  chat.write("last\n");
  REQUIRE(chat.wait_for_output("re: last"));
  REQUIRE(prompts(chat));
  chat.write("/exit\n");
  CHECK(chat.wait() == 0);
  const auto requests = generated(daemon);
  REQUIRE(requests.size() >= 3);
  CHECK(requests.back()["messages"][1]["content"] == "re: one");
  CHECK(requests.back()["messages"][3]["content"] == "a long answer ");
}

TEST_CASE("on a terminal /set and /save say what they did, and /show what holds") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo_prompt));
  Process chat(home, on_terminal({"chat", "--system", "be brief"}), Process::Kind::kTerminal);
  REQUIRE(prompts(chat));
  chat.write("hi\n");
  REQUIRE(prompts(chat));
  chat.write("/set top-k 5\n");
  CHECK(chat.wait_for_output("(top-k is 5 now)"));
  chat.write("/save " + home.file("kept.json") + "\n");
  CHECK(chat.wait_for_output("(saved 3 messages to "));
  chat.write("/show\n");
  CHECK(chat.wait_for_output("context 7 of "));
  CHECK(chat.wait_for_output("system be brief"));
  CHECK(chat.wait_for_output("top-k 5"));
  chat.write("/exit\n");
  CHECK(chat.wait() == 0);
}

TEST_CASE("a chat on a terminal is kept, and gone on with later") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo_prompt));
  const Ran none = home.run({"chat", "--resume"});
  CHECK(none.exit_status == 4);
  CHECK_THAT(none.err, Catch::Contains("there is no chat to go on with"));
  for (const bool first : {true, false}) {
    const std::vector<std::string> words =
        first ? std::vector<std::string>{"chat"} : std::vector<std::string>{"chat", "--resume"};
    Process chat(home, on_terminal(words), Process::Kind::kTerminal);
    REQUIRE(prompts(chat));
    chat.write(first ? "one\n" : "two\n");
    REQUIRE(prompts(chat));
    chat.write("/bye\n");
    CHECK(chat.wait() == 0);
  }
  const auto requests = generated(daemon);
  REQUIRE(requests.size() == 2);
  CHECK(requests[1]["messages"].dump() ==
        R"([{"role":"user","content":"one"},{"role":"assistant","content":"re: one"},)"
        R"({"role":"user","content":"two"}])");
}

TEST_CASE("an image that a message names by its path is refused by name, and nothing is asked") {
  const Home home;
  const std::string plain = home.write("cat.png", "\x89PNG");
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            ipc::DoneEvent done;
                            done.best.text = "seen";
                            session.send_text(done.best.text);
                            session.send_done(done);
                          }));
  const auto say = [&](const std::string& message) { return home.run({"chat"}, message + "\n"); };
  const auto is_refused = [&](const Ran& ran) {
    CHECK(ran.exit_status == code_row(Code::kUnsupported).exit_status);
    CHECK_THAT(ran.err,
               Catch::Contains("cat.png is an image") && Catch::Contains("leave its path out"));
    CHECK(ran.out.empty());
  };
  is_refused(say("what is in " + plain + "?"));
  is_refused(say("\"" + plain + "\""));
  is_refused(say(plain));
  const Ran run = home.run({"run", "demo", "look at " + plain + "."});
  is_refused(run);
  CHECK_THAT(run.err, Catch::Contains("or write the message to standard input if"));
  CHECK(home.run({"run", "demo"}, "look at " + plain + ".").exit_status == 0);
  // What is no path of an image that is there is said as it is; so is what begins with //.
  for (const std::string& message :
       {std::string("why is /nowhere/cat.png missing"), std::string("a /b cat.png"),
        "/" + plain + " is big", "x" + plain}) {
    const Ran ran = say(message);
    CHECK(ran.out == "seen\n");
    CHECK(ran.err.empty());
  }
  CHECK(home.run({"generate", "look at " + plain}).exit_status == 0);
}

TEST_CASE("the end of the context is told in plain words, and with slide the oldest turns leave") {
  const Home home;
  const int64_t most = ready_status().model->max_total_tokens;
  // A message takes half of the context.
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) {
    const OrderedJson& params = session.request().params;
    const auto num_messages = static_cast<int64_t>(
        params.is_object() && params.contains("messages") ? params["messages"].size() : 0);
    if (session.request().method == ipc::kTokenize) {
      ipc::TokenizeResult result;
      result.tokens.resize(static_cast<size_t>(num_messages * (most / 4)));
      return session.send(OrderedJson{{"result", ipc::to_json(result)}}.dump());
    }
    if (session.request().method == ipc::kGenerate && num_messages > 3) {
      return session.send_error(Code::kInvalidArgument, "`inputs` tokens must be fewer");
    }
    ready_model(echo_prompt)(session);
  });
  const Ran full = home.run({"chat"}, "one\ntwo\nthree\n");
  CHECK(full.exit_status == 3);
  CHECK_THAT(full.err, Catch::Contains("the context is full: the conversation takes") &&
                           Catch::Contains("/clear begins anew") &&
                           Catch::Contains("/set context slide"));
  const Ran slid = home.run({"chat", "--system", "s"}, "/set context slide\none\ntwo\nthree\n");
  INFO(slid.err);
  CHECK(slid.exit_status == 0);
  CHECK(slid.out == "re: one\nre: two\nre: three\n");
  CHECK_THAT(slid.err, Catch::Contains("the oldest turn left the conversation"));
  CHECK(generated(daemon).back()["messages"].dump() ==
        R"([{"role":"system","content":"s"},{"role":"user","content":"three"}])");
}

TEST_CASE("generate streams on a terminal by itself, and controls of the model do nothing there") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            session.send_text("some \x1b[2Jwords");
                            session.client_leaves_within(5000);
                          }));
  Process generate(home, on_terminal({"generate", "hi"}), Process::Kind::kTerminal);
  CHECK(generate.wait_for_output("some [2Jwords"));
  generate.interrupt();
  generate.read_to_end();
  CHECK(generate.wait() == 130);
}

}  // namespace tgi
