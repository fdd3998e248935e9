#include "cmd/http/openai_body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ipc/duration.h"

namespace tgi::http {
namespace {

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

// A refusal, which OpenAI's models answer with, is what was said.
void check_part(OrderedJson& part, const std::string& path) {
  if (!part.is_object() || !part.contains("type"))
    fail_body(path, "expected an object with a type");
  const OrderedJson& type = part["type"];
  if (type == "image_url" || type == "input_audio" || type == "file") {
    throw validation_error(fmt::format("{} modality is not supported",
                                       type == "image_url" ? "image" : type.get<std::string>()));
  }
  if (type != "text" && type != "refusal") {
    fail_body(path + ".type", "unknown kind of content, expected text or refusal");
  }
  const auto member = type.get<std::string>();
  if (!part.contains(member)) fail_body(path + "." + member, "missing field");
  std::string text;
  read_body_value(part[member], path + "." + member, text);
  if (type == "refusal") part = {{"type", "text"}, {"text", std::move(text)}};
}

void check_shared(const OpenAiParameters& p, const ApiOptions& options) {
  const int64_t n = p.n.value_or(1);
  require(n <= options.max_choices, "`n` must be > 0 and <= {}. Given: {}", options.max_choices, n);
  const auto num_stop = static_cast<int64_t>(read_stop(p.stop).size());
  require(num_stop <= options.max_stop_sequences,
          "`stop` supports up to {} stop sequences. Given: {}", options.max_stop_sequences,
          num_stop);
  (void)wants_usage(p);
  check_openrouter(p);
}

// Whether the answer goes on with the last message: where that is possible, unless told otherwise.
bool goes_on(const ChatBody& body, const OrderedJson& messages) {
  const bool can = ends_with_assistant(messages);
  const bool opens_turn = body.add_generation_prompt.value_or(false);
  const bool goes_on = body.continue_final_message.value_or(can && !opens_turn);
  require(can || !goes_on,
          "`continue_final_message` needs messages that end with a turn of the assistant");
  require(!goes_on || !opens_turn,
          "`add_generation_prompt` and `continue_final_message` exclude each other");
  require(goes_on || body.add_generation_prompt.value_or(true),
          "`add_generation_prompt` may be false only with `continue_final_message`: there is no "
          "turn to answer in");
  return goes_on;
}

}  // namespace

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
  if (p.min_tokens) to.min_new_tokens = *p.min_tokens;
  if (p.speculate) to.speculate = *p.speculate;
  to.guide = guide_of(p, options.supports_grammars);
  require(!to.guide || p.max_tokens.value_or(1) > 0,
          "`max_tokens` must be strictly positive where the answer has a form");
  to.max_input_tokens = options.max_input_tokens;
  to.max_total_tokens = options.max_total_tokens;
  if (p.max_tokens) to.max_new_tokens = *p.max_tokens;
  // Greedy answers are all the same one, which is computed once and told n times.
  to.best_of = is_greedy(p) ? 1 : p.n.value_or(1);
}

std::optional<OrderedJson> template_variables(const std::optional<OrderedJson>& given,
                                              const std::optional<std::string>& verbosity,
                                              const std::string& path) {
  static constexpr std::array<std::string_view, 3> kLevels = {"low", "medium", "high"};
  if (given && !given->is_object()) fail_body_type("chat_template_kwargs", "an object", *given);
  if (!verbosity) return given;
  require(std::ranges::find(kLevels, *verbosity) != kLevels.end(),
          "`{}` must be one of {}. Given: {}", path, fmt::join(kLevels, ", "),
          verbosity->substr(0, 100));
  OrderedJson out = given.value_or(OrderedJson::object());
  if (!out.contains("verbosity")) out["verbosity"] = *verbosity;
  return out;
}

void check_prompt_cache_options(const std::optional<OrderedJson>& options) {
  static constexpr std::array kExtras = {
      ExtraField{"mode", kAnything, "every prompt is looked up in the cache"},
      ExtraField{"ttl", kAnything, "the cache keeps what it has room for"},
      ExtraField{"comparison_response_id", "[]", "the use of the cache is not explained"},
      ExtraField{"prewarm", "[false]", "every request is answered"},
  };
  static constexpr std::array<std::string_view, 2> kKnown = {"mode", "ttl"};
  if (!options) return;
  if (!options->is_object()) fail_body_type("prompt_cache_options", "an object", *options);
  for (const auto& item : options->items()) {
    check_extra_field("prompt_cache_options." + item.key(), item.key(), item.value(), kExtras,
                      kKnown);
  }
}

bool wants_usage(const OpenAiParameters& parameters) {
  if (!parameters.stream_options) return openrouter_wants_usage(parameters);
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
  if (it == options.end() || it->is_null()) return openrouter_wants_usage(parameters);
  bool wanted = false;
  read_body_value(*it, "stream_options.include_usage", wanted);
  return wanted || openrouter_wants_usage(parameters);
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
    const auto old_call = from.find("function_call");
    if (old_call != from.end() && !old_call->is_null()) {
      fail_body(path + ".function_call", "the old name: use `tool_calls`");
    }
    const auto content = message.find("content");
    if (content == message.end() || content->is_null()) {
      const auto refusal = from.find("refusal");
      if (refusal != from.end() && refusal->is_string()) {
        message["content"] = *refusal;
      } else if (!has_calls) {
        fail_body(path + ".content", "missing field");
      }
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
  out.continue_final_message = goes_on(body, *out.messages);
  out.add_special = false;
  ToolsAsked asked = tools_of(body, /*supports_grammars=*/true);
  out.tools = std::move(asked.tools);
  out.tool_choice = std::move(asked.choice);
  out.tool_prompt = std::move(asked.tool_prompt);
  out.reasoning_effort = reasoning_of(body).effort;
  out.chat_template_kwargs =
      template_variables(body.chat_template_kwargs, body.verbosity, "verbosity");
  return out;
}

ipc::GenerateRequest to_daemon(const ChatBody& body, const ApiOptions& options) {
  check_shared(body, options);
  check_ranges(body);
  check_prompt_cache_options(body.prompt_cache_options);
  const int64_t top_n = body.top_logprobs.value_or(0);
  require(top_n <= options.max_top_logprobs, "`top_logprobs` must be >= 0 and <= {}. Given: {}",
          options.max_top_logprobs, top_n);
  require(body.logprobs || top_n == 0, "`top_logprobs` needs `logprobs` to be true");
  if (body.max_tokens && body.max_completion_tokens) {
    fail_body("max_completion_tokens", "duplicate field: `max_tokens` is given as well");
  }
  ipc::GenerateRequest out;
  out.messages = checked_messages(body.messages);
  out.chat_template_kwargs =
      template_variables(body.chat_template_kwargs, body.verbosity, "verbosity");
  out.continue_final_message = goes_on(body, *out.messages);
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
  out.keep_alive_seconds = keep_alive_of(body.keep_alive);
  out.params.details = body.logprobs && !body.stream;
  out.params.top_n_tokens = top_n;
  return out;
}

std::optional<double> keep_alive_of(const std::optional<OrderedJson>& keep_alive) {
  if (!keep_alive) return std::nullopt;
  const OrderedJson& time = *keep_alive;
  if (time.is_number()) return time.get<double>() < 0 ? -1 : time.get<double>();
  if (!time.is_string()) fail_body_type("keep_alive", "a time such as \"5m\", or seconds", time);
  try {
    return ipc::parse_keep_alive(time.get<std::string>());
  } catch (const Error& error) {
    fail_body("keep_alive", error.what());
  }
}

namespace {

// The prompts of a completions body: texts or token ids.
void read_prompts(const OrderedJson& json, std::vector<ipc::GenerateRequest>& out) {
  const auto add_text = [&](const OrderedJson& text) {
    out.emplace_back().prompt = text.get<std::string>();
    require(!out.back().prompt->empty(), "`prompt` cannot be empty");
  };
  const auto add_ids = [&](const OrderedJson& ids, const std::string& path) {
    read_body_value(ids, path, out.emplace_back().prompt_ids.emplace());
    require(!out.back().prompt_ids->empty(), "`prompt` cannot be empty");
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
    request.keep_alive_seconds = keep_alive_of(body.keep_alive);
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
