#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "ipc/protocol.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi::generate_test {
namespace {

using ipc::OrderedJson;

ipc::DoneEvent done_with(const std::string& text) {
  ipc::DoneEvent done;
  done.best.text = text;
  done.best.finish_reason = ipc::FinishReason::kEosToken;
  done.best.num_generated_tokens = 2;
  done.num_prompt_tokens = 5;
  done.num_cached_tokens = 3;
  done.seed = 77;
  done.timings = {.queue_ms = 1, .time_to_first_token_ms = 2, .decode_ms = 10, .total_ms = 13};
  return done;
}

// Answers with the pieces as tokens (when streaming) and their sum.
FakeDaemon::Script answer(std::vector<std::string> pieces) {
  return ready_model([pieces](FakeSession& session) {
    std::string text;
    for (const std::string& piece : pieces) {
      text += piece;
      if (session.request().params["stream"] == true) session.send_text(piece);
    }
    session.send_done(done_with(text));
  });
}

OrderedJson last_request(const FakeDaemon& daemon) {
  REQUIRE_FALSE(daemon.requests().empty());
  const std::string last = daemon.requests().back();
  REQUIRE(last.starts_with("generate "));
  return OrderedJson::parse(last.substr(9));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    out.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return out;
}

}  // namespace

TEST_CASE("generate writes the answer and one newline, and nothing else to stdout") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"Hello", " wörld", "\n"}));
  const std::string flag = GENERATE("--stream", "--no-start");
  const Ran ran = home.run({"generate", "hi", flag});
  CHECK(ran.exit_status == 0);
  CHECK(ran.out == "Hello wörld\n\n");
  CHECK(ran.err.empty());
  CHECK(last_request(daemon)["prompt"] == "hi");
}

TEST_CASE("a streamed token is on stdout before the next one is there") {
  const Home home;
  std::promise<void> seen;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            session.send_text("first");
                            seen.get_future().wait();
                            session.send_text(" second");
                            session.send_done(done_with("first second"));
                          }));
  Process process(home,
                  {.arguments = {"generate", "hi", "--stream"},
                   .input = {},
                   .environment = {},
                   .output_file = {}},
                  Process::Kind::kPipes);
  CHECK(process.wait_for_output("first"));
  CHECK(process.output() == "first");
  seen.set_value();
  CHECK(process.read_to_end() == "first second\n");
  CHECK(process.wait() == 0);
}

TEST_CASE("every flag reaches the request under its field") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"x"}));
  const Ran ran = home.run({"generate",
                            "[p]",
                            "--max-new-tokens",
                            "9",
                            "--temperature",
                            "0.5",
                            "--top-k",
                            "40",
                            "--top-p",
                            "0.9",
                            "--min-p",
                            "0.1",
                            "--typical-p",
                            "0.8",
                            "--repetition-penalty",
                            "1.25",
                            "--frequency-penalty",
                            "-1",
                            "--presence-penalty",
                            "1.5",
                            "--seed",
                            "18446744073709551615",
                            "--stop",
                            "a",
                            "--stop",
                            "[b]",
                            "--exclude-stop-text",
                            "--do-sample",
                            "--best-of",
                            "2",
                            "--top-n-tokens",
                            "4",
                            "--truncate",
                            "100",
                            "--ignore-eos",
                            "--return-full-text",
                            "--watermark",
                            "--prompt-logprobs",
                            "--no-prefix-cache",
                            "--details",
                            "--json"});
  CHECK(ran.err == "");
  REQUIRE(ran.exit_status == 0);
  const OrderedJson expected = OrderedJson::parse(R"({
      "prompt": "[p]", "continue_final_message": false, "announce": false, "stream": false,
      "max_new_tokens": 9,
      "do_sample": true, "temperature": 0.5, "top_k": 40, "top_p": 0.9, "typical_p": 0.8,
      "min_p": 0.1, "repetition_penalty": 1.25, "frequency_penalty": -1.0, "presence_penalty": 1.5,
      "seed": 18446744073709551615, "stop": ["a", "[b]"], "include_stop_text": false, "best_of": 2,
      "top_n_tokens": 4, "truncate": 100, "ignore_eos": true, "return_full_text": true,
      "watermark": true, "details": true, "prompt_logprobs": true, "use_prefix_cache": false})");
  CHECK(last_request(daemon) == expected);
}

TEST_CASE("a prompt comes from stdin or a file less one newline at its end") {
  struct Row {
    std::string input;
    std::string prompt;
  };
  const Row row = GENERATE(Row{"hi", "hi"}, Row{"hi\n", "hi"}, Row{"hi\n\n", "hi\n"},
                           Row{"a\r\nb\r\n", "a\r\nb\r"}, Row{"", ""}, Row{"{}", "{}"});
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"x"}));
  const std::string path = home.write("prompt.txt", row.input);
  CHECK(home.run({"generate"}, row.input).exit_status == 0);
  CHECK(last_request(daemon)["prompt"] == row.prompt);
  CHECK(home.run({"generate", "-"}, row.input).exit_status == 0);
  CHECK(last_request(daemon)["prompt"] == row.prompt);
  CHECK(home.run({"generate", "-f", path}, "not this").exit_status == 0);
  CHECK(last_request(daemon)["prompt"] == row.prompt);
}

TEST_CASE("a prompt that looks like a command or JSON is a prompt") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"x"}));
  const std::string prompt = GENERATE("load", "{}", "[1,2]", "", "%s", "a=b");
  CHECK(home.run({"generate", prompt}).exit_status == 0);
  CHECK(last_request(daemon)["prompt"] == prompt);
  CHECK(home.run({"generate", "--", "--stream"}).exit_status == 0);
  CHECK(last_request(daemon)["prompt"] == "--stream");
}

TEST_CASE("with --chat the prompt is a message") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"x"}));
  CHECK(home.run({"generate", "hi", "--chat", "--system", "be brief"}).exit_status == 0);
  CHECK(last_request(daemon)["messages"].dump() ==
        R"([{"role":"system","content":"be brief"},{"role":"user","content":"hi"}])");
  CHECK_FALSE(last_request(daemon).contains("prompt"));
}

TEST_CASE("a wrong command line ends with 2 and says what is wrong") {
  struct Row {
    std::vector<std::string> arguments;
    std::string message;
  };
  const Row row = GENERATE(
      Row{{"generate", "a", "-f", "b"}, "a prompt and --file were both given"},
      Row{{"generate", "a", "--lines", "--stream"}, "--lines and --stream can't go together"},
      Row{{"generate", "a", "--system", "b"}, "--system only goes with --chat"},
      Row{{"generate", "a", "--parallel", "2"}, "--parallel requires --lines"},
      Row{{"generate", "a", "--lines", "--details"}, "--lines with --details needs --json"},
      Row{{"generate", "a", "--top-n-tokens", "2"}, "are shown by --details or --json"},
      Row{{"generate", "a", "--prompt-logprobs"}, "are shown by --details or --json"},
      Row{{"generate", "a", "--temperature", "0"}, "--temperature: expected a number more than 0"},
      Row{{"generate", "a", "--temperature", "nan"},
          "--temperature: expected a number, got \"nan\""},
      Row{{"generate", "a", "--top-k", "1.5"}, "--top-k: expected a whole number"},
      Row{{"generate", "a", "--seed", "-1"}, "--seed: expected a number from 0"},
      Row{{"generate", "a", "--stop", ""}, "--stop: expected a text that is not empty"},
      Row{{"generate", "a", "b"}, "not expected: b"}, Row{{"generate", "--nope"}, "--nope"},
      Row{{"nope"}, "no such command: nope"}, Row{{}, "required"}, Row{{"load"}, "model"},
      Row{{"load", "m", "--dtype", "f8"}, "--dtype"},
      Row{{"bench", "--batch-sizes", "0"}, "--batch-size"}, Row{{"docs"}, "nothing to write"});
  const Home home;
  CAPTURE(row.arguments);
  const Ran ran = home.run(row.arguments);
  CHECK(ran.exit_status == 2);
  CHECK(ran.out.empty());
  CHECK_THAT(ran.err, Catch::Contains(row.message) && Catch::Contains("--help"));
}

TEST_CASE("a prompt that is not UTF-8 ends with 3 and names the byte") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"x"}));
  const Ran ran = home.run({"generate"}, "abc\xFFz");
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Catch::Contains("not valid UTF-8 at its byte 3 (of 5)"));
  CHECK(daemon.requests().empty());
}

TEST_CASE("an error of the daemon is shown and gives its exit status") {
  const Home home;
  for (const CodeRow& row : kCodeTable) {
    const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                              session.send_error(row.code, "the reason");
                            }));
    const Ran ran = home.run({"generate", "hi"});
    CHECK(ran.exit_status == row.exit_status);
    CHECK_THAT(ran.err, Catch::Matches("error: the reason\n(advice: [^\n]+\n)?"));
    CHECK(ran.out.empty());
  }
}

TEST_CASE("files that nest too deeply or have no end are refused by name") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession&) {}));
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  const std::string talk =
      home.write("deep.json", "[{\"role\": \"user\", \"content\": " + deep + "}]");
  const std::string schema = home.write("schema.json", "{\"enum\": " + deep + "}");
  const std::string tools =
      home.write("tools.json", "[{\"name\": \"f\", \"parameters\": {\"enum\": " + deep + "}}]");
  struct Row {
    std::vector<std::string> words;
    const char* message;
  };
  const std::vector<Row> rows = {
      {{"chat", "--load", talk}, "deep.json: not valid JSON, or nested too deeply"},
      {{"chat", "--tools", tools}, "tools.json: JSON nests deeper than"},
      {{"generate", "a", "--schema", schema}, "schema.json: the schema: JSON nests deeper than"},
      {{"generate", "-f", "/dev/zero"}, "/dev/zero: more than 256 MiB"}};
  for (const Row& row : rows) {
    const Ran ran = home.run(row.words, "");
    CAPTURE(ran.err);
    CHECK(ran.exit_status == code_row(Code::kInvalidArgument).exit_status);
    CHECK_THAT(ran.err, Catch::Contains(row.message));
    CHECK(ran.out.empty());
  }
}

TEST_CASE("a missing file ends with 4") {
  const Home home;
  const Ran ran = home.run({"generate", "-f", home.file("none")});
  CHECK(ran.exit_status == 4);
  CHECK(ran.err == "error: " + home.file("none") + ": No such file or directory\n");
}

TEST_CASE("without a daemon and with --no-start generate ends with 8") {
  const Home home;
  const Ran ran = home.run({"generate", "hi", "--no-start"});
  CHECK(ran.exit_status == 8);
  CHECK(ran.err ==
        "error: no daemon is running at " + home.socket() +
            "\nadvice: start one with `tgi load MODEL`, or with `tgi serve MODEL` for HTTP "
            "too\n");
}

TEST_CASE("json is one object per answer") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"a", "b"}));
  const Ran ran = home.run({"generate", "hi", "--json"});
  REQUIRE(lines_of(ran.out).size() == 1);
  const OrderedJson json = OrderedJson::parse(ran.out);
  CHECK(json["text"] == "ab");
  CHECK(json["finish_reason"] == "eos_token");
  CHECK(json["seed"] == 77);
  CHECK(json["num_generated_tokens"] == 2);
  CHECK(json["num_cached_tokens"] == 3);
  CHECK(json["timings"]["decode_ms"] == 10.0);
}

TEST_CASE("streamed json is one object per event") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"a", "b"}));
  const auto lines = lines_of(home.run({"generate", "hi", "--json", "--stream"}).out);
  REQUIRE(lines.size() == 3);
  CHECK(OrderedJson::parse(lines[0])["token"]["text"] == "a");
  CHECK(OrderedJson::parse(lines[1])["text"] == "b");
  CHECK(OrderedJson::parse(lines[2])["done"]["text"] == "ab");
}

TEST_CASE("details without json are a table on stderr") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            ipc::DoneEvent done = done_with("a\n");
                            done.best.tokens = {
                                {.id = 11, .text = "a", .logprob = -0.25},
                                {.id = 12, .text = "\n", .logprob = -1.5, .special = true}};
                            done.best.top_tokens = {{{.id = 99, .text = "z", .logprob = -3}}, {}};
                            session.send_done(done);
                          }));
  const Ran ran = home.run({"generate", "hi", "--details"});
  CHECK(ran.out == "a\n\n");
  CHECK(ran.err ==
        "answer: id, logprob, text\n"
        "      11   -0.2500 \"a\"\n"
        "          99   -3.0000 \"z\"\n"
        "      12   -1.5000 \"\\n\" special\n");
}

TEST_CASE("verbose says on stderr what it cost") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"a", "b"}));
  const Ran ran = home.run({"generate", "hi", "-v"});
  CHECK(ran.out == "ab\n");
  CHECK(ran.err ==
        "prompt 5 tokens (3 cached), generated 2 (eos_token), first token after 2.0 ms, 100.0 "
        "tokens/s\nseed 77\n");
}

TEST_CASE("Ctrl-C cancels in the daemon, writes what is there and ends with 130") {
  const Home home;
  std::promise<void> sent;
  std::promise<bool> left;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            session.send_text("half an");
                            sent.set_value();
                            left.set_value(session.client_leaves_within(5000));
                          }));
  const bool stream = GENERATE(true, false);
  std::vector<std::string> arguments = {"generate", "hi"};
  if (stream) arguments.push_back("--stream");
  Process process(home, {.arguments = arguments, .input = {}, .environment = {}, .output_file = {}},
                  Process::Kind::kPipes);
  if (stream) REQUIRE(process.wait_for_output("half an"));
  sent.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  process.interrupt();
  CHECK(process.read_to_end() == "half an\n");
  CHECK(process.wait() == 130);
  CHECK(left.get_future().get());
}

TEST_CASE("a closed output cancels in the daemon and ends quietly with 0") {
  const Home home;
  std::promise<bool> left;
  const bool goes_on = GENERATE(true, false);  // false: nothing is ever written again
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            session.send_text("one");
                            bool gone = false;
                            for (int i = 0; i < 200 && !gone; ++i) {
                              if (goes_on) session.send_text(" more");
                              gone = session.client_leaves_within(25);
                            }
                            left.set_value(gone);
                          }));
  Process process(home,
                  {.arguments = {"generate", "hi", "--stream"},
                   .input = {},
                   .environment = {},
                   .output_file = {}},
                  Process::Kind::kPipes);
  REQUIRE(process.wait_for_output("one"));
  process.close_output();
  CHECK(process.wait() == 0);
  CHECK(left.get_future().get());
}

TEST_CASE("a daemon that dies in the middle of an answer ends with 8 and keeps what was streamed") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            session.send_text("half");
                            session.close();
                          }));
  const Ran streamed = home.run({"generate", "hi", "--stream"});
  CHECK(streamed.exit_status == 8);
  CHECK(streamed.out == "half\n");
  CHECK(streamed.err ==
        "error: the daemon went away in the middle of the answer\n"
        "advice: `tgi doctor` looks for the cause\n");
  const Ran whole = home.run({"generate", "hi"});
  CHECK(whole.exit_status == 8);
  CHECK(whole.out.empty());
}

TEST_CASE("a full disk is an error and not a success") {
  const Home home;
  const FakeDaemon daemon(home.socket(), answer({"a"}));
  const Ran ran = home.run({.arguments = {"generate", "hi"},
                            .input = {},
                            .environment = {},
                            .output_file = "/dev/full"});
  CHECK(ran.exit_status == 6);
  CHECK_THAT(ran.err, Catch::Contains("No space left on device"));
}

}  // namespace tgi::generate_test
