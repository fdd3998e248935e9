// The bodies of the OpenAI routes and what of them reaches the daemon.
#include "cmd/http/openai_body.h"

#include <set>

#include "cmd/http/native_body.h"
#include "tests/catch.h"

namespace tgi::http::openai_body_test {
namespace {

ApiOptions options() {
  ApiOptions out;
  out.model_id = "acme/model";
  out.max_input_tokens = 31;
  out.max_total_tokens = 32;
  return out;
}

const std::string kHello = R"("messages": [{"role": "user", "content": "hi"}])";

ipc::GenerateRequest chat(const std::string& more = "") {
  const std::string body = "{" + kHello + (more.empty() ? "" : ", " + more) + "}";
  return to_daemon(read_body<ChatBody>(OrderedJson::parse(body)), options());
}

ipc::GenerateRequest chat_of(const std::string& messages) {
  const std::string body = R"({"messages": )" + messages + "}";
  return to_daemon(read_body<ChatBody>(OrderedJson::parse(body)), options());
}

// Of a conversation whose last turn is the assistant's or the user's.
ipc::GenerateRequest turn_request(bool ends_with_assistant, const std::string& more) {
  const std::string last = ends_with_assistant ? R"(, {"role": "assistant", "content": "b"})" : "";
  const std::string body =
      R"({"messages": [{"role": "user", "content": "a"})" + last + "]" + more + "}";
  return to_daemon(read_body<ChatBody>(OrderedJson::parse(body)), options());
}

std::vector<ipc::GenerateRequest> complete(const std::string& members) {
  return to_daemon(read_body<CompletionBody>(OrderedJson::parse("{" + members + "}")), options());
}

struct Refusal {
  int status = 0;
  std::string text;
  std::string code;
};

Refusal refusal_of(const auto& action) {
  try {
    (void)action();
  } catch (const ApiError& error) {
    return {error.status(), error.what(), error.code()};
  }
  return {};
}

std::string chat_refusal(const std::string& more) {
  const Refusal refusal = refusal_of([&] { return chat(more); });
  CHECK(refusal.status == 422);
  return refusal.text;
}

std::string messages_refusal(const std::string& messages) {
  const Refusal refusal = refusal_of([&] { return chat_of(messages); });
  CHECK(refusal.status == 422);
  return refusal.text;
}

std::string completion_refusal(const std::string& members) {
  const Refusal refusal = refusal_of([&] { return complete(members); });
  CHECK(refusal.status == 422);
  return refusal.text;
}

}  // namespace

TEST_CASE("chat samples unless the temperature is 0, and cuts stop texts off") {
  const ipc::GenerateParams plain = chat().params;
  CHECK(plain.do_sample == true);
  CHECK_FALSE(plain.temperature);
  CHECK_FALSE(plain.include_stop_text);
  CHECK(plain.max_input_tokens == 31);
  CHECK(plain.max_total_tokens == 32);
  const ipc::GenerateParams greedy =
      chat(R"("temperature": 0, "top_p": 0.5, "top_k": 3, "min_p": 0.1, "typical_p": 0.2)").params;
  CHECK(greedy.do_sample == false);
  CHECK_FALSE(
      (greedy.temperature || greedy.top_p || greedy.top_k || greedy.min_p || greedy.typical_p));
  const ipc::GenerateParams neutral =
      chat(R"("temperature": 1, "top_p": 1, "typical_p": 1)").params;
  CHECK(neutral.temperature == 1);
  CHECK(neutral.top_p == 1);  // over that of a preset
  CHECK_FALSE(neutral.typical_p);
}

TEST_CASE("parameters of a chat reach the daemon under their names there") {
  const ipc::GenerateRequest request =
      chat(R"("temperature": 0.7, "top_p": 0.9, "typical_p": 0.8, "min_p": 0.1, "top_k": 4,
              "repetition_penalty": 1.1, "frequency_penalty": -0.5, "presence_penalty": 2,
              "seed": 9, "n": 3, "max_tokens": 5, "ignore_eos": true, "stream": true)");
  const ipc::GenerateParams& p = request.params;
  CHECK(request.stream);
  CHECK(p.temperature == 0.7);
  CHECK(p.top_p == 0.9);
  CHECK(p.typical_p == 0.8);
  CHECK(p.min_p == 0.1);
  CHECK(p.top_k == 4);
  CHECK(p.repetition_penalty == 1.1);
  CHECK(p.frequency_penalty == -0.5);
  CHECK(p.presence_penalty == 2);
  CHECK(p.seed == 9);
  CHECK(p.best_of == 3);
  CHECK(p.max_new_tokens == 5);
  CHECK(p.ignore_eos);
  CHECK(chat(R"("max_completion_tokens": 6)").params.max_new_tokens == 6);
  CHECK_THAT(chat_refusal(R"("max_completion_tokens": 6, "max_tokens": 6)"),
             Catch::Contains("max_completion_tokens: duplicate field"));
}

TEST_CASE("a seed may be any 64 bits") {
  CHECK(chat(R"("seed": 18446744073709551615)").params.seed == UINT64_MAX);
  CHECK(chat(R"("seed": -1)").params.seed == UINT64_MAX);
  CHECK(chat(R"("seed": -9223372036854775808)").params.seed == uint64_t{1} << 63);
  CHECK_FALSE(chat(R"("seed": null)").params.seed);
  CHECK_THAT(chat_refusal(R"("seed": 1.5)"), Catch::Contains("seed: invalid type"));
}

TEST_CASE("stop is a text or a list of texts") {
  CHECK(chat(R"("stop": "x")").params.stop == std::vector<std::string>{"x"});
  CHECK(chat(R"("stop": ["x", "y"])").params.stop == std::vector<std::string>{"x", "y"});
  CHECK(chat(R"("stop": [])").params.stop.empty());
  CHECK(chat(R"("stop": null)").params.stop.empty());
  CHECK_THAT(chat_refusal(R"("stop": "")"), Catch::Contains("`stop` must not hold empty texts"));
  CHECK_THAT(chat_refusal(R"("stop": 3)"), Catch::Contains("stop: invalid type: number"));
  CHECK_THAT(chat_refusal(R"("stop": ["a", 1])"), Catch::Contains("stop[1]: invalid type"));
  CHECK_THAT(chat_refusal(R"("stop": ["1", "2", "3", "4", "5"])"),
             Catch::Contains("`stop` supports up to 4 stop sequences. Given: 5"));
}

TEST_CASE("logit_bias is a map from token ids") {
  const auto biases = chat(R"("logit_bias": {"7": -100, "0": 2.5})").params.logit_bias;
  REQUIRE(biases.size() == 2);
  CHECK(biases[0].id == 7);
  CHECK(biases[0].bias == -100);
  CHECK(biases[1].id == 0);
  CHECK(biases[1].bias == 2.5);
  CHECK(chat(R"("logit_bias": {})").params.logit_bias.empty());
  CHECK(chat(R"("logit_bias": [])").params.logit_bias.empty());  // TGI's empty list
  CHECK(chat(R"("logit_bias": null)").params.logit_bias.empty());
  CHECK_THAT(chat_refusal(R"("logit_bias": [1.5])"),
             Catch::Contains("logit_bias: invalid type: array, expected an object"));
  CHECK_THAT(chat_refusal(R"("logit_bias": {"seven": 1})"),
             Catch::Contains("logit_bias.seven: the key is not a token id"));
  for (const char* key : {"", " 7", "7 ", "7.0", "99999999999", "0x7"}) {
    INFO(key);
    CHECK_THAT(chat_refusal(std::string(R"("logit_bias": {")") + key + R"(": 1})"),
               Catch::Contains("the key is not a token id"));
  }
  CHECK_THAT(chat_refusal(R"("logit_bias": {"7": "1"})"),
             Catch::Contains("logit_bias.7: invalid type: string"));
  CHECK_THAT(chat_refusal(R"("logit_bias": {"7": 100.5})"),
             Catch::Contains("`logit_bias` must be >= -100 and <= 100. Given: 100.5"));
}

TEST_CASE("messages keep their parts, and the developer is the system") {
  const auto request = chat_of(
      R"([{"role": "developer", "content": "be kind", "name": "x"},
          {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
          {"role": "assistant", "content": null, "tool_calls": []},
          {"role": "user", "content": ""}])");
  const OrderedJson& messages = *request.messages;
  REQUIRE(messages.size() == 4);
  CHECK(messages[0] == OrderedJson({{"role", "system"}, {"content", "be kind"}, {"name", "x"}}));
  // The daemon knows whether the template wants the parts or their text.
  CHECK(messages[1]["content"] ==
        OrderedJson::parse(R"([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])"));
  CHECK(messages[2]["content"].is_null());
  CHECK(messages[3]["content"] == "");
  CHECK_FALSE(request.continue_final_message);
  CHECK(chat_of(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])")
            .continue_final_message);
}

TEST_CASE("the answer goes on with the assistant's turn unless a new one is asked for") {
  struct Row {
    bool ends_with_assistant;
    const char* more;
    bool goes_on;
  };
  const Row row = GENERATE(
      Row{true, "", true}, Row{false, "", false},
      Row{true, R"(, "continue_final_message": true)", true},
      Row{true, R"(, "continue_final_message": true, "add_generation_prompt": false)", true},
      Row{true, R"(, "continue_final_message": false)", false},
      Row{true, R"(, "add_generation_prompt": true)", false},
      Row{true, R"(, "add_generation_prompt": false)", true},
      Row{true, R"(, "continue_final_message": null, "add_generation_prompt": null)", true},
      Row{false, R"(, "continue_final_message": false, "add_generation_prompt": true)", false});
  CAPTURE(row.ends_with_assistant, row.more);
  CHECK(turn_request(row.ends_with_assistant, row.more).continue_final_message == row.goes_on);
}

TEST_CASE("a conversation without a turn to answer in is refused by the field's name") {
  struct Row {
    bool ends_with_assistant;
    const char* more;
    const char* problem;
  };
  const Row row = GENERATE(
      Row{false, R"(, "continue_final_message": true)", "`continue_final_message` needs messages"},
      Row{false, R"(, "add_generation_prompt": false)",
          "`add_generation_prompt` may be false only"},
      Row{true, R"(, "continue_final_message": false, "add_generation_prompt": false)",
          "`add_generation_prompt` may be false only"},
      Row{true, R"(, "continue_final_message": true, "add_generation_prompt": true)",
          "exclude each other"});
  CAPTURE(row.ends_with_assistant, row.more);
  const Refusal refusal =
      refusal_of([&] { return turn_request(row.ends_with_assistant, row.more); });
  CHECK(refusal.status == 422);
  CHECK_THAT(refusal.text, Catch::Contains(row.problem));
}

TEST_CASE("what an assistant refused with is what it said") {
  const auto request = chat_of(
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "refusal": "no"},
          {"role": "user", "content": "b"},
          {"role": "assistant", "content": [{"type": "refusal", "refusal": "never"}]},
          {"role": "assistant", "content": "yes", "refusal": null}, {"role": "user", "content": "c"}])");
  const OrderedJson& messages = *request.messages;
  CHECK(messages[1]["content"] == "no");
  CHECK(messages[3]["content"] == OrderedJson::parse(R"([{"type": "text", "text": "never"}])"));
  CHECK(messages[4]["content"] == "yes");
}

TEST_CASE("messages that can't be shown to a model are refused with their place") {
  struct Row {
    const char* messages;
    const char* problem;
  };
  const Row row = GENERATE(
      Row{"\"hi\"", "messages: invalid type: string, expected an array"},
      Row{"[]", "`messages` cannot be empty"},
      Row{"[3]", "messages[0]: invalid type: number, expected an object"},
      Row{R"([{"content": "a"}])", "messages[0].role: missing field"},
      Row{R"([{"role": 1, "content": "a"}])", "messages[0].role: invalid type"},
      Row{R"([{"role": "user"}])", "messages[0].content: missing field"},
      Row{R"([{"role": "user", "content": null}])", "messages[0].content: missing field"},
      Row{R"([{"role": "user", "content": 5}])", "messages[0].content: invalid type: number"},
      Row{R"([{"role": "user", "content": ["a"]}])",
          "messages[0].content[0]: expected an object with a type"},
      Row{R"([{"role": "user", "content": [{"type": "text"}]}])",
          "messages[0].content[0].text: missing field"},
      Row{R"([{"role": "user", "content": [{"type": "text", "text": 1}]}])",
          "messages[0].content[0].text: invalid type"},
      Row{R"([{"role": "assistant", "content": [{"type": "refusal", "text": "a"}]}])",
          "messages[0].content[0].refusal: missing field"},
      Row{R"([{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}])",
          "messages[0].function_call: the old name: use `tool_calls`"},
      Row{R"([{"role": "user", "content": [{"type": 7}]}])",
          "messages[0].content[0].type: unknown kind of content"},
      Row{R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])",
          "image modality is not supported"},
      Row{R"([{"role": "user", "content": [{"type": "input_audio"}]}])",
          "input_audio modality is not supported"});
  CAPTURE(row.messages);
  CHECK_THAT(messages_refusal(row.messages), Catch::Contains(row.problem));
}

TEST_CASE("what means nothing is taken") {
  CHECK_NOTHROW(chat(R"("tools": [], "tool_choice": "auto", "response_format": {"type": "text"})"));
  CHECK_NOTHROW(chat(R"("tools": [{"type": "function"}], "tool_choice": "none")"));
  CHECK_NOTHROW(chat(R"("tools": null, "grammar": null, "user": "me", "store": false)"));
}

TEST_CASE("fields of other servers are refused by name unless they ask for nothing") {
  struct Row {
    const char* members;
    const char* name;  // "": taken
  };
  const Row row = GENERATE(
      Row{R"("user": "me", "store": true, "metadata": {"a": "b"}, "service_tier": "auto")", ""},
      Row{R"("functions": [{"name": "f"}])", "the old name: use `tools`"},
      Row{R"("safety_identifier": "x", "prompt_cache_key": "y")", ""},
      Row{R"("guided_json": null, "min_tokens": 0, "skip_special_tokens": true)", ""},
      Row{R"("use_beam_search": false, "length_penalty": 1.0, "stop_token_ids": [])", ""},
      Row{R"("modalities": ["text"], "functions": [], "echo": false)", ""},
      Row{R"("structural_tag": {"type": "structural_tag"})", "`structural_tag` is not supported"},
      Row{R"("guided_whitespace_pattern": "[ \n]*")", "`guided_whitespace_pattern` is not"},
      Row{R"("stop_token_ids": [7])", "`stop_token_ids` is not supported"},
      Row{R"("skip_special_tokens": false)", "`skip_special_tokens` is not supported"},
      Row{R"("modalities": ["text", "audio"])", "`modalities` is not supported"},
      Row{R"("usage": {"include": true}, "provider": {"order": ["a"]}, "transforms": [])", ""},
      Row{R"("transforms": ["middle-out"])", "`transforms` is not supported"},
      Row{R"("provider": {"only": ["a"]})", "`provider.only` is not supported"},
      Row{R"("mirostat": 0, "top_n_sigma": -1.0, "dry_base": 1.75, "samplers": null)", ""},
      Row{R"("mirostat": 1)", "`mirostat` is not supported"},
      Row{R"("max_token": 5)", "unknown field `max_token`"},
      Row{R"("prompt": "a")", "unknown field `prompt`"});
  CAPTURE(row.members);
  if (*row.name == '\0') {
    CHECK_NOTHROW(chat(row.members));
  } else {
    CHECK_THAT(chat_refusal(row.members), Catch::Contains(row.name));
  }
}

TEST_CASE("verbosity is a variable of the template, which the client's own goes before") {
  const auto variables = [](const std::string& members) {
    return chat(members).chat_template_kwargs.value_or(OrderedJson());
  };
  CHECK(variables(R"("verbosity": "low")") == OrderedJson({{"verbosity", "low"}}));
  CHECK(variables(R"("verbosity": "low", "chat_template_kwargs": {"verbosity": 3})") ==
        OrderedJson({{"verbosity", 3}}));
  CHECK(variables(R"("verbosity": null)").is_null());
  CHECK_THAT(chat_refusal(R"("verbosity": "chatty")"),
             Catch::Contains("`verbosity` must be one of low, medium, high. Given: chatty"));
}

TEST_CASE("hints for the cache are taken, and what is more than a hint is refused") {
  CHECK_NOTHROW(chat(R"("prompt_cache_options": {"mode": "explicit", "ttl": "30m"})"));
  CHECK_NOTHROW(chat(R"("prompt_cache_options": {"prewarm": false})"));
  CHECK_THAT(chat_refusal(R"("prompt_cache_options": {"prewarm": true})"),
             Catch::Contains("`prompt_cache_options.prewarm` is not supported"));
  CHECK_THAT(chat_refusal(R"("prompt_cache_options": {"mod": 1})"),
             Catch::Contains("unknown field `prompt_cache_options.mod`"));
}

TEST_CASE("no extra field is one that is read, and each says something") {
  const auto check = []<typename Body>(Body) {
    std::set<std::string_view> names;
    for (const BodyField<Body>& field : body_fields<Body>()) names.insert(field.name);
    for (const ExtraField& extra : extra_fields<Body>()) {
      INFO(extra.name);
      CHECK(names.insert(extra.name).second);
      CHECK_FALSE(extra.reason.empty());
      if (extra.harmless != kAnything) CHECK(OrderedJson::parse(extra.harmless).is_array());
    }
  };
  check(ChatBody());
  check(CompletionBody());
  check(GenerateBody());
  check(GenerateParameters());
}

TEST_CASE("several greedy answers are one sequence of the daemon") {
  CHECK(chat(R"("n": 3, "temperature": 0)").params.best_of == 1);
  CHECK(chat(R"("n": 3, "temperature": 0.5)").params.best_of == 3);
  CHECK(complete(R"("prompt": "a", "n": 2, "best_of": 3, "temperature": 0)")[0].params.best_of ==
        1);
}

TEST_CASE("a completion may be of the prompt alone") {
  const auto request =
      complete(R"("prompt": [1, 2], "max_tokens": 0, "echo": true, "logprobs": 1)");
  CHECK(request[0].params.max_new_tokens == 0);
  CHECK(request[0].params.prompt_logprobs);
  CHECK(request[0].params.top_n_tokens == 1);
  // The prompt's tokens come first, and they are known at the end.
  CHECK_FALSE(complete(R"("prompt": "a", "echo": true, "logprobs": 1, "stream": true)")[0].stream);
  CHECK(complete(R"("prompt": "a", "logprobs": 1, "stream": true)")[0].stream);
}

TEST_CASE("this server's model is meant by its name and by none") {
  ApiOptions options;
  options.model_id = "acme/model";
  options.model_ids = {"acme/model"};
  for (const char* name : {"acme/model", "tgi", "", "dummy"}) {
    INFO(name);
    CHECK(is_base_model(name, options));
  }
  CHECK(is_base_model(std::nullopt, options));
  CHECK_FALSE(is_base_model("gpt-4", options));
  const ApiError refusal = model_not_found("gpt-4", options);
  CHECK(refusal.status() == 404);
  CHECK_THAT(refusal.what(),
             Catch::Equals("The model `gpt-4` does not exist; this server has `acme/model`"));
  CHECK_THAT(model_not_found("a/b", options, "it is not there").what(),
             Catch::Contains("no adapter of that name: it is not there"));
}

TEST_CASE("ranges of a chat are checked in TGI's words") {
  struct Row {
    const char* member;
    const char* rule;
  };
  const Row row = GENERATE(
      Row{R"("temperature": -0.1)", "`temperature` must be >= 0.0"},
      Row{R"("top_p": 0)", "`top_p` must be > 0.0 and <= 1.0"},
      Row{R"("top_p": 1.1)", "`top_p` must be > 0.0 and <= 1.0"},
      Row{R"("presence_penalty": 2.5)", "`presence_penalty` must be >= -2.0 and <= 2.0"},
      Row{R"("max_tokens": 0)", "`max_tokens` must be strictly positive"},
      Row{R"("max_completion_tokens": 0)", "`max_completion_tokens` must be strictly positive"},
      Row{R"("n": 0)", "`n` must be strictly positive"},
      Row{R"("n": 17)", "`n` must be > 0 and <= 16. Given: 17"},
      Row{R"("logprobs": true, "top_logprobs": 21)",
          "`top_logprobs` must be >= 0 and <= 20. Given: 21"},
      Row{R"("top_logprobs": 2)", "`top_logprobs` needs `logprobs` to be true"});
  CAPTURE(row.member);
  CHECK_THAT(chat_refusal(row.member),
             Catch::StartsWith(std::string("Input validation error: ") + row.rule));
}

TEST_CASE("log-probabilities of a chat ask for what the answer needs") {
  const ipc::GenerateParams whole = chat(R"("logprobs": true, "top_logprobs": 20)").params;
  CHECK(whole.details);
  CHECK(whole.top_n_tokens == 20);
  const ipc::GenerateParams stream = chat(R"("logprobs": true, "stream": true)").params;
  CHECK_FALSE(stream.details);  // each event has its own
  CHECK(stream.top_n_tokens == 0);
  CHECK_FALSE(chat(R"("logprobs": false, "top_logprobs": 0)").params.details);
}

TEST_CASE("stream_options are an object with include_usage") {
  const auto wants = [](const std::string& value) {
    return wants_usage(read_body<ChatBody>(
        OrderedJson::parse("{" + kHello + R"(, "stream_options": )" + value + "}")));
  };
  CHECK(wants(R"({"include_usage": true})"));
  CHECK_FALSE(wants(R"({"include_usage": false, "include_obfuscation": true})"));
  CHECK_THROWS_WITH(wants(R"({"other": 1})"),
                    Catch::Contains("unknown field `stream_options.other`"));
  CHECK_THROWS_WITH(wants(R"({"continuous_usage_stats": true})"),
                    Catch::Contains("`stream_options.continuous_usage_stats` is not supported"));
  CHECK_FALSE(wants(R"({"include_usage": null})"));
  CHECK_FALSE(wants("{}"));
  CHECK_FALSE(wants("null"));
  CHECK_THROWS_WITH(wants("[]"), Catch::Contains("stream_options: invalid type: array"));
  CHECK_THROWS_WITH(wants(R"({"include_usage": 1})"),
                    Catch::Contains("stream_options.include_usage: invalid type: number"));
  CHECK_THAT(chat_refusal(R"("stream_options": 5)"), Catch::Contains("stream_options"));
}

TEST_CASE("a prompt is a text, texts, token ids or lists of them") {
  CHECK(complete(R"("prompt": "a")").at(0).prompt == "a");
  const auto texts = complete(R"("prompt": ["a", "b", "c"])");
  REQUIRE(texts.size() == 3);
  CHECK(texts[2].prompt == "c");
  CHECK(complete(R"("prompt": [1, 2])").at(0).prompt_ids == std::vector<int32_t>{1, 2});
  const auto mixed = complete(R"("prompt": [[1], "b"])");
  REQUIRE(mixed.size() == 2);
  CHECK(mixed[0].prompt_ids == std::vector<int32_t>{1});
  CHECK(mixed[1].prompt == "b");

  CHECK_THAT(completion_refusal(R"("prompt": "")"), Catch::Contains("`prompt` cannot be empty"));
  CHECK_THAT(completion_refusal(R"("prompt": [])"), Catch::Contains("cannot be an empty list"));
  CHECK_THAT(completion_refusal(R"("prompt": [[]])"), Catch::Contains("`prompt` cannot be empty"));
  CHECK_THAT(completion_refusal(R"("prompt": {})"),
             Catch::Contains("prompt: invalid type: object"));
  CHECK_THAT(completion_refusal(R"("prompt": [1, "a"])"),
             Catch::Contains("prompt[1]: invalid type"));
  CHECK_THAT(completion_refusal(R"("prompt": [null])"), Catch::Contains("prompt[0]: invalid type"));
  CHECK_THAT(completion_refusal(R"("max_tokens": 5)"), Catch::Contains("prompt: missing field"));
  CHECK(completion_refusal(R"("prompt": ["a","b","c","d","e"])") ==
        "Number of prompts exceeds the maximum allowed batch size of 4");
}

TEST_CASE("options of completions reach every prompt's request") {
  for (const auto& request :
       complete(R"("prompt": ["a", "b"], "echo": true, "logprobs": 2, "n": 2, "best_of": 3)")) {
    CHECK(request.params.return_full_text);
    CHECK(request.params.prompt_logprobs);
    CHECK(request.params.details);
    CHECK(request.params.top_n_tokens == 2);
    CHECK(request.params.best_of == 3);
  }
  const auto plain = complete(R"("prompt": "a", "n": 2, "stream": true, "logprobs": 0)").at(0);
  CHECK(plain.stream);
  CHECK(plain.params.best_of == 2);
  CHECK_FALSE((plain.params.details || plain.params.prompt_logprobs));
  CHECK_THAT(completion_refusal(R"("prompt": "a", "n": 3, "best_of": 2)"),
             Catch::Contains("`best_of` must be >= `n` and <= 16. Given: 2"));
  CHECK_THAT(completion_refusal(R"("prompt": "a", "best_of": 2, "stream": true)"),
             Catch::Contains("`best_of` != `n` is not supported when streaming tokens"));
  CHECK_THAT(completion_refusal(R"("prompt": "a", "logprobs": 21)"),
             Catch::Contains("`logprobs` must be >= 0 and <= 20. Given: 21"));
  CHECK(completion_refusal(R"("prompt": "a", "suffix": "b")") ==
        "Suffix is not supported and can be achieved by preprocessing the prompt.");
}

TEST_CASE("variables of the template and tools reach the daemon") {
  const OrderedJson kwargs = {{"enable_thinking", false}, {"style", {{"a", nullptr}}}};
  const std::string member = R"("chat_template_kwargs": )" + kwargs.dump();
  CHECK(chat(member).chat_template_kwargs == kwargs);
  CHECK_FALSE(chat().chat_template_kwargs);
  CHECK_THAT(chat_refusal(R"("chat_template_kwargs": [1])"),
             Catch::Contains("chat_template_kwargs: invalid type: array, expected an object"));
  const auto tokenize = [](const std::string& more) {
    return to_tokenize(read_body<ChatBody>(OrderedJson::parse("{" + kHello + ", " + more + "}")));
  };
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "f"}}])";
  const ipc::TokenizeParams asked = tokenize(tools + ", " + member);
  CHECK(asked.chat_template_kwargs == kwargs);
  REQUIRE(asked.tools);
  CHECK((*asked.tools)[0]["function"]["name"] == "f");
  CHECK_FALSE(tokenize(tools + R"(, "tool_choice": "none")").tools);
  CHECK_FALSE(tokenize(R"("tools": [])").tools);
  const auto refused = [&](const std::string& more) {
    return refusal_of([&] { return tokenize(more); }).text;
  };
  CHECK_THAT(refused(R"("tools": {"a": 1})"), Catch::Contains("tools: invalid type: object"));
  CHECK(tokenize(tools + R"(, "tool_prompt": "Use them")").tool_prompt == "Use them");
}

}  // namespace tgi::http::openai_body_test
