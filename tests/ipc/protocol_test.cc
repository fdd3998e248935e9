#include "ipc/protocol.h"

#include <limits>
#include <string>

#include "ipc/vectors.h"
#include "tests/catch.h"

namespace tgi::ipc {
namespace {

std::string error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
  return "nothing was thrown";
}

TokenInfo token(int32_t id, std::string text, std::optional<double> logprob = {}) {
  return {.id = id, .text = std::move(text), .logprob = logprob};
}

std::string generate_error(const std::string& params) {
  return error_of([&] { generate_request_from_json(OrderedJson::parse(params)); });
}

}  // namespace

TEST_CASE("a generate request comes back as it went, with every field set") {
  GenerateRequest request;
  request.messages = OrderedJson::parse(R"([{"role":"user","content":"hi","zebra":1,"apple":2}])");
  request.tools = OrderedJson::parse(R"([{"type":"function"}])");
  request.chat_template_kwargs = OrderedJson::parse(R"({"enable_thinking":false,"a":null})");
  request.tool_choice = ToolChoice{.mode = "required", .names = {"look", "find"}};
  request.parallel_tool_calls = false;
  request.tool_prompt = "Call!";
  request.reasoning_effort = "high";
  request.parse_answer = true;
  request.continue_final_message = true;
  request.announce = true;
  request.merged_adapters = MergedAdapters{.ids = {"a", "b"},
                                           .paths = {"", "/adapters/b"},
                                           .weights = {1, -0.5},
                                           .merge_strategy = "dare_ties",
                                           .density = 0.2,
                                           .majority_sign_method = "frequency"};
  request.stream = true;
  GenerateParams& p = request.params;
  p.max_new_tokens = 7;
  p.do_sample = true;
  p.temperature = 0.1;
  p.top_k = 40;
  p.top_p = 0.95;
  p.typical_p = 0.9;
  p.min_p = 0.05;
  p.repetition_penalty = 1.1;
  p.frequency_penalty = -2;
  p.presence_penalty = 2;
  p.logit_bias = {{.id = 0, .bias = -100}, {.id = 2147483647, .bias = 0.1}};
  p.seed = std::numeric_limits<uint64_t>::max();
  p.stop = {"\n\n", "ü€😀"};
  p.include_stop_text = false;
  p.best_of = 3;
  p.top_n_tokens = 5;
  p.truncate = 100;
  p.max_input_tokens = 1000;
  p.max_reasoning_tokens = 100;
  p.max_total_tokens = int64_t{1} << 40;
  p.ignore_eos = p.return_full_text = p.watermark = p.details = p.prompt_logprobs = true;
  p.use_prefix_cache = false;

  const Request line = decode_request(encode_request(kGenerate, to_json(request)));
  CHECK(line.method == "generate");
  const GenerateRequest back = generate_request_from_json(line.params);
  CHECK(to_json(back) == to_json(request));
  CHECK(to_json(back).size() == 38);  // 12 of the request, its 26 parameters but for the guide
  CHECK(back.merged_adapters->weights == std::vector<double>{1, -0.5});
  CHECK(back.merged_adapters->density == 0.2);
  CHECK(back.tool_choice->names == std::vector<std::string>{"look", "find"});
  CHECK(back.messages->dump() == R"([{"role":"user","content":"hi","zebra":1,"apple":2}])");
  CHECK(back.params.seed == std::numeric_limits<uint64_t>::max());
  CHECK(back.params.temperature == 0.1);
  CHECK(back.params.stop == p.stop);
  REQUIRE(back.params.logit_bias.size() == 2);
  CHECK(back.params.logit_bias[1].id == 2147483647);
  CHECK(back.params.logit_bias[1].bias == 0.1);
  CHECK(back.params.max_total_tokens == int64_t{1} << 40);
  CHECK(back.announce);
  CHECK_FALSE(back.params.use_prefix_cache);
}

TEST_CASE("absent and null fields of a request keep their defaults") {
  const auto request = generate_request_from_json(
      OrderedJson::parse(R"({"prompt":"hi","temperature":null,"messages":null,"best_of":null})"));
  CHECK(request.prompt == "hi");
  CHECK_FALSE(request.messages);
  CHECK_FALSE(request.params.temperature);
  CHECK(request.params.best_of == 1);
  CHECK(request.params.use_prefix_cache);
  CHECK(request.params.include_stop_text);
}

TEST_CASE("a wrong field of a request is refused by name") {
  struct Row {
    const char* params;
    const char* message;
  };
  const Row row = GENERATE(
      Row{R"({"prompt":"a","temprature":1})",
          "temprature: unknown field; known are model, keep_alive_seconds, prompt, "},
      Row{R"({"prompt":1})", "prompt: expected a string, got number"},
      Row{R"({"prompt":"a","stream":"yes"})", "stream: expected true or false, got string"},
      Row{R"({"prompt":"a","max_new_tokens":1.5})",
          "max_new_tokens: expected a whole number, got 1.5"},
      Row{R"({"prompt":"a","max_new_tokens":-1})",
          "max_new_tokens: expected a number at least 0, got -1"},
      Row{R"({"prompt":"a","max_new_tokens":18446744073709551615})",
          "max_new_tokens: expected a number from -9223372036854775808 to"},
      Row{R"({"prompt":"a","temperature":0})", "temperature: expected a number more than 0, got 0"},
      Row{R"({"prompt":"a","top_p":1.01})",
          "top_p: expected a number more than 0 and at most 1, got 1.01"},
      Row{R"({"prompt":"a","min_p":-0.1})", "min_p: expected a number at least 0 and at most 1"},
      Row{R"({"prompt":"a","frequency_penalty":-2.5})",
          "frequency_penalty: expected a number at least -2 and at most 2, got -2.5"},
      Row{R"({"prompt":"a","seed":-1})", "seed: expected a number from 0 to 18446744073709551615"},
      Row{R"({"prompt":"a","seed":18446744073709551616})", "seed: expected a whole number, got"},
      Row{R"({"prompt":"a","stop":"x"})", "stop: expected an array, got string"},
      Row{R"({"prompt":"a","stop":["x",3]})", "stop.1: expected a string, got number"},
      Row{R"({"prompt":"a","stop":["x",""]})", "stop.1: expected a string, got \"\""},
      Row{R"({"prompt":"a","merged_adapters":{}})", "merged_adapters.ids: missing"},
      Row{R"({"prompt":"a","merged_adapters":{"ids":[]}})",
          "merged_adapters.ids: expected at least one adapter, got none"},
      Row{R"({"prompt":"a","merged_adapters":{"ids":["a",""]}})",
          "merged_adapters.ids: expected the name of an adapter"},
      Row{R"({"prompt":"a","adapter":"a","merged_adapters":{"ids":["a"]}})",
          "merged_adapters: does not go with adapter"},
      Row{R"({"prompt":"a","merged_adapters":{"ids":["a"],"weights":[1,2]}})",
          "merged_adapters.weights: expected one for each of ids, 1, got 2"},
      Row{R"({"prompt":"a","merged_adapters":{"ids":["a"],"paths":["here"]}})",
          "merged_adapters.paths: expected the absolute path of a folder"},
      Row{R"({"prompt":"a","merged_adapters":{"ids":["a"],"merge_strategy":"mean"}})",
          "merged_adapters.merge_strategy: expected one of linear, ties, dare_linear, dare_ties"},
      Row{R"({"prompt":"a","merged_adapters":{"ids":["a"],"majority_sign_method":"x"}})",
          "merged_adapters.majority_sign_method: expected one of total, frequency, got \"x\""},
      Row{R"({"prompt":"a","merged_adapters":{"ids":["a"],"merge_strategy":"ties"}})",
          "merged_adapters.density: expected the share of the numbers that ties keeps, above 0"},
      Row{R"({"prompt":"a","merged_adapters":{"ids":["a"],"density":-1}})",
          "merged_adapters.density: expected a number at least 0"},
      Row{R"({"prompt":"a","merged_adapters":{"ids":["a"],"alpha":1}})",
          "merged_adapters.alpha: unknown field"},
      Row{R"({"prompt_ids":[1,-2]})", "prompt_ids.1: expected a number at least 0, got -2"},
      Row{R"({"prompt_ids":[2147483648]})", "prompt_ids.0: expected a number from"},
      Row{R"({"prompt_ids":[]})", "prompt_ids: expected at least one id"},
      Row{R"({"messages":[]})", "messages: expected at least one message"},
      Row{R"({"messages":["hi"]})", "messages.0: expected an object, got string"},
      Row{R"({"messages":[{"content":"hi"}]})", "messages.0.role: missing"},
      Row{R"({"messages":[{"role":1}]})", "messages.0.role: expected a string, got number"},
      Row{R"({"prompt":"a","tools":[{}]})", "tools: only goes with messages"},
      Row{R"({"prompt":"a","chat_template_kwargs":{}})",
          "chat_template_kwargs: only goes with messages"},
      Row{R"({"messages":[{"role":"user"}],"chat_template_kwargs":[{}]})",
          "chat_template_kwargs: expected an object, got array"},
      Row{R"({"prompt":"a","continue_final_message":true})", "continue_final_message: only goes"},
      Row{R"({})", "prompt, prompt_ids, messages: expected exactly one of them, got 0"},
      Row{R"({"prompt":"a","prompt_ids":[1]})", "expected exactly one of them, got 2"});
  CAPTURE(row.params);
  CHECK_THAT(generate_error(row.params),
             Catch::StartsWith(row.message) || Catch::Contains(row.message));
}

TEST_CASE("a request line that is not a request is refused") {
  struct Row {
    const char* line;
    const char* message;
  };
  const Row row = GENERATE(
      Row{"", "not valid JSON: expected a document, got no text"},
      Row{"hello", "not valid JSON at line 1, column 1: invalid literal near h; expected a value"},
      Row{"[]", "expected one request like"}, Row{"{}", "method: missing"},
      Row{R"({"method":5})", "method: expected a string"},
      Row{R"({"method":"status","params":[]})", "params: expected an object, got array"},
      Row{R"({"method":"status","parms":{}})", "parms: unknown field; known are method, params"},
      Row{R"({"method":"status"} x)", "not valid JSON at line 1, column 21"},
      Row{R"({"method":1e999})", "line 1, column 15: the number '1e999' is too large"},
      Row{"{\"method\":\"\xC3\x28\"}", "not valid JSON at line 1, column 13: invalid string"});
  CAPTURE(row.line);
  CHECK_THAT(error_of([&] { decode_request(row.line); }), Catch::Contains(row.message));
}

TEST_CASE("a request without params has empty ones") {
  CHECK(decode_request(R"({"method":"status"})").params == OrderedJson::object());
  CHECK(decode_request(R"({"method":"status","params":null})").params == OrderedJson::object());
}

TEST_CASE("nesting is allowed up to the limit and refused beyond") {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  // The request object and its params are the first two levels.
  const auto line = [&](int depth) {
    return R"({"method":"m","params":{"a":)" + nested(depth - 2) + "}}";
  };
  CHECK_NOTHROW(decode_request(line(kMaxJsonDepth)));
  CHECK_THAT(error_of([&] { decode_request(line(kMaxJsonDepth + 1)); }),
             Catch::Contains("nests deeper than 64 levels"));
  CHECK_THAT(error_of([&] { decode_request(std::string(1'000'000, '[')); }),
             Catch::Contains("nests deeper than 64 levels"));
}

TEST_CASE("brackets and quotes inside strings do not count as structure") {
  const std::string text(200, '[');
  const auto request =
      decode_request(R"({"method":"m","params":{"a":"\\\")" + text + R"(\"","b":"}}"}})");
  CHECK(request.params["a"] == "\\\"" + text + "\"");
}

TEST_CASE("a member that comes twice is refused by its name") {
  const auto error = [](const char* text) { return error_of([&] { (void)parse_json(text); }); };
  CHECK_THAT(error(R"({"a": [{"b": 1, "c": {"b": 2}, "b": 3}]})"),
             Catch::Contains(R"(the JSON object that ends at byte 37 has the member "b" twice)"));
  CHECK_THAT(error(R"({"key":1,"k\u0065y":2})"), Catch::Contains(R"(member "key" twice)"));
  CHECK(parse_json(R"({"a":{"a":"a:a"},"b":["a","a",{"a":1},{"a":"\\"}],"A":"\"a\":"})").size() ==
        3);
}

TEST_CASE("objects with too many members are refused before they cost time") {
  const auto with_members = [](size_t count) {
    std::string line = R"({"method":"m","params":{)";
    for (size_t i = 0; i < count; ++i) {
      line += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
    }
    return line + "}}";
  };
  CHECK(decode_request(with_members(kMaxJsonObjectMembers)).params.size() == kMaxJsonObjectMembers);
  CHECK_THAT(error_of([&] { decode_request(with_members(kMaxJsonObjectMembers + 1)); }),
             Catch::Contains("more than 4096 members"));
  // Finding the members of very many large objects would cost as much.
  std::string large = "{\"k\":0";
  for (size_t i = 1; i < kMaxJsonObjectMembers; ++i) {
    large += ",\"k" + std::to_string(i) + "\":0";
  }
  std::string lists = R"({"method":"m","params":{"a":[0)";
  for (size_t i = 0; i < 257; ++i) lists += "," + large + "}";
  CHECK_THAT(error_of([&] { decode_request(lists + "]}}"); }),
             Catch::Contains("too many objects of very many members"));
}

TEST_CASE("a long list of ids is fine and a vast one is refused") {
  std::string ids = "0";
  for (int i = 1; i < 200'000; ++i) ids += ",1";
  const auto request =
      decode_request(R"({"method":"generate","params":{"prompt_ids":[)" + ids + "]}}");
  CHECK(generate_request_from_json(request.params).prompt_ids->size() == 200'000);
  std::string vast = "0";
  for (size_t i = 0; i < kMaxJsonValues; ++i) vast += ",1";
  CHECK_THAT(error_of([&] { decode_request("{\"method\":[" + vast + "]}"); }),
             Catch::Contains("values, the limit is"));
}

TEST_CASE("what goes with a chat alone is refused elsewhere by its name") {
  for (const std::string field :
       {R"("tools":[])", R"("tool_choice":{"mode":"none"})", R"("tool_prompt":"a")",
        R"("reasoning_effort":"low")", R"("parse_answer":true)"}) {
    const std::string name = field.substr(1, field.find('"', 1) - 1);
    CHECK_THAT(generate_error(R"({"prompt":"a",)" + field + "}"),
               Catch::Contains(name + ": only goes with messages"));
  }
  const std::string chat = R"({"messages":[{"role":"user","content":"a"}],)";
  CHECK_THAT(generate_error(chat + R"("max_reasoning_tokens":5})"),
             Catch::Contains("max_reasoning_tokens: only goes with parse_answer"));
  CHECK_THAT(generate_error(chat + R"("tool_choice":{"mode":"maybe"}})"),
             Catch::Contains("tool_choice.mode: expected auto, required or none, got maybe"));
  CHECK_THAT(generate_error(chat + R"("tool_choice":{"mode":"auto","name":"x"}})"),
             Catch::Contains("tool_choice.name"));
}

TEST_CASE("a token event comes back as it went") {
  const TokenEvent event{.token = {.id = 42, .text = " Привет", .logprob = -1.25, .special = true},
                         .text = "x\n\"",
                         .top_tokens = {token(1, "a", -0.1), token(2, "b")}};
  const std::string line = encode_token_event(event);
  CHECK(line.find('\n') == std::string::npos);
  const Reply reply = decode_reply(line);
  REQUIRE(reply.token);
  CHECK_FALSE(reply.done);
  CHECK_FALSE(reply.result);
  CHECK_FALSE(reply.error);
  CHECK(reply.token->token.id == 42);
  CHECK(reply.token->token.text == " Привет");
  CHECK(reply.token->token.logprob == -1.25);
  CHECK(reply.token->token.special);
  CHECK(reply.token->text == "x\n\"");
  REQUIRE(reply.token->top_tokens.size() == 2);
  CHECK_FALSE(reply.token->top_tokens[1].logprob);
}

TEST_CASE("a done event comes back as it went") {
  DoneEvent event;
  event.best = {.text = "out",
                .finish_reason = FinishReason::kStopSequence,
                .stop_sequence = "ut",
                .num_generated_tokens = 2,
                .mean_logprob = -0.5,
                .tokens = {token(1, "o", -0.5), token(2, "ut")},
                .top_tokens = {{token(1, "o")}, {}}};
  event.best.reasoning = "why";
  event.best.tool_calls = {{.index = 0, .id = "c", .name = "look", .arguments = "{}"}};
  event.best.num_reasoning_tokens = 1;
  event.best.num_skipped_tokens = 1;
  event.best.tokens[1].skipped = true;
  event.others.emplace_back();
  event.others[0].text = "other";
  event.others[0].finish_reason = FinishReason::kEosToken;
  event.prompt_tokens = {token(3, "p"), token(4, "\uFFFD", -2)};
  event.prompt_tokens[1].bytes = {0xC3, 0x28};
  event.prompt_top_tokens = {{}, {token(5, "q", -1), token(6, "r", -1.5)}};
  event.seed = uint64_t{1} << 63;
  event.num_prompt_tokens = 5;
  event.num_cached_tokens = 4;
  event.num_truncated_tokens = 1;
  event.timings = {.queue_ms = 1, .time_to_first_token_ms = 2, .decode_ms = 3, .total_ms = 4.5};
  const Reply reply = decode_reply(encode_done_event(event));
  REQUIRE(reply.done);
  CHECK(to_json(*reply.done) == to_json(event));
  CHECK(reply.done->best.finish_reason == FinishReason::kStopSequence);
  CHECK(reply.done->best.top_tokens.size() == 2);
  CHECK(reply.done->prompt_tokens.at(1).bytes == std::vector<uint8_t>{0xC3, 0x28});
  CHECK(reply.done->prompt_top_tokens.at(1).at(1).id == 6);
  CHECK(reply.done->others.at(0).finish_reason == FinishReason::kEosToken);
  CHECK(reply.done->seed == uint64_t{1} << 63);
  CHECK(reply.done->timings.total_ms == 4.5);
}

TEST_CASE("a token event has the bytes that its text can't tell") {
  TokenEvent event{.token = token(7, "\uFFFD", -1), .text = "", .top_tokens = {token(8, "x")}};
  event.token.bytes = {0xF0, 0x9F};
  const std::string line = encode_token_event(event);
  CHECK(line.find(R"("bytes":[240,159])") != std::string::npos);
  CHECK(OrderedJson::parse(line) == to_json(event));
  const Reply reply = decode_reply(line);
  REQUIRE(reply.token);
  CHECK(reply.token->token.bytes == event.token.bytes);
  CHECK(reply.token->top_tokens.at(0).bytes.empty());
}

TEST_CASE("a token event says when its token was drafted, and else nothing of it") {
  TokenEvent event{.token = token(7, "a", -1), .text = "a"};
  CHECK(encode_token_event(event).find("skipped") == std::string::npos);
  CHECK_FALSE(to_json(event).at("token").contains("skipped"));
  event.token.skipped = true;
  const std::string line = encode_token_event(event);
  CHECK(OrderedJson::parse(line) == to_json(event));
  const Reply reply = decode_reply(line);
  REQUIRE(reply.token);
  CHECK(reply.token->token.skipped);
  CHECK_FALSE(reply.token->token.special);
}

TEST_CASE("every finish reason has its name") {
  CHECK(finish_reason_name(FinishReason::kLength) == "length");
  CHECK(finish_reason_name(FinishReason::kEosToken) == "eos_token");
  CHECK(finish_reason_name(FinishReason::kStopSequence) == "stop_sequence");
}

TEST_CASE("an error comes back with its code and message") {
  for (const CodeRow& row : kCodeTable) {
    const Reply reply = decode_reply(encode_error(Error(row.code, "what, where: é")));
    REQUIRE(reply.error);
    CHECK(reply.error->code() == row.code);
    CHECK(reply.error->what() == std::string("what, where: é"));
  }
}

TEST_CASE("an error that quotes a file name of any bytes still goes out") {
  const Reply reply = decode_reply(encode_error(Error(Code::kNotFound, "model \xFF\xFE: no")));
  REQUIRE(reply.error);
  CHECK_THAT(reply.error->what(), Catch::EndsWith(": no"));
}

TEST_CASE("text that is not UTF-8 never gets into a reply") {
  try {
    encode_token_event({.token = token(1, "ok"), .text = "\xC3", .top_tokens = {}});
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInternal);
  }
}

TEST_CASE("a status comes back as it went") {
  Status status;
  status.pid = 12;
  status.uptime_seconds = 1.5;
  status.phase = "ready";
  status.phase_detail = "x";
  status.path = "/models/m";
  status.socket = "/tmp/s";
  status.rss_bytes = int64_t{5} << 30;
  status.model.emplace();
  status.model->name = "m";
  status.model->num_blocks = 9;
  status.model->kv_groups = {.num_full = 2, .num_windowed = 5, .window = 512, .num_layers = 3};
  status.model->has_chat_template = true;
  status.model->left_out = {{"amx", "pack of int8", "did not end"}, {"avx512", "add", "faulted"}};
  status.model->memory.weights = int64_t{1} << 40;
  status.counters.num_steps = 77;
  const Reply reply = decode_reply(encode_result(to_json(status)));
  REQUIRE(reply.result);
  const Status back = status_from_json(*reply.result);
  CHECK(to_json(back) == to_json(status));

  // An older daemon doesn't tell the path: then it is the model's name, or what is about to come.
  status.path.clear();
  CHECK(status_from_json(to_json(status)).path == "m");
  status.model.reset();
  CHECK(status_from_json(to_json(status)).path.empty());
  status.phase = "not loaded";
  CHECK(status_from_json(to_json(status)).path == "x");
  CHECK(back.model->memory.weights == int64_t{1} << 40);
  REQUIRE(back.model->left_out.size() == 2);
  CHECK(back.model->left_out[0].kernel == "pack of int8");
  CHECK(back.model->left_out[1].reason == "faulted");
  CHECK(back.counters.num_steps == 77);
}

TEST_CASE("a reply may have fields this client does not know") {
  const Reply reply =
      decode_reply(R"({"token":{"id":1,"text":"a","new":1},"text":"a","newer":[]})");
  REQUIRE(reply.token);
  CHECK(status_from_json(OrderedJson::parse(R"({"phase":"ready","later":1})")).phase == "ready");
}

TEST_CASE("a reply line of no known kind is refused") {
  CHECK_THAT(error_of([] { decode_reply("{}"); }),
             Catch::Contains("none of accepted, token, done"));
  CHECK_THAT(error_of([] { decode_reply("[]"); }),
             Catch::Contains("none of accepted, token, done"));
  CHECK_THAT(error_of([] { decode_reply(R"({"token":{"id":1}})"); }),
             Catch::Contains("token.text: missing"));
}

TEST_CASE("load parameters are checked") {
  CHECK(load_params_from_json(OrderedJson{{"model", "/m"}, {"dtype", "bf16"}})
            .settings.values()
            .dtype == "bf16");
  const auto error = [](const char* text) {
    return error_of([&] { load_params_from_json(OrderedJson::parse(text)); });
  };
  CHECK(error("{}") == "model: missing");
  CHECK_THAT(error(R"({"model":"m","dtype":"fp4"})"),
             Catch::Contains("dtype: expected one of auto, f32, bf16, f16, got fp4"));
  CHECK_THAT(error(R"({"model":"m","load_format":"gguf"})"), Catch::StartsWith("load_format: "));
}

TEST_CASE("tokenize parameters and results come back as they went") {
  const auto params = tokenize_params_from_json(
      to_json(TokenizeParams{.prompt = "hi", .messages = std::nullopt, .add_special = false}));
  CHECK(params.prompt == "hi");
  CHECK_FALSE(params.add_special);
  CHECK_THAT(error_of([] { tokenize_params_from_json(OrderedJson::object()); }),
             Catch::Contains("prompt, messages: expected exactly one of them"));
  const TokenizeResult result{.text = "hi", .tokens = {token(5, "hi")}};
  CHECK(tokenize_result_from_json(to_json(result)).tokens.at(0).id == 5);
}

TEST_CASE("the side of a text that is cut comes back as it went, and is one of two") {
  const VectorParams params{.inputs = {{.text = "a"}}, .truncation_side = "left"};
  CHECK(vector_params_from_json(to_json(params)).truncation_side == "left");
  OrderedJson json = to_json(params);
  json["truncation_side"] = "up";
  CHECK(error_of([&] { vector_params_from_json(json); }) ==
        "truncation_side: expected left or right, got \"up\"");
}

TEST_CASE("the hello line comes back as it went and carries an early error") {
  const Hello hello = decode_hello(encode_hello({.protocol = 3, .version = "9.9"}));
  CHECK(hello.protocol == 3);
  CHECK(hello.version == "9.9");
  try {
    decode_hello(encode_error(Error(Code::kOverloaded, "too many connections")));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kOverloaded);
  }
}

}  // namespace tgi::ipc
