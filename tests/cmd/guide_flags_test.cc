// What an answer has to be, from the command line to the daemon.
#include <fstream>

#include "ipc/protocol.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

FakeDaemon::Script one_word_answer() {
  return ready_model([](FakeSession& session) {
    ipc::DoneEvent done;
    done.best.text = "x";
    session.send_done(done);
  });
}

std::string written(const Home& home, const std::string& name, const std::string& text) {
  const std::string path = home.file(name);
  std::ofstream(path) << text;
  return path;
}

OrderedJson guide_of_last(const FakeDaemon& daemon) {
  REQUIRE_FALSE(daemon.requests().empty());
  return OrderedJson::parse(daemon.requests().back().substr(std::string("generate ").size()))
      .at("guide");
}

}  // namespace

TEST_CASE("a schema, a pattern, a grammar or choices reach the daemon") {
  const Home home;
  const FakeDaemon daemon(home.socket(), one_word_answer());
  const auto guide_after = [&](const std::vector<std::string>& flags, const std::string& input) {
    std::vector<std::string> arguments = {"generate", "hi"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ran ran = home.run(arguments, input);
    INFO(ran.err);
    CHECK(ran.exit_status == 0);
    return guide_of_last(daemon);
  };
  const std::string schema = R"({"z": {"type": "string"}, "a": true})";
  const std::string file = written(home, "s.json", schema);
  CHECK(guide_after({"--schema", file}, "")["json_schema"] == OrderedJson::parse(schema));
  CHECK(guide_after({"--schema", "-"}, schema)["json_schema"] == OrderedJson::parse(schema));
  CHECK(guide_after({"--schema", file, "--flexible-whitespace"}, "")["flexible_whitespace"] ==
        true);
  CHECK(guide_after({"--regex", "a+|b"}, "")["regex"] == "a+|b");
  CHECK(guide_after({"--choice", "yes,no"}, "")["choice"] == OrderedJson({"yes", "no"}));
  CHECK(guide_after({"--choice", "yes", "--choice", "no"}, "")["choice"] ==
        OrderedJson({"yes", "no"}));
  CHECK(guide_after({"--choice", "a\\,b,c", "--choice", "C:\\d"}, "")["choice"] ==
        OrderedJson({"a,b", "c", "C:\\d"}));
  CHECK(guide_after({"--grammar", written(home, "bom", "\xEF\xBB\xBFroot ::= \"a\"")},
                    "")["gbnf"] == "root ::= \"a\"");
  CHECK(guide_after({"--grammar", written(home, "g", "root ::= \"a\"")}, "")["gbnf"] ==
        "root ::= \"a\"");
  CHECK(guide_after({"--grammar", "-"}, "start: \"a\"\n")["lark"] == "start: \"a\"\n");
}

TEST_CASE("each line is answered in the form that was asked for") {
  const Home home;
  const FakeDaemon daemon(home.socket(), one_word_answer());
  const std::string file = written(home, "s.json", R"({"type": "object"})");
  const Ran ran = home.run({"generate", "--lines", "--schema", file}, "a\nb\n");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out == "x\nx\n");
  CHECK(guide_of_last(daemon)["json_schema"] == OrderedJson::parse(R"({"type": "object"})"));
}

TEST_CASE("a form that can't be read is told before a daemon is asked") {
  const Home home;
  struct Row {
    std::vector<std::string> flags;
    int exit_status;
    std::string problem;
  };
  const std::string broken = written(home, "broken.json", "{\n  \"a\": oops\n}");
  const std::string number = written(home, "number.json", "7");
  const std::vector<Row> rows = {
      {{"--schema", home.file("none.json")}, 4, "none.json"},
      {{"--schema", broken}, 3, "broken.json: the schema: not valid JSON at line 2, column 8"},
      {{"--schema", number}, 3, "which is an object, got number"},
      {{"--regex", "a", "--choice", "b"}, 2, "give one of them"},
      {{"--regex", "a", "--flexible-whitespace"}, 2, "only goes with --schema"},
      {{"--choice", ""}, 2, "--choice: expected texts"},
      {{"--choice", "a,,b"}, 2, "got an empty one"},
      {{"--lines", "--schema", number, "--flexible-whitespace"}, 2, "needs --json"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> arguments = {"generate", "hi", "--no-start"};
    arguments.insert(arguments.end(), row.flags.begin(), row.flags.end());
    const Ran ran = home.run(arguments);
    CAPTURE(row.problem, ran.err);
    CHECK(ran.exit_status == row.exit_status);
    CHECK_THAT(ran.err, Catch::Contains(row.problem));
  }
  const Ran piped = home.run({"generate", "--schema", "-", "--no-start"}, "{}");
  CHECK(piped.exit_status == 2);
  CHECK_THAT(piped.err, Catch::Contains("can't both come from standard input"));
}

}  // namespace tgi
