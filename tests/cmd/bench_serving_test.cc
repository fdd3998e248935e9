// tgi bench --url against a server of the test: real sockets, scripted answers.
#include <atomic>
#include <set>
#include <sstream>
#include <string>

#include "cmd/bench/http_transport.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"
#include "tests/cmd/sse_server.h"

namespace tgi::bench::bench_serving_test {
namespace {

using ipc::OrderedJson;
using std::chrono::milliseconds;

SseReply json_reply(int status, const std::string& body) {
  SseReply reply;
  reply.status = status;
  reply.headers = "content-type: application/json\r\n";
  reply.pieces = {body};
  return reply;
}

int64_t num_words(const std::string& text) {
  std::istringstream words(text);
  int64_t count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

// Speaks OpenAI's chat: two tokens a word and 5 for the template, answers of the wanted length.
SseReply chat(const SseRequest& request, milliseconds gap, bool with_usage) {
  if (request.path == "/v1/models") return json_reply(200, R"({"data":[{"id":"the-model"}]})");
  if (request.path != "/v1/chat/completions") return json_reply(404, R"({"detail":"Not Found"})");
  const OrderedJson body = OrderedJson::parse(request.body);
  const int64_t prompt_tokens = 2 * num_words(body["messages"][0]["content"]) + 5;
  const int64_t num_tokens = body["max_tokens"];
  const OrderedJson usage = {{"prompt_tokens", prompt_tokens}, {"completion_tokens", num_tokens}};
  if (body["stream"] == false) {
    return json_reply(200, OrderedJson{{"choices", OrderedJson::array()}, {"usage", usage}}.dump());
  }
  SseReply reply;
  reply.gap = gap;
  reply.pieces.emplace_back(
      ": hello\r\n\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n");
  for (int64_t i = 0; i < num_tokens; ++i) {
    reply.pieces.emplace_back("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n");
  }
  reply.pieces.emplace_back(
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n");
  if (with_usage) {
    reply.pieces.push_back(
        "data: " + OrderedJson{{"choices", OrderedJson::array()}, {"usage", usage}}.dump() +
        "\n\n");
  }
  reply.pieces.emplace_back("data: [DONE]\n\n");
  return reply;
}

std::vector<std::string> bench(const std::string& url, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"bench", "--url", url};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

OrderedJson run_json(const Home& home, const std::string& url, std::vector<std::string> more) {
  more.emplace_back("--json");
  const Ran ran = home.run(bench(url, std::move(more)));
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  return OrderedJson::parse(ran.out);
}

// Answers of every request as a script says; no probing, no warm-up, 3 requests.
Ran run_script(SseReply reply, const std::string& api = "openai-chat") {
  const Home home;
  SseServer server([reply](const SseRequest& request) {
    return request.method == "GET" ? json_reply(404, "") : reply;
  });
  server.start();
  return home.run(bench(server.url(), {"--api", api, "--tokens-per-word", "1", "--warmups", "0",
                                       "--requests", "3", "--timeout", "1", "--json"}));
}

std::string only_error(const Ran& ran) {
  const OrderedJson json = OrderedJson::parse(ran.out);
  CHECK(json["num_failed"] == 3);
  CHECK(ran.exit_status == 8);
  CHECK_THAT(ran.err, Catch::Contains("error: not one request was answered: "));
  REQUIRE(json["errors"].size() == 1);
  return json["errors"].begin().key() + ": " + json["errors"].front()["example"].get<std::string>();
}

SseReply events(std::vector<std::string> pieces) {
  SseReply reply;
  reply.pieces = std::move(pieces);
  return reply;
}

}  // namespace

TEST_CASE("a server is loaded at a fixed concurrency with prompts of the wanted length") {
  const Home home;
  SseServer server([](const SseRequest& request) { return chat(request, milliseconds(4), true); });
  server.start();
  const OrderedJson json =
      run_json(home, server.url() + "/v1/",
               {"--concurrency", "3", "--requests", "7", "-s", "45", "-d", "5", "--goodput",
                "ttft:900,itl:900", "--csv", home.file("out.csv"), "--api-key", "sesame"});
  CHECK(json["model"] == "the-model");
  CHECK(json["num_ok"] == 7);
  CHECK(json["num_output_tokens"] == 35);
  CHECK(json["num_output_events"] == 35);
  CHECK(json["num_prompt_tokens"] == 7 * 45);
  CHECK(json["tokens_counted_by"] == "the server's own count");
  CHECK(json["goodput"]["num_good"] == 7);
  CHECK(json["inter_token_ms"]["count"] == 28);
  CHECK(json["inter_token_ms"]["average"] > 3.0);
  CHECK(json["time_to_first_token_ms"]["lowest"] > 3.0);  // the role alone is no token
  CHECK(json["end_to_end_ms"]["lowest"] > 20);
  // Three at once: 7 answers of 30 ms take three rounds.
  CHECK(json["wall_s"] > 0.08);

  std::set<std::string> prompts;
  for (const SseRequest& request : server.requests()) {
    CHECK_THAT(request.headers, Catch::Contains("authorization: bearer sesame\r\n"));
    if (request.method == "GET") continue;
    const OrderedJson body = OrderedJson::parse(request.body);
    CHECK(body["model"] == "the-model");
    prompts.insert(body["messages"][0]["content"]);
  }
  CHECK(prompts.size() == 2 + 1 + 7);  // probes, a warm-up, the load
  const std::string csv = read_file(home.file("out.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 8);
  CHECK(csv.find("sesame") == std::string::npos);
}

TEST_CASE("without usage the events are counted, and the report says so") {
  const Home home;
  SseServer server([](const SseRequest& request) { return chat(request, milliseconds(0), false); });
  server.start();
  const OrderedJson json = run_json(home, server.url(), {"--requests", "4", "-d", "6"});
  CHECK(json["num_output_tokens"] == 24);
  CHECK_THAT(json["tokens_counted_by"].get<std::string>(), Catch::Contains("events of the stream"));
}

TEST_CASE("poisson arrivals do not wait for answers") {
  const Home home;
  SseServer server([](const SseRequest& request) { return chat(request, milliseconds(60), true); });
  server.start();
  const OrderedJson json =
      run_json(home, server.url(), {"--rate", "200", "--requests", "30", "-d", "4", "-w", "0"});
  CHECK(json["num_ok"] == 30);
  CHECK(json["end_to_end_ms"]["p50"] > 240);
  CHECK(json["wall_s"] < 2);  // one by one it would be 30 * 0.3 s
}

TEST_CASE("a trace with shared prefixes is replayed") {
  const Home home;
  SseServer server([](const SseRequest& request) { return chat(request, milliseconds(0), true); });
  server.start();
  const std::string trace = home.write(
      "trace.jsonl",
      R"({"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]})"
      "\n"
      R"({"timestamp": 300, "input_length": 700, "output_length": 4, "hash_ids": [1, 3]})"
      "\n"
      R"({"timestamp": 900000, "input_length": 1, "output_length": 1, "hash_ids": [9]})"
      "\n");
  const OrderedJson json =
      run_json(home, server.url(), {"--trace", trace, "--requests", "2", "--trace-speed", "2"});
  CHECK(json["num_ok"] == 2);
  CHECK(json["num_output_tokens"] == 7);
  CHECK(json["wall_s"] > 0.15);
  std::vector<std::string> prompts;
  for (const SseRequest& request : server.requests()) {
    if (request.method != "POST") continue;
    const OrderedJson body = OrderedJson::parse(request.body);
    if (body["max_tokens"] == 3 || body["max_tokens"] == 4) {
      prompts.push_back(body["messages"][0]["content"]);
    }
  }
  REQUIRE(prompts.size() == 3);  // the warm-up is like the first
  CHECK(prompts[0].substr(0, 500) != prompts[1].substr(0, 500));
  CHECK(prompts[1].substr(0, 1000) == prompts[2].substr(0, 1000));
  CHECK(prompts[1].substr(1000) != prompts[2].substr(1000));
  const Ran rubbish = home.run(bench(server.url(), {"--trace", home.write("bad", "hello\n")}));
  CHECK(rubbish.exit_status == 3);
  CHECK_THAT(rubbish.err, Catch::Contains("bad: line 1: expected three cells"));
  CHECK(home.run(bench(server.url(), {"--trace", home.file("absent")})).exit_status == 4);
}

TEST_CASE("TGI's interface is spoken") {
  const Home home;
  SseServer server([](const SseRequest& request) {
    if (request.path == "/generate") {
      SseReply reply = json_reply(200, R"({"generated_text":"a"})");
      reply.headers += "x-prompt-tokens: " +
                       std::to_string(num_words(OrderedJson::parse(request.body)["inputs"]) + 1) +
                       "\r\n";
      return reply;
    }
    if (request.path != "/generate_stream") return json_reply(404, "");
    return events({"data:{\"token\":{\"id\":1,\"text\":\"a\"},\"generated_text\":null}\n\n",
                   "data:{\"token\":{\"id\":2,\"text\":\"\"},\"generated_text\":\"a\",\"details\":"
                   "{\"generated_tokens\":2,\"input_length\":20}}\n\n"});
  });
  server.start();
  const OrderedJson json =
      run_json(home, server.url(), {"--api", "tgi", "-s", "20", "--requests", "2"});
  CHECK(json["num_output_tokens"] == 4);
  CHECK(json["num_prompt_tokens"] == 40);
  REQUIRE_FALSE(server.requests().empty());
  CHECK(num_words(OrderedJson::parse(server.requests().back().body)["inputs"]) == 19);
}

TEST_CASE("what goes wrong with a request is counted by kind") {
  const std::string token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
  CHECK(only_error(run_script(json_reply(429, R"({"error":"Model is overloaded"})"))) ==
        "http 429: the server answered 429: Model is overloaded");
  CHECK(only_error(run_script(json_reply(500, "<html>\nbroken"))) ==
        "http 500: the server answered 500: <html>");
  CHECK(only_error(run_script(json_reply(401, ""))) == "http 401: the server answered 401");
  CHECK_THAT(only_error(run_script(events({token, "data: {oops\n\n"}))),
             Catch::StartsWith("malformed event: not valid JSON"));
  CHECK_THAT(only_error(run_script(events({"data: \xFF\xFE\n\n"}))),
             Catch::StartsWith("malformed event: "));
  CHECK_THAT(only_error(run_script(events({token}))), Catch::StartsWith("cut answer: "));
  CHECK_THAT(only_error(run_script(events({"hello"}))), Catch::StartsWith("no events: "));
  CHECK(only_error(run_script(events({token,
                                      "data: {\"error\":\"no blocks\",\"error_type\":"
                                      "\"generation\"}\n\n"}))) ==
        "error event generation: no blocks");
  SseReply cut = events({token});
  cut.cut = true;
  CHECK_THAT(only_error(run_script(cut)), Catch::StartsWith("connection lost: "));
  SseReply slow = events({token, token});
  slow.gap = milliseconds(5000);
  CHECK_THAT(only_error(run_script(slow)), Catch::StartsWith("timeout: "));
}

TEST_CASE("some failures leave the figures of the others") {
  const Home home;
  std::atomic<int> number = 0;
  SseServer server([&number](const SseRequest& request) {
    const bool refused = request.method == "POST" && ++number % 2 == 0;
    return refused ? json_reply(503, R"({"error":{"message":"busy"}})")
                   : chat(request, milliseconds(0), true);
  });
  server.start();
  const Ran ran = home.run(bench(server.url(), {"--tokens-per-word", "2", "-w", "0", "--requests",
                                                "6", "--concurrency", "1"}));
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.out,
             Catch::Contains("6 requests") && Catch::Contains("3 answered, 3 failed") &&
                 Catch::Contains("| http 503 | the server answered 503: busy |        3 |"));
}

TEST_CASE("a server that can't be loaded is an error before the load begins") {
  const Home home;
  const Ran nobody = home.run(bench("http://127.0.0.1:1", {}));
  CHECK(nobody.exit_status == 8);
  CHECK_THAT(nobody.err,
             Catch::StartsWith("error: http://127.0.0.1:1/v1/models: cannot connect: "));
  CHECK(home.run(bench("ftp://127.0.0.1", {})).exit_status == 3);
  CHECK(home.run(bench("http://", {})).exit_status == 3);
  CHECK(home.run(bench("http://me:secret@127.0.0.1:1", {})).exit_status == 3);
  struct Case {
    int status;
    int exit_status;
  };
  for (const Case& one : {Case{401, 3}, Case{404, 4}, Case{429, 7}, Case{500, 8}}) {
    SseServer server([&one](const SseRequest&) {
      return json_reply(one.status, R"({"error":{"message":"go away"}})");
    });
    server.start();
    const Ran ran = home.run(bench(server.url(), {"--csv", home.file("x.csv")}));
    INFO(ran.err);
    CHECK(ran.exit_status == one.exit_status);
    CHECK(ran.out == "");
    CHECK_THAT(ran.err,
               Catch::Contains("the server answered " + std::to_string(one.status) + ": go away"));
  }
  SseServer plain([](const SseRequest&) { return json_reply(200, "hello"); });
  plain.start();
  CHECK(home.run(bench(plain.url(), {})).exit_status == 8);
  std::string https = plain.url();
  const Ran tls = home.run(bench("https" + https.substr(4), {}));
  CHECK(tls.exit_status == 8);
  CHECK_THAT(tls.err, Catch::Contains(": tls: "));
}

TEST_CASE("Ctrl-C gives what was measured so far") {
  const Home home;
  SseServer server([](const SseRequest& request) { return chat(request, milliseconds(30), true); });
  server.start();
  Process process(
      home,
      {bench(server.url(), {"--concurrency", "4", "--requests", "100000", "-d", "1000",
                            "--tokens-per-word", "2", "-w", "0", "--csv", home.file("out.csv")}),
       "",
       {},
       std::nullopt},
      Process::Kind::kTerminal);
  REQUIRE(process.wait_for_output("inter-token: p50"));  // the view
  REQUIRE(process.wait_for_output("inter-token: p50"));
  process.interrupt();
  REQUIRE(process.wait_for_output("\x1b[J"));
  REQUIRE(process.wait_for_output("0 answered, 0 failed, 4 broken off"));
  const std::string rest = process.read_to_end();
  CHECK_THAT(rest, Catch::Contains("broken off by Ctrl-C"));
  // After the view is gone only text follows.
  CHECK(rest.substr(rest.rfind("0 answered")).find('\x1b') == std::string::npos);
  CHECK(process.wait() == 130);
  CHECK_THAT(read_file(home.file("out.csv")), Catch::Contains(",broken off,"));
}

TEST_CASE("the view is drawn on a terminal only when nothing says no") {
  const Home home;
  SseServer server([](const SseRequest& request) { return chat(request, milliseconds(50), true); });
  server.start();
  const std::vector<std::string> arguments =
      bench(server.url(), {"--requests", "8", "-d", "20", "--tokens-per-word", "2", "-w", "0"});
  const auto output = [&](std::map<std::string, std::string> environment, bool quiet) {
    RunSetup setup{arguments, "", std::move(environment), std::nullopt};
    if (quiet) setup.arguments.emplace_back("--quiet");
    Process process(home, setup, Process::Kind::kTerminal);
    std::string out = process.read_to_end();
    CHECK(process.wait() == 0);
    CHECK_THAT(out, Catch::Contains("8 answered"));
    return out;
  };
  CHECK_THAT(output({}, false), Catch::Contains("\x1b[") && Catch::Contains("of 8 requests"));
  CHECK(output({{"NO_COLOR", "1"}}, false).find('\x1b') == std::string::npos);
  CHECK(output({{"TERM", "dumb"}}, false).find('\x1b') == std::string::npos);
  CHECK(output({}, true).find('\x1b') == std::string::npos);
}

TEST_CASE("flags of another mode are refused") {
  const Home home;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"bench", "--rate", "3"},
           {"bench", "--serving", "--batch-size", "3"},
           {"bench", "--serving", "--timeout", "3"},
           {"bench", "--serving", "--url", "http://x"},
           {"bench", "--serving", "--rate", "3", "--trace", "x"},
           {"bench", "--serving", "--trace-speed", "3"},
           {"bench", "--serving", "-s", "5", "--shared-prefix", "6"},
           {"bench", "-d", "1"},
           {"bench", "--max-new-tokens", "1"},
           {"bench", "--url", "http://x", "--api", "grpc"}}) {
    const Ran ran = home.run(arguments);
    INFO(ran.err);
    CHECK(ran.exit_status == 2);
  }
  CHECK(home.run({"bench", "--serving", "--goodput", "x:1"}).exit_status == 3);
}

TEST_CASE("the address of a server is taken with and without what follows it") {
  CHECK(base_url("http://a:80") == "http://a:80");
  CHECK(base_url("http://a:80/") == "http://a:80");
  CHECK(base_url("https://a/v1/") == "https://a");
  CHECK(base_url("http://[::1]:8/x/v1") == "http://[::1]:8/x");
}

}  // namespace tgi::bench::bench_serving_test
