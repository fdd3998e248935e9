#include "cmd/http/openai_body.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cmd/http/adapters.h"
#include "cmd/http/model_choice.h"

namespace tgi::http {
namespace {

constexpr Range positive(std::string_view rule) {
  return {.low = 0, .above_low = true, .rule = rule};
}
constexpr Range penalty(std::string_view rule) {
  return {.low = -2, .high = 2, .rule = rule};
}

template <typename B>
constexpr std::array<BodyField<B>, 27> shared_rows() {
  using P = OpenAiParameters;
  return {{
      inherited_field<B, &P::model>(
          "model", {"the name of the model, or of a LoRA adapter to answer by; absent, \"\" or "
                    "\"tgi\": whatever is served"}),
      inherited_field<B, &P::adapter_source>(
          "adapter_source", {"as LoRAX: where an adapter that `model` names is: hub, local or s3"}),
      inherited_field<B, &P::api_token>("api_token",
                                        {"as LoRAX: to the hub, for a private adapter"}),
      inherited_field<B, &P::temperature>(
          "temperature", {.description = "0: always the most likely token; default 1",
                          .range = {.low = 0, .rule = "`temperature` must be >= 0.0"}}),
      inherited_field<B, &P::repetition_penalty>(
          "repetition_penalty",
          {.description = "1 is off; once per distinct token of prompt and output",
           .range = positive("`repetition_penalty` must be strictly positive")}),
      inherited_field<B, &P::frequency_penalty>(
          "frequency_penalty",
          {.description = "subtracted for each occurrence in the output",
           .range = penalty("`frequency_penalty` must be >= -2.0 and <= 2.0")}),
      inherited_field<B, &P::presence_penalty>(
          "presence_penalty", {.description = "subtracted once for a token of the output",
                               .range = penalty("`presence_penalty` must be >= -2.0 and <= 2.0")}),
      inherited_field<B, &P::top_p>("top_p",
                                    {.description = "nucleus sampling; 1 is off",
                                     .range = {.low = 0,
                                               .high = 1,
                                               .above_low = true,
                                               .rule = "`top_p` must be > 0.0 and <= 1.0"}}),
      inherited_field<B, &P::typical_p>(
          "typical_p", {.description = "typical decoding mass; 1 is off",
                        .range = {.low = 0,
                                  .high = 1,
                                  .above_low = true,
                                  .rule = "`typical_p` must be > 0.0 and <= 1.0"}}),
      inherited_field<B, &P::min_p>(
          "min_p", {.description = "as a share of the most likely token",
                    .range = {.low = 0, .high = 1, .rule = "`min_p` must be >= 0.0 and <= 1.0"}}),
      inherited_field<B, &P::top_k>("top_k",
                                    {.description = "the k most likely tokens; 0 and -1: all",
                                     .range = {.low = -1, .rule = "`top_k` must be >= -1"}}),
      inherited_field<B, &P::n>("n", {.description = "answers to sample",
                                      .range = positive("`n` must be strictly positive")}),
      inherited_field<B, &P::seed>("seed", {"of the draws"}),
      inherited_field<B, &P::stop>("stop",
                                   {"a text or a list of texts that end the answer; cut off"}),
      inherited_field<B, &P::logit_bias>("logit_bias", {"{\"token id\": bias}, from -100 to 100"}),
      inherited_field<B, &P::stream_options>("stream_options", {"{\"include_usage\": true}"}),
      inherited_field<B, &P::response_format>(
          "response_format", {"{\"type\": \"json_object\"}, or {\"type\": \"json_schema\", "
                              "\"json_schema\": {\"schema\": "
                              "...}}: the answer is such JSON; TGI's types json and regex too"}),
      inherited_field<B, &P::grammar>("grammar",
                                      {"TGI's {type, value}, or a grammar in GBNF or Lark"}),
      inherited_field<B, &P::json_schema>("json_schema",
                                          {"as llama.cpp: a JSON schema for the answer"}),
      inherited_field<B, &P::guided_json>("guided_json", {"as vLLM: a JSON schema for the answer"}),
      inherited_field<B, &P::guided_regex>("guided_regex",
                                           {"as vLLM: a pattern for the whole answer"}),
      inherited_field<B, &P::guided_choice>("guided_choice",
                                            {"as vLLM: the texts that may be the answer"}),
      inherited_field<B, &P::guided_grammar>(
          "guided_grammar", {"as vLLM: a grammar for the answer, in GBNF or Lark"}),
      inherited_field<B, &P::structured_outputs>(
          "structured_outputs",
          {"as vLLM: an object with one of json, json_object, regex, choice and grammar"}),
      inherited_field<B, &P::stream>("stream", {"answer with server-sent events"}),
      inherited_field<B, &P::ignore_eos>("ignore_eos", {"go on after the end of the text"}),
      inherited_field<B, &P::speculate>(
          "speculate", {"tokens to be drafted at most for a step, up to the server's --speculate, "
                        "which is the default; the answer is the same"}),
  }};
}

template <typename B, size_t kNumOwn>
constexpr auto with_shared(const std::array<BodyField<B>, kNumOwn>& own) {
  constexpr auto kShared = shared_rows<B>();
  std::array<BodyField<B>, kNumOwn + kShared.size()> out{};
  std::copy(kShared.begin(), kShared.end(), out.begin());
  std::copy(own.begin(), own.end(), out.begin() + kShared.size());
  return out;
}

std::vector<std::string> read_stop(const std::optional<OrderedJson>& json) {
  std::vector<std::string> out;
  if (!json) return out;
  if (json->is_string()) {
    out.push_back(json->get<std::string>());
  } else {
    read_body_value(*json, "stop", out);
  }
  for (const std::string& stop : out) require(!stop.empty(), "`stop` must not hold empty texts");
  return out;
}

std::vector<ipc::TokenBias> read_logit_bias(const std::optional<OrderedJson>& json) {
  std::vector<ipc::TokenBias> out;
  if (!json || (json->is_array() && json->empty())) return out;
  if (!json->is_object()) {
    fail_body_type("logit_bias", "an object of token ids and biases", *json);
  }
  for (const auto& item : json->items()) {
    const std::string path = "logit_bias." + item.key();
    ipc::TokenBias bias;
    const char* const end = item.key().data() + item.key().size();
    const auto [stop, error] = std::from_chars(item.key().data(), end, bias.id);
    if (error != std::errc() || stop != end) fail_body(path, "the key is not a token id");
    read_body_value(item.value(), path, bias.bias);
    require(bias.bias >= -100 && bias.bias <= 100,
            "`logit_bias` must be >= -100 and <= 100. Given: {}", bias.bias);
    out.push_back(bias);
  }
  return out;
}

void check_part(const OrderedJson& part, const std::string& path) {
  if (!part.is_object() || !part.contains("type"))
    fail_body(path, "expected an object with a type");
  const OrderedJson& type = part["type"];
  if (type == "image_url" || type == "input_audio" || type == "file") {
    throw validation_error(fmt::format("{} modality is not supported",
                                       type == "image_url" ? "image" : type.get<std::string>()));
  }
  if (type != "text") fail_body(path + ".type", "unknown kind of content, expected text");
  if (!part.contains("text")) fail_body(path + ".text", "missing field");
  std::string text;
  read_body_value(part["text"], path + ".text", text);
}

// The arguments of the template that this server knows nothing about.
void read_template_kwargs(const ChatBody& body, std::optional<OrderedJson>& out) {
  if (!body.chat_template_kwargs) return;
  if (!body.chat_template_kwargs->is_object()) {
    fail_body_type("chat_template_kwargs", "an object", *body.chat_template_kwargs);
  }
  out = body.chat_template_kwargs;
}

void check_shared(const OpenAiParameters& p, const ApiOptions& options) {
  const int64_t n = p.n.value_or(1);
  require(n <= options.max_choices, "`n` must be > 0 and <= {}. Given: {}", options.max_choices, n);
  const auto num_stop = static_cast<int64_t>(read_stop(p.stop).size());
  require(num_stop <= options.max_stop_sequences,
          "`stop` supports up to {} stop sequences. Given: {}", options.max_stop_sequences,
          num_stop);
  (void)wants_usage(p);
}

}  // namespace

template <>
std::span<const BodyField<ChatBody>> body_fields<ChatBody>() {
  using C = ChatBody;
  static constexpr auto kFields = with_shared<C>(std::array<BodyField<C>, 14>{{
      inherited_field<C, &OpenAiParameters::max_tokens>(
          "max_tokens", {.description = "of the answer; default: all that fits",
                         .range = positive("`max_new_tokens` must be strictly positive")}),
      body_field<&C::messages>("messages", {.description = "the conversation", .required = true}),
      body_field<&C::max_completion_tokens>(
          "max_completion_tokens",
          {.description = "the new name of max_tokens",
           .range = positive("`max_new_tokens` must be strictly positive")}),
      body_field<&C::logprobs>("logprobs", {"list the tokens with their log-probabilities"}),
      body_field<&C::top_logprobs>("top_logprobs", {"alternatives to list for each token"}),
      inherited_field<C, &ToolFields::tools>(
          "tools", {"[{\"type\": \"function\", \"function\": {name, description, parameters, "
                    "strict}}]: what the answer may call"}),
      inherited_field<C, &ToolFields::tool_choice>(
          "tool_choice",
          {"auto, none, required, a name, {\"type\": \"function\", ...} or {\"type\": "
           "\"allowed_tools\", ...}"}),
      inherited_field<C, &ToolFields::parallel_tool_calls>("parallel_tool_calls",
                                                           {"several calls in one answer"}),
      inherited_field<C, &ToolFields::tool_prompt>(
          "tool_prompt", {"as TGI: what to tell the model about calling, after the conversation"}),
      inherited_field<C, &ReasoningFields::reasoning_effort>(
          "reasoning_effort", {"none, minimal, low, medium, high, xhigh or max: for the template"}),
      inherited_field<C, &ReasoningFields::reasoning>(
          "reasoning", {"as OpenRouter: {effort, max_tokens, exclude, enabled}"}),
      inherited_field<C, &ReasoningFields::thinking_token_budget>(
          "thinking_token_budget", {"as vLLM: tokens after which the reasoning is ended"}),
      inherited_field<C, &ReasoningFields::include_reasoning>(
          "include_reasoning", {"as vLLM: false leaves the reasoning out of the answer"}),
      body_field<&C::chat_template_kwargs>(
          "chat_template_kwargs",
          {"{name: value}: variables of the chat template, such as enable_thinking"}),
  }});
  return kFields;
}

template <>
std::span<const BodyField<CompletionBody>> body_fields<CompletionBody>() {
  using C = CompletionBody;
  static constexpr auto kFields = with_shared<C>(std::array<BodyField<C>, 6>{{
      inherited_field<C, &OpenAiParameters::max_tokens>(
          "max_tokens", {"of the answer; default: all that fits; 0 with `echo` and `logprobs`: the "
                         "prompt's log-probabilities alone"}),
      body_field<&C::prompt>("prompt",
                             {.description = "a text, a list of texts, token ids, or lists of them",
                              .required = true}),
      body_field<&C::suffix>("suffix", {"not supported: put it into the prompt"}),
      body_field<&C::echo>("echo", {"put the prompt before the answer"}),
      body_field<&C::logprobs>("logprobs", {"alternatives to list for each token"}),
      body_field<&C::best_of>("best_of", {.description = "sequences to choose the n best from",
                                          .range = positive("`best_of` must be > 0")}),
  }});
  return kFields;
}

bool is_base_model(const std::optional<std::string>& model, const ApiOptions& options) {
  // What clients send that have no name to send: TGI's, and huggingface_hub's.
  static constexpr std::array<std::string_view, 3> kAnyModel = {"", "tgi", "dummy"};
  if (!model || *model == options.model_id) return true;
  return std::find(kAnyModel.begin(), kAnyModel.end(), *model) != kAnyModel.end();
}

ApiError model_not_found(const std::string& model,
                         const ApiOptions& options,
                         const std::string& reason) {
  return {404, "model_not_found",
          fmt::format("The model `{}` does not exist; this server has `{}`{}", model.substr(0, 200),
                      fmt::join(options.model_ids, "`, `"),
                      reason.empty() ? "" : ", and no adapter of that name: " + reason)};
}

// Only a name that this gateway has not met costs a question to the daemon.
static bool is_known_adapter(const Service& service, const std::string& name) {
  if (service.adapters == nullptr) return false;
  if (service.adapters->knows(name)) return true;
  const std::vector<std::string> names = adapter_names(service);
  return std::ranges::find(names, name) != names.end();
}

void choose_by_model(Scope& scope,
                     const OpenAiParameters& parameters,
                     std::span<ipc::GenerateRequest> requests) {
  if (parameters.model) choose_served_model(scope, *parameters.model);
  const ApiOptions& options = scope.options();
  AdapterAsk ask{.source = parameters.adapter_source, .token = parameters.api_token};
  ipc::GenerateRequest chosen;
  const bool is_base = is_base_model(parameters.model, options);
  const bool is_known = !is_base && is_known_adapter(scope.service(), *parameters.model);
  if (is_base || (options.any_model && !is_known)) {
    choose_adapter(scope, ask, chosen);
  } else {
    const std::string& name = *parameters.model;
    if (scope.service().adapters == nullptr) throw model_not_found(name, options);
    // What is no name of the hub is an adapter only where one is known.
    const bool may_be_found = ask.source || std::ranges::count(name, '/') == 1;
    if (!is_known && !may_be_found) throw model_not_found(name, options);
    ask.id = name;
    try {
      choose_adapter(scope, ask, chosen);
    } catch (const ApiError& error) {
      if (error.status() != 424 || is_known) throw;
      throw model_not_found(name, options, error.what());
    }
  }
  for (ipc::GenerateRequest& request : requests) {
    request.adapter = chosen.adapter;
    request.adapter_path = chosen.adapter_path;
  }
}

bool is_greedy(const OpenAiParameters& parameters) {
  return parameters.temperature && *parameters.temperature == 0;
}

void fill_sampling(const OpenAiParameters& p, const ApiOptions& options, ipc::GenerateParams& to) {
  to.do_sample = !is_greedy(p);
  if (!is_greedy(p)) {
    to.temperature = p.temperature;
    to.top_p = p.top_p;
    if (p.typical_p && *p.typical_p < 1) to.typical_p = p.typical_p;
    to.min_p = p.min_p;
    if (p.top_k.value_or(0) > 0) to.top_k = *p.top_k;
  }
  to.sampling_defaults = p.sampling_defaults;
  to.repetition_penalty = p.repetition_penalty;
  to.frequency_penalty = p.frequency_penalty;
  to.presence_penalty = p.presence_penalty;
  to.logit_bias = read_logit_bias(p.logit_bias);
  if (p.seed) to.seed = p.seed->value;
  to.stop = read_stop(p.stop);
  to.include_stop_text = false;
  to.ignore_eos = p.ignore_eos;
  if (p.speculate) to.speculate = *p.speculate;
  to.guide = guide_of(p, options.supports_grammars);
  to.max_input_tokens = options.max_input_tokens;
  to.max_total_tokens = options.max_total_tokens;
  if (p.max_tokens) to.max_new_tokens = *p.max_tokens;
  // Greedy answers are all the same one, which is computed once and told n times.
  to.best_of = is_greedy(p) ? 1 : p.n.value_or(1);
}

bool wants_usage(const OpenAiParameters& parameters) {
  if (!parameters.stream_options) return false;
  const OrderedJson& options = *parameters.stream_options;
  if (!options.is_object()) fail_body_type("stream_options", "an object", options);
  static constexpr std::array<std::string_view, 1> kKnown = {"include_usage"};
  static constexpr std::array kExtras = {
      ExtraField{"include_obfuscation", kAnything, "padding against those who watch packets"},
      ExtraField{"continuous_usage_stats", "[false]", "usage comes once, at the end"}};
  for (const auto& item : options.items()) {
    if (item.key() == kKnown[0]) continue;
    check_extra_field("stream_options." + item.key(), item.key(), item.value(), kExtras, kKnown);
  }
  const auto it = options.find("include_usage");
  if (it == options.end() || it->is_null()) return false;
  bool wanted = false;
  read_body_value(*it, "stream_options.include_usage", wanted);
  return wanted;
}

OrderedJson checked_messages(const OrderedJson& messages) {
  if (!messages.is_array()) fail_body_type("messages", "an array", messages);
  require(!messages.empty(), "`messages` cannot be empty");
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    const OrderedJson& from = messages[i];
    if (!from.is_object()) fail_body_type(path, "an object", from);
    std::string role;
    if (!from.contains("role")) fail_body(path + ".role", "missing field");
    read_body_value(from["role"], path + ".role", role);
    OrderedJson message = from;
    // OpenAI's new name for what templates know as the system's message.
    if (role == "developer") message["role"] = "system";
    const bool has_calls = from.contains("tool_calls") && from["tool_calls"].is_array();
    const auto content = from.find("content");
    if (content == from.end() || content->is_null()) {
      if (!has_calls) fail_body(path + ".content", "missing field");
    } else if (content->is_array()) {
      for (size_t k = 0; k < content->size(); ++k) {
        check_part((*content)[k], fmt::format("{}.content[{}]", path, k));
      }
    } else if (!content->is_string()) {
      fail_body_type(path + ".content", "a string or an array of parts", *content);
    }
    out.push_back(std::move(message));
  }
  return out;
}

bool ends_with_assistant(const OrderedJson& messages) {
  const OrderedJson& last = messages.back();
  if (last["role"] != "assistant") return false;
  // A turn that calls tools is over.
  const auto calls = last.find("tool_calls");
  return calls == last.end() || !calls->is_array() || calls->empty();
}

ipc::TokenizeParams to_tokenize(const ChatBody& body) {
  ipc::TokenizeParams out;
  out.messages = checked_messages(body.messages);
  out.continue_final_message = ends_with_assistant(*out.messages);
  out.add_special = false;
  ToolsAsked asked = tools_of(body, /*supports_grammars=*/true);
  out.tools = std::move(asked.tools);
  out.tool_choice = std::move(asked.choice);
  out.tool_prompt = std::move(asked.tool_prompt);
  out.reasoning_effort = reasoning_of(body).effort;
  read_template_kwargs(body, out.chat_template_kwargs);
  return out;
}

ipc::GenerateRequest to_daemon(const ChatBody& body, const ApiOptions& options) {
  check_shared(body, options);
  check_ranges(body);
  const int64_t top_n = body.top_logprobs.value_or(0);
  require(top_n <= options.max_top_logprobs, "`top_logprobs` must be >= 0 and <= {}. Given: {}",
          options.max_top_logprobs, top_n);
  require(body.logprobs || top_n == 0, "`top_logprobs` needs `logprobs` to be true");
  if (body.max_tokens && body.max_completion_tokens) {
    fail_body("max_completion_tokens", "duplicate field: `max_tokens` is given as well");
  }
  ipc::GenerateRequest out;
  out.messages = checked_messages(body.messages);
  read_template_kwargs(body, out.chat_template_kwargs);
  out.continue_final_message = ends_with_assistant(*out.messages);
  out.stream = body.stream;
  ToolsAsked asked = tools_of(body, options.supports_grammars);
  out.tools = std::move(asked.tools);
  out.tool_choice = std::move(asked.choice);
  if (!asked.parallel) out.parallel_tool_calls = false;
  out.tool_prompt = std::move(asked.tool_prompt);
  const ReasoningAsked reasoning = reasoning_of(body);
  out.reasoning_effort = reasoning.effort;
  out.parse_answer = true;
  fill_sampling(body, options, out.params);
  out.params.max_reasoning_tokens = reasoning.max_tokens;
  if (body.max_completion_tokens) out.params.max_new_tokens = *body.max_completion_tokens;
  out.params.details = body.logprobs && !body.stream;
  out.params.top_n_tokens = top_n;
  return out;
}

namespace {

// The prompts of a completions body: texts or token ids.
void read_prompts(const OrderedJson& json, std::vector<ipc::GenerateRequest>& out) {
  const auto add_text = [&](const OrderedJson& text) {
    out.emplace_back().prompt = text.get<std::string>();
    require(!out.back().prompt->empty(), "`inputs` cannot be empty");
  };
  const auto add_ids = [&](const OrderedJson& ids, const std::string& path) {
    read_body_value(ids, path, out.emplace_back().prompt_ids.emplace());
    require(!out.back().prompt_ids->empty(), "`inputs` cannot be empty");
  };
  if (json.is_string()) return add_text(json);
  if (!json.is_array()) fail_body_type("prompt", "a string or an array", json);
  require(!json.empty(), "`prompt` cannot be an empty list");
  if (json.front().is_number()) return add_ids(json, "prompt");
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string path = fmt::format("prompt[{}]", i);
    if (json[i].is_string()) {
      add_text(json[i]);
    } else if (json[i].is_array()) {
      add_ids(json[i], path);
    } else {
      fail_body_type(path, "a string or an array of token ids", json[i]);
    }
  }
}

}  // namespace

std::vector<ipc::GenerateRequest> to_daemon(const CompletionBody& body, const ApiOptions& options) {
  check_shared(body, options);
  check_ranges(body);
  if (body.suffix) {
    throw ApiError(422, "suffix not supported",
                   "Suffix is not supported and can be achieved by preprocessing the prompt.");
  }
  const int64_t top_n = body.logprobs.value_or(0);
  require(top_n <= options.max_top_logprobs, "`logprobs` must be >= 0 and <= {}. Given: {}",
          options.max_top_logprobs, top_n);
  const int64_t n = body.n.value_or(1);
  const int64_t best_of = body.best_of.value_or(static_cast<uint32_t>(n));
  require(best_of >= n && best_of <= options.max_choices,
          "`best_of` must be >= `n` and <= {}. Given: {}", options.max_choices, best_of);
  require(!body.stream || best_of == n, "`best_of` != `n` is not supported when streaming tokens");
  std::vector<ipc::GenerateRequest> out;
  read_prompts(body.prompt, out);
  const auto num_prompts = static_cast<int64_t>(out.size());
  if (num_prompts > options.max_client_batch_size) {
    throw ApiError(422, "batch size exceeded",
                   fmt::format("Number of prompts exceeds the maximum allowed batch size of {}",
                               options.max_client_batch_size));
  }
  for (ipc::GenerateRequest& request : out) {
    // The prompt's tokens are known at its end only, and have to be told before all others.
    request.stream = body.stream && !(body.echo && body.logprobs);
    fill_sampling(body, options, request.params);
    if (!is_greedy(body)) request.params.best_of = best_of;
    request.params.return_full_text = body.echo;
    request.params.details = body.logprobs.has_value() && !request.stream;
    request.params.prompt_logprobs = body.echo && body.logprobs.has_value();
    request.params.top_n_tokens = top_n;
  }
  return out;
}

}  // namespace tgi::http
