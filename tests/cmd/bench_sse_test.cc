#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "cmd/bench/api.h"
#include "cmd/bench/sse_parser.h"
#include "tests/catch.h"

namespace tgi::bench {
namespace {

using Events = std::vector<std::string>;

// `cuts` are the sizes of the parts, used in turn.
Events parse(const std::string& stream, const std::vector<size_t>& cuts) {
  SseParser parser;
  Events out;
  const auto keep = [&out](std::string_view data) { out.emplace_back(data); };
  size_t at = 0;
  for (size_t i = 0; at < stream.size(); ++i) {
    const size_t size = std::min(cuts[i % cuts.size()], stream.size() - at);
    parser.feed(std::string_view(stream).substr(at, size), keep);
    at += size;
  }
  parser.finish(keep);
  return out;
}

Events parse_whole(const std::string& stream) {
  return parse(stream, {stream.size() + 1});
}

const std::vector<std::pair<std::string, Events>> kStreams = {
    {"data: a\n\ndata: b\n\n", {"a", "b"}},
    {"data:a\n\ndata:b\n\n", {"a", "b"}},               // no space
    {"data:  a \n\n", {" a "}},                         // one space only is cut
    {"data: a\r\n\r\ndata: b\r\n\r\n", {"a", "b"}},     // CRLF
    {"data: a\r\rdata: b\r\r", {"a", "b"}},             // CR
    {": hello\n\n:\n\ndata: a\n\n", {"a"}},             // comments
    {"event: x\nid: 7\nretry: 3\ndata: a\n\n", {"a"}},  // other fields
    {"data: a\ndata: b\n\n", {"a\nb"}},                 // several lines
    {"data\n\n", {""}},                                 // a field without a colon
    {"data:\n\n", {""}},                                //
    {"database: x\n\ndata: a\n\n", {"a"}},              // a longer name
    {"\xEF\xBB\xBF"
     "data: a\n\n",
     {"a"}},                               // byte order mark
    {"data: a\n\ndata: b", {"a", "b"}},    // no end
    {"data: a\n\ndata: b\n", {"a", "b"}},  // no empty line
    {"\n\n\ndata: {\"x\": \"\\r\\n\"}\n\n", {R"({"x": "\r\n"})"}},
    {"data: \xE2\x82\xAC\n\ndata: [DONE]\n\n", {"\xE2\x82\xAC", "[DONE]"}},
    {"data: a\n\r\ndata: b\r\n\n", {"a", "b"}},  // mixed
    {"", {}},
    {"no event stream at all", {}},
};

}  // namespace

TEST_CASE("server-sent events of every shape are read") {
  for (const auto& [stream, events] : kStreams) {
    INFO(stream);
    CHECK(parse_whole(stream) == events);
  }
}

TEST_CASE("cutting a stream anywhere gives the same events") {
  for (const auto& [stream, events] : kStreams) {
    INFO(stream);
    for (size_t size = 1; size <= stream.size(); ++size) CHECK(parse(stream, {size}) == events);
    for (size_t first = 1; first < stream.size(); ++first) {
      CHECK(parse(stream, {first, stream.size()}) == events);
    }
  }
  // All of them in a row, cut at random.
  std::string all;
  Events events;
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const auto& [stream, given] = kStreams[random() % 10];
    all += stream;
    events.insert(events.end(), given.begin(), given.end());
  }
  REQUIRE(parse_whole(all) == events);
  for (int round = 0; round < 200; ++round) {
    std::vector<size_t> cuts(1 + random() % 7);
    for (size_t& cut : cuts) cut = 1 + random() % 12;
    CHECK(parse(all, cuts) == events);
  }
}

TEST_CASE("an event without an end is not collected without a limit") {
  SseParser parser(100);
  const auto ignore = [](std::string_view) {};
  parser.feed("data: " + std::string(80, 'x'), ignore);
  CHECK_THROWS_AS(parser.feed(std::string(80, 'x'), ignore), Error);
}

TEST_CASE("events of all interfaces are understood") {
  const AnswerEvent token =
      read_event(R"({"index":1,"token":{"id":5,"text":"","logprob":-1.5,"special":false},)"
                 R"("generated_text":null,"details":null})");
  CHECK(token.has_output);  // a token is one whatever its text
  CHECK_FALSE(token.is_end);
  const AnswerEvent last = read_event(
      R"({"index":9,"token":{"id":5,"text":"a"},"generated_text":"aaa","details":)"
      R"({"finish_reason":"length","generated_tokens":9,"seed":null,"input_length":4}})");
  CHECK(last.has_output);
  CHECK(last.is_end);
  CHECK(last.num_output_tokens == 9);
  CHECK(last.num_prompt_tokens == 4);

  const AnswerEvent role = read_event(
      R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]})");
  CHECK_FALSE(role.has_output);
  CHECK_FALSE(role.is_end);
  CHECK(read_event(R"({"choices":[{"delta":{"content":"a"}}],"usage":null})").has_output);
  CHECK(read_event(R"({"choices":[{"delta":{"reasoning_content":"a"}}]})").has_output);
  CHECK(read_event(R"({"choices":[{"text":"a","finish_reason":""}]})").has_output);
  // The second choice is at the same place as the first.
  CHECK(read_event(R"({"choices":[{"finish_reason":null},{"delta":{"content":"b"}}]})").has_output);
  CHECK(read_event(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})").is_end);
  CHECK_FALSE(read_event(R"({"text":"a","content":"b"})").has_output);
  const AnswerEvent usage =
      read_event(R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":7,)"
                 R"("prompt_tokens_details":{"cached_tokens":2}}})");
  CHECK(usage.num_prompt_tokens == 3);
  CHECK(usage.num_output_tokens == 7);
  CHECK(usage.num_cached_tokens == 2);
  CHECK(read_event("[DONE]").is_end);
}

TEST_CASE("errors in a stream are understood in every spelling") {
  const AnswerEvent native =
      read_event(R"({"error":"Model is overloaded","error_type":"overloaded"})");
  CHECK(native.error == "Model is overloaded");
  CHECK(native.error_kind == "overloaded");
  const AnswerEvent openai =
      read_event(R"({"error":{"message":"too long","type":"invalid_request_error","code":null}})");
  CHECK(openai.error == "too long");
  CHECK(openai.error_kind == "invalid_request_error");
  CHECK(read_event(R"({"error":{"http_status_code":500}})").error == "an error without a message");
  CHECK(read_event(R"({"error":null,"choices":[]})").error == "");
}

TEST_CASE("what is no JSON object is refused") {
  for (const std::string_view data : {"", " ", "null", "[]", "{", "{\"a\":}", "hello", "{}x"}) {
    INFO(data);
    CHECK_THROWS_AS(read_event(data), Error);
  }
}

TEST_CASE("each interface is asked in its own way") {
  const BodyOptions options{.model = "m", .ignore_eos = true, .sampling = {{"temperature", 0.5}}};
  const auto native = ipc::OrderedJson::parse(request_body(Api::kTgi, options, "hi", 8, true));
  CHECK(native == ipc::OrderedJson::parse(R"({"inputs":"hi","parameters":{"max_new_tokens":8,
      "details":true,"temperature":0.5,"ignore_eos_token":true}})"));
  const auto chat = ipc::OrderedJson::parse(request_body(Api::kOpenAiChat, options, "hi", 8, true));
  CHECK(chat["messages"][0]["content"] == "hi");
  CHECK(chat["model"] == "m");
  CHECK(chat["max_tokens"] == 8);
  CHECK(chat["temperature"] == 0.5);
  CHECK(chat["stream_options"]["include_usage"] == true);
  const auto plain = ipc::OrderedJson::parse(request_body(
      Api::kOpenAiCompletions, {.model = "", .sampling = {{"do_sample", true}}}, "hi", 8, false));
  CHECK(plain["prompt"] == "hi");
  CHECK(plain["temperature"] == 1);
  CHECK(plain["stream"] == false);
  CHECK_FALSE(plain.contains("model"));
  CHECK_FALSE(plain.contains("do_sample"));
  CHECK_THROWS_AS(api_from_name("grpc"), Error);
}

}  // namespace tgi::bench
