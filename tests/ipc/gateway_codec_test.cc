// The codec of what a gateway needs: accepted events, sequences of a stream, biases, spans,
// metrics, settings of a load.
#include <cmath>
#include <string>

#include "ipc/protocol.h"
#include "tests/catch.h"

namespace tgi::ipc::gateway_codec_test {
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

SequenceResult sequence(int64_t index, std::optional<uint64_t> draw_seed) {
  SequenceResult out;
  out.index = index;
  out.draw_seed = draw_seed;
  return out;
}

std::string generate_error(const std::string& params) {
  return error_of([&] { generate_request_from_json(OrderedJson::parse(params)); });
}

std::string load_error(const std::string& members) {
  return error_of(
      [&] { load_params_from_json(OrderedJson::parse(R"({"model":"m",)" + members + "}")); });
}

std::string families_error(const std::string& families) {
  return error_of(
      [&] { metric_families_from_json(OrderedJson::parse(R"({"families":)" + families + "}")); });
}

}  // namespace

TEST_CASE("an accepted event comes back as it went") {
  const AcceptedEvent event{
      .num_prompt_tokens = 7, .num_prompt_characters = int64_t{1} << 33, .max_new_tokens = 25};
  const Reply reply = decode_reply(encode_accepted_event(event));
  REQUIRE(reply.accepted);
  CHECK_FALSE((reply.token || reply.done || reply.result || reply.error));
  CHECK(reply.accepted->num_prompt_tokens == 7);
  CHECK(reply.accepted->num_prompt_characters == int64_t{1} << 33);
  CHECK(reply.accepted->max_new_tokens == 25);
  CHECK_THAT(error_of([] { decode_reply(R"({"accepted":{"num_prompt_tokens":"7"}})"); }),
             Catch::Contains("num_prompt_tokens: expected a whole number"));
  CHECK_THAT(error_of([] { decode_reply(R"({"accepted":7})"); }), Catch::Contains("accepted"));
}

TEST_CASE("a token event tells its sequence and, if it is the last, why it ended") {
  TokenEvent event{.index = 3, .token = token(1, "a"), .text = "a", .top_tokens = {}};
  CHECK(decode_reply(encode_token_event(event)).token->index == 3);
  CHECK_FALSE(decode_reply(encode_token_event(event)).token->finish_reason);
  for (const FinishReason reason :
       {FinishReason::kLength, FinishReason::kEosToken, FinishReason::kStopSequence}) {
    event.finish_reason = reason;
    CHECK(decode_reply(encode_token_event(event)).token->finish_reason == reason);
  }
}

TEST_CASE("a token event tells what was added to the reasoning and to calls of tools") {
  TokenEvent event{.index = 1, .token = token(1, "a"), .text = ""};
  event.reasoning = "so \"far\"\n\u20ac";
  CHECK(to_json(*decode_reply(encode_token_event(event)).token) == to_json(event));
  event.tool_calls = {{.index = 0, .id = "call_1", .name = "look", .arguments = "{\"at\": "},
                      {.index = 1, .id = "", .name = "", .arguments = "\"\u20ac\"}"}};
  const TokenEvent back = *decode_reply(encode_token_event(event)).token;
  CHECK(to_json(back) == to_json(event));
  REQUIRE(back.tool_calls.size() == 2);
  CHECK(back.tool_calls[0].id == "call_1");
  CHECK(back.tool_calls[1].name.empty());
  CHECK(back.tool_calls[1].arguments == "\"\u20ac\"}");
  event.tool_calls[1].arguments = "\xE2\x82";
  CHECK_THROWS_AS(encode_token_event(event), Error);
  event.tool_calls.clear();
  event.reasoning = "\xFF";
  CHECK_THROWS_AS(encode_token_event(event), Error);
}

TEST_CASE("text of a token event comes back whatever it holds") {
  std::string all;
  for (char c = 0; c < 127; ++c) all += c;
  all += "\x7F\u0080\u20ac\u2028\U0001F600\"\\/";
  const std::string line =
      encode_token_event({.token = token(2, all, -1e-7), .text = all, .top_tokens = {}});
  CHECK(line.find('\n') == std::string::npos);
  const Reply reply = decode_reply(line);
  CHECK(reply.token->text == all);
  CHECK(reply.token->token.text == all);
  CHECK(reply.token->token.logprob == -1e-7);
}

TEST_CASE("a token's line is read the same in the short and in the long way") {
  // A space in front leads to the long one.
  for (
      const std::string line :
      {R"({"index":0,"token":{"id":1,"text":"a"},"text":"b"})",
       R"({"index":2,"token":{"id":1,"text":"a","logprob":-1,"special":true},"text":""})",
       R"({"index":0,"token":{"id":1,"text":"a","logprob":0},"text":"b",)"
       R"("top_tokens":[{"id":3,"text":"\u20ac","logprob":-0.5},{"id":4,"text":""}]})",
       R"({"index":0,"token":{"id":1,"text":"a"},"text":"b","finish_reason":"length"})",
       R"({"index":0,"token":{"id":1,"text":"a"},"text":"","reasoning":"b"})",
       R"({"index":0,"token":{"id":1,"text":"a"},"text":"","tool_calls":[{"index":0,"arguments":""}]})",
       R"({"index":0,"text":"b","token":{"text":"a","id":1,"later":[]},"top_tokens":[]})"}) {
    INFO(line);
    const Reply reply = decode_reply(line);
    REQUIRE(reply.token);
    CHECK(to_json(*reply.token) == to_json(*decode_reply(" " + line).token));
  }
  for (const std::string line :
       {R"({"index":0,"token":{"id":1},"text":"b"})", R"({"index":0,"token":{},"text":"b"})",
        R"({"index":0,"token":{"text":"a"},"text":"b"})", R"({"index":0,"text":"b"})",
        R"({"index":-1.5,"token":{"id":1,"text":"a"},"text":"b"})",
        R"({"index":0,"token":{"id":4294967297,"text":"a"},"text":"b"})",
        R"({"index":0,"token":{"id":1,"text":"a"},"top_tokens":[{"id":1,"text":"c"},"b"]})",
        R"({"index":0,"token":{"id":1,"text":"a"},"text":"b","top_tokens":[{"id":2}]})",
        R"({"index":0,"token":[{"id":1,"text":"a"}],"text":"b"})",
        R"({"index":0,"token":{"id":1,"text":"a"},"text":"b"} x)",
        R"({"index":0,"token":{"id":1,"text":"a"},"text":"b")"}) {
    INFO(line);
    const std::string error = error_of([&] { decode_reply(line); });
    CHECK(error != "nothing was thrown");
    CHECK(error_of([&] { decode_reply(" " + line); }) != "nothing was thrown");
  }
}

TEST_CASE("log-probabilities come back bit for bit") {
  for (const double value : {-0.1, 0.0, -1.0 / 3, -12345.678, -1e-300, -5e-324}) {
    const TokenEvent event{.token = token(1, "a", value), .text = "", .top_tokens = {}};
    CHECK(decode_reply(encode_token_event(event)).token->token.logprob == value);
  }
}

TEST_CASE("each sequence has its index and the seed it was drawn by") {
  DoneEvent event;
  event.best = sequence(1, UINT64_MAX);
  event.others.push_back(sequence(0, 5));
  event.others.push_back(sequence(2, std::nullopt));
  const DoneEvent back = *decode_reply(encode_done_event(event)).done;
  CHECK(back.best.index == 1);
  CHECK(back.best.draw_seed == UINT64_MAX);
  CHECK(back.others.at(0).index == 0);
  CHECK(back.others.at(0).draw_seed == 5U);
  CHECK(back.others.at(1).index == 2);
  CHECK_FALSE(back.others.at(1).draw_seed);
}

TEST_CASE("biases and limits of a request are checked by name") {
  struct Row {
    const char* params;
    const char* message;
  };
  const Row row = GENERATE(
      Row{R"({"prompt":"a","logit_bias":{"1":2}})", "logit_bias: expected an array, got object"},
      Row{R"({"prompt":"a","logit_bias":[[1,2]]})", "logit_bias.0: expected an object"},
      Row{R"({"prompt":"a","logit_bias":[{"id":1}]})", "logit_bias.0.bias: missing"},
      Row{R"({"prompt":"a","logit_bias":[{"bias":1}]})", "logit_bias.0.id: missing"},
      Row{R"({"prompt":"a","logit_bias":[{"id":-1,"bias":1}]})",
          "logit_bias.0.id: expected a number at least 0, got -1"},
      Row{R"({"prompt":"a","logit_bias":[{"id":2147483648,"bias":1}]})",
          "logit_bias.0.id: expected a number from"},
      Row{R"({"prompt":"a","logit_bias":[{"id":1,"bias":1},{"id":2,"bias":100.5}]})",
          "logit_bias.1.bias: expected a number at least -100 and at most 100, got 100.5"},
      Row{R"({"prompt":"a","max_input_tokens":0})",
          "max_input_tokens: expected a number at least 1, got 0"},
      Row{R"({"prompt":"a","max_total_tokens":1.5})", "max_total_tokens: expected a whole number"},
      Row{R"({"prompt":"a","announce":1})", "announce: expected true or false, got number"});
  CAPTURE(row.params);
  CHECK_THAT(generate_error(row.params), Catch::StartsWith(row.message));
}

TEST_CASE("what an answer has to be comes back as it went, and is one thing") {
  GenerateRequest request;
  request.prompt = "a";
  GuideParams& guide = request.params.guide.emplace();
  guide.json_schema = OrderedJson::parse(R"({"z":{"type":"string"},"a":true})");
  guide.flexible_whitespace = true;
  const GuideParams back = *generate_request_from_json(to_json(request)).params.guide;
  CHECK(back.json_schema->dump() == guide.json_schema->dump());  // the order of members counts
  CHECK(back.flexible_whitespace);
  request.params.guide = GuideParams{};
  request.params.guide->choice = {"a", "b"};
  CHECK(generate_request_from_json(to_json(request)).params.guide->choice.size() == 2);
  struct Row {
    const char* params;
    const char* message;
  };
  const Row row = GENERATE(
      Row{R"({"prompt":"a","guide":{}})", "guide: json_schema, json_object, regex, choice, gbnf"},
      Row{R"({"prompt":"a","guide":{"regex":"a","lark":"b"}})", "guide: json_schema, json_object"},
      Row{R"({"prompt":"a","guide":{"json_schema":[]}})",
          "guide.json_schema: expected an object, got array"},
      Row{R"({"prompt":"a","guide":{"regexp":"a"}})", "guide.regexp: unknown field"},
      Row{R"({"prompt":"a","guide":{"regex":"a","flexible_whitespace":true}})",
          "guide.flexible_whitespace: only goes with"});
  CAPTURE(row.params);
  CHECK_THAT(generate_error(row.params), Catch::StartsWith(row.message));
}

TEST_CASE("so many biases and no more") {
  GenerateRequest request;
  request.prompt = "a";
  for (int32_t id = 0; id < static_cast<int32_t>(kMaxLogitBiases); ++id) {
    request.params.logit_bias.push_back({.id = id, .bias = 0.5});
  }
  CHECK(generate_request_from_json(to_json(request)).params.logit_bias.size() == kMaxLogitBiases);
  request.params.logit_bias.push_back({.id = 5000, .bias = 0.5});
  CHECK(error_of([&] { generate_request_from_json(to_json(request)); }) ==
        "logit_bias: expected at most 1024 tokens, got 1025");
}

TEST_CASE("spans of tokens come back, one for each") {
  TokenizeResult result{.text = "a\u20ac", .tokens = {}, .spans = {{0, 1}, {1, 2}, {1, 2}}};
  for (int32_t id = 0; id < 3; ++id) result.tokens.push_back(token(id, "x"));
  const TokenizeResult back = tokenize_result_from_json(to_json(result));
  REQUIRE(back.spans.size() == 3);
  CHECK((back.spans[0].start == 0 && back.spans[0].stop == 1));
  CHECK((back.spans[2].start == 1 && back.spans[2].stop == 2));
}

TEST_CASE("a conversation that goes on can be tokenized as such") {
  TokenizeParams params;
  params.messages = OrderedJson::parse(R"([{"role":"assistant","content":"a"}])");
  params.continue_final_message = true;
  params.tools = OrderedJson::parse(R"([{"type":"function"}])");
  params.chat_template_kwargs = OrderedJson::parse(R"({"enable_thinking":false})");
  const TokenizeParams back = tokenize_params_from_json(to_json(params));
  CHECK(back.continue_final_message);
  CHECK(back.tools == params.tools);
  CHECK(back.chat_template_kwargs == params.chat_template_kwargs);
}

TEST_CASE("every setting of a load comes back as it went") {
  LoadParams params{.model = "/m"};
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"load-format", "dummy"},
                                                        {"tokenizer-config", "/t.json"},
                                                        {"dtype", "f16"},
                                                        {"quantize", "int4"},
                                                        {"quantize-group-size", "128"},
                                                        {"kv-cache-dtype", "bf16"},
                                                        {"kv-cache-memory", "1024GiB"},
                                                        {"max-total-tokens", "4096"},
                                                        {"max-running", "7"},
                                                        {"max-batch-tokens", "512"},
                                                        {"backend", "cpu"},
                                                        {"num-shard", "4"},
                                                        {"deterministic", "1"},
                                                        {"cuda-memory-fraction", "0.5"}}) {
    params.settings.set(name, value);
  }
  // What clients have been sending since the first release.
  const OrderedJson wire = OrderedJson::parse(
      R"({"model":"/m","load_format":"dummy","tokenizer_config":"/t.json","dtype":"f16",)"
      R"("quantize":"int4","quantize_group_size":128,"kv_cache_dtype":"bf16",)"
      R"("kv_cache_memory":1099511627776,"max_total_tokens":4096,"max_running":7,)"
      R"("max_batch_tokens":512,"backend":"cpu","num_shard":4,"deterministic":true,)"
      R"("cuda_memory_fraction":0.5})");
  CHECK(to_json(params) == wire);
  CHECK(to_json(load_params_from_json(wire)) == wire);
  const LoadParams bare = load_params_from_json(OrderedJson{{"model", "m"}});
  CHECK(to_json(bare) == OrderedJson{{"model", "m"}});
}

TEST_CASE("settings of a load are checked before they are made narrower") {
  // 2^32 + 64 would be 64 in 32 bits.
  CHECK_THAT(
      load_error(R"("quantize_group_size":4294967360)"),
      Catch::StartsWith("quantize_group_size: expected a number at least 0 and at most 256"));
  CHECK_THAT(load_error(R"("quantize_group_size":-1)"), Catch::StartsWith("quantize_group_size"));
  CHECK_THAT(load_error(R"("max_total_tokens":4294967360)"), Catch::StartsWith("max_total_tokens"));
  CHECK_THAT(load_error(R"("max_total_tokens":1)"), Catch::StartsWith("max_total_tokens"));
  CHECK_THAT(load_error(R"("max_running":0)"), Catch::StartsWith("max_running"));
  CHECK_THAT(load_error(R"("max_running":2147483648)"), Catch::StartsWith("max_running"));
  CHECK_THAT(load_error(R"("max_batch_tokens":0)"), Catch::StartsWith("max_batch_tokens"));
  CHECK_THAT(load_error(R"("num_shard":0)"), Catch::StartsWith("num_shard"));
  CHECK_THAT(load_error(R"("num_shard":4294967298)"), Catch::StartsWith("num_shard"));
  CHECK_THAT(load_error(R"("cuda_memory_fraction":0)"), Catch::StartsWith("cuda_memory_fraction"));
  CHECK_THAT(load_error(R"("backend":"tpu")"),
             Catch::Contains("backend: expected one of auto, cpu, cuda, reference, got tpu"));
  CHECK_THAT(load_error(R"("kv_cache_memory":0)"), Catch::StartsWith("kv_cache_memory"));
  CHECK_THAT(load_error(R"("kv_cache_dtype":"int4")"), Catch::StartsWith("kv_cache_dtype"));
  CHECK_THAT(load_error(R"("quantize":"nf4")"),
             Catch::Contains(
                 "quantize: expected one of none, int8, int4, compressed-tensors, "
                 "gptq, awq, fp8, mxfp4, modelopt, bitnet, torchao, bitsandbytes, hqq, exl2, gguf, "
                 "eetq, bitsandbytes-nf4, bitsandbytes-fp4, got nf4"));
  CHECK_THAT(load_error(R"("tokenizer_config":3)"), Catch::StartsWith("tokenizer_config"));
}

TEST_CASE("metric families come back as they went") {
  const std::vector<MetricFamily> families = {
      {.name = "n",
       .type = "counter",
       .help = "h \"q\"",
       .samples = {{.labels = {{"b", "2"}, {"a", "x\ny"}}, .value = 3.5}, {.value = 0}}},
      {.name = "d",
       .type = "histogram",
       .help = "",
       .samples = {{.bounds = {0.1, 1}, .counts = {1, 2, int64_t{1} << 40}, .sum = 9.25}}},
      {.name = "none", .type = "gauge", .help = "empty", .samples = {}}};
  const Reply reply = decode_reply(encode_result(to_json(families)));
  const auto back = metric_families_from_json(*reply.result);
  REQUIRE(back.size() == 3);
  CHECK(back[0].samples.at(0).labels == families[0].samples[0].labels);
  CHECK(back[0].samples.at(0).value == 3.5);
  CHECK(back[1].samples.at(0).bounds == families[1].samples[0].bounds);
  CHECK(back[1].samples.at(0).counts == families[1].samples[0].counts);
  CHECK(back[1].samples.at(0).sum == 9.25);
  CHECK(back[2].samples.empty());
  CHECK(to_json(back) == to_json(families));
  CHECK(metric_families_from_json(OrderedJson{{"families", OrderedJson::array()}}).empty());
}

TEST_CASE("metric families that are none are refused with their place") {
  CHECK_THAT(error_of([] { metric_families_from_json(OrderedJson::array()); }),
             Catch::StartsWith("result: expected an object"));
  CHECK_THAT(error_of([] { metric_families_from_json(OrderedJson::object()); }),
             Catch::StartsWith("families: expected an array"));
  CHECK_THAT(families_error("[3]"), Catch::StartsWith("families.0: expected an object"));
  CHECK_THAT(families_error(R"([{"type":"counter","help":"","samples":[]}])"),
             Catch::StartsWith("families.0.name: missing"));
  CHECK_THAT(families_error(R"([{"name":"n","type":"counter","help":""}])"),
             Catch::StartsWith("families.0.samples: expected an array"));
  const auto sample = [](const std::string& type, const std::string& text) {
    return families_error(R"([{"name":"n","type":")" + type + R"(","help":"","samples":[)" + text +
                          "]}]");
  };
  CHECK_THAT(sample("counter", "{}"), Catch::StartsWith("families.0.samples.0.value: missing"));
  CHECK_THAT(sample("counter", R"({"value":"3"})"),
             Catch::StartsWith("families.0.samples.0.value: expected a number"));
  CHECK_THAT(sample("counter", R"({"value":1,"labels":{"a":1}})"),
             Catch::StartsWith("families.0.samples.0.labels.a: expected a string"));
  CHECK_THAT(sample("histogram", R"({"bounds":[1],"counts":[1],"sum":0})"),
             Catch::StartsWith("families.0.samples.0: expected 2 counts for 1 bounds, got 1"));
  CHECK_THAT(sample("histogram", R"({"bounds":[1],"counts":[1,2]})"),
             Catch::StartsWith("families.0.samples.0.sum: missing"));
  CHECK_THAT(sample("histogram", R"({"bounds":[1],"counts":[1.5,2],"sum":0})"),
             Catch::StartsWith("families.0.samples.0.counts.0: expected a whole number"));
}

}  // namespace tgi::ipc::gateway_codec_test
