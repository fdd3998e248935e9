#include "cmd/http/llama_cpp_body.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "cmd/http/llama_cpp_fields.h"

namespace tgi::http {
namespace {

constexpr LlamaDefaults kLlamaCppDefaults = {
    .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05};

// Those that are here, as the member `samplers` names them.
constexpr std::array<std::string_view, 7> kSamplers = {
    "penalties", "top_k", "typ_p", "top_p", "min_p", "temperature", "typical_p"};
// Those that are off whatever the list says: their own members are refused with any other value.
constexpr std::array<std::string_view, 4> kIdleSamplers = {"dry", "xtc", "top_n_sigma",
                                                           "adaptive_p"};

bool is_text_or_id(const OrderedJson& json) {
  return json.is_string() || json.is_number();
}

// A prompt of texts and ids: what a text begins with is added to the first part alone.
OrderedJson mixed_prompt(const OrderedJson& parts,
                         const std::string& path,
                         const Tokenize& tokenize) {
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    if (parts[i].is_string()) {
      for (const int32_t id : tokenize(parts[i].get<std::string>(), i == 0)) out.push_back(id);
    } else {
      int32_t id = 0;
      read_body_value(parts[i], place, id);
      out.push_back(id);
    }
  }
  return out;
}

OrderedJson one_prompt(const OrderedJson& json, const std::string& path, const Tokenize& tokenize) {
  if (json.is_string()) return json;
  if (json.is_object()) {
    fail_body(path, "images and sounds are not supported, expected a text or a list of ids");
  }
  if (!json.is_array()) fail_body_type(path, "a text, or a list of texts and ids", json);
  return mixed_prompt(json, path, tokenize);
}

void check_samplers(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::ranges::find(kIdleSamplers, name) != kIdleSamplers.end()) continue;
    require(std::ranges::find(kSamplers, name) != kSamplers.end(),
            "`samplers`: {} is not here; there are {}", name.substr(0, 100),
            fmt::join(kSamplers, ", "));
  }
}

// Those that the list leaves out are off. Their order is always the same here.
void leave_out_samplers(const std::vector<std::string>& names, CompletionBody& out) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (!has("penalties")) {
    out.repetition_penalty.reset();
    out.presence_penalty.reset();
    out.frequency_penalty.reset();
  }
  if (!has("top_k")) out.top_k = int32_t{ipc::kAllTokens};
  if (!has("typ_p") && !has("typical_p")) out.typical_p.reset();
  if (!has("top_p")) out.top_p = 1;
  if (!has("min_p")) out.min_p = 0;
  if (!has("temperature") && out.temperature.value_or(1) > 0) out.temperature = 1;
}

// false stands for never.
double bias_value(const OrderedJson& json, const std::string& path) {
  constexpr double kNever = -100;
  if (json == OrderedJson(false)) return kNever;
  double out = 0;
  read_body_value(json, path, out);
  return std::clamp(out, kNever, -kNever);
}

void add_bias(const OrderedJson& token,
              double bias,
              const std::string& path,
              const Tokenize& tokenize,
              OrderedJson& to) {
  if (token.is_string()) {
    for (const int32_t id : tokenize(token.get<std::string>(), false)) {
      to[std::to_string(id)] = bias;
    }
    return;
  }
  int32_t id = 0;
  read_body_value(token, path, id);
  to[std::to_string(id)] = bias;
}

bool is_id(const std::string& text) {
  int32_t id = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  return error == std::errc() && stop == end;
}

// [[id or text, bias], ...], or OpenAI's object, whose keys may be texts too.
OrderedJson bias_of(const OrderedJson& json, const Tokenize& tokenize) {
  OrderedJson out = OrderedJson::object();
  if (json.is_object()) {
    for (const auto& item : json.items()) {
      const std::string path = "logit_bias." + item.key().substr(0, 100);
      const double bias = bias_value(item.value(), path);
      if (is_id(item.key())) {
        out[item.key()] = bias;
      } else {
        add_bias(item.key(), bias, path, tokenize, out);
      }
    }
    return out;
  }
  if (!json.is_array()) fail_body_type("logit_bias", "a list of pairs, or an object", json);
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string path = fmt::format("logit_bias[{}]", i);
    const OrderedJson& pair = json[i];
    if (!pair.is_array() || pair.size() != 2 || !is_text_or_id(pair[0])) {
      fail_body(path, "expected [id or text, bias]");
    }
    add_bias(pair[0], bias_value(pair[1], path), path, tokenize, out);
  }
  return out;
}

}  // namespace

template <>
std::span<const BodyField<LlamaCppBody>> body_fields<LlamaCppBody>() {
  using B = LlamaCppBody;
  static constexpr auto kFields = joined_rows(
      llama_sampling_rows<B>(),
      std::array<BodyField<B>, 15>{
          body_field<&B::prompt>(
              "prompt", {.description = "a text, a list of ids, one of texts and ids, or a list of "
                                        "several prompts",
                         .required = true}),
          body_field<&B::model>("model", {"the model's name, or that of a LoRA adapter"}),
          counting_field<B, &B::n_predict>(
              "n_predict", {"tokens of the answer; below 0: all that fits, the default"}),
          counting_field<B, &B::max_tokens>("max_tokens", {"the same"}),
          counting_field<B, &B::n_probs>("n_probs", {"alternatives to list for each token"}),
          body_field<&B::grammar>("grammar", {"for the answer, in GBNF or Lark"}),
          body_field<&B::json_schema>("json_schema", {"for the answer"}),
          body_field<&B::logit_bias>(
              "logit_bias", {"[[id or text, bias or false], ...], or {\"id or text\": bias}"}),
          body_field<&B::samplers>("samplers", {"those that are on; their order is always the "
                                                "same: penalties, temperature, top_k, top_p, "
                                                "typ_p, min_p"}),
          body_field<&B::response_fields>(
              "response_fields",
              {"the members of the answer to give; a/b: the one within the other"}),
          body_field<&B::stream>("stream", {"answer with server-sent events"}),
          body_field<&B::ignore_eos>("ignore_eos", {"go on after the end of the text"}),
          body_field<&B::cache_prompt>("cache_prompt",
                                       {"use what the cache has of the prompt; default true"}),
          body_field<&B::return_tokens>("return_tokens", {"list the ids of the answer"}),
          body_field<&B::timings_per_token>("timings_per_token",
                                            {"tell times in each event of a stream"}),
      });
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<LlamaCppBody>() {
  static constexpr auto kExtras = joined_rows(
      kLlamaCppAnywhere,
      std::array{
          ExtraField{"n_cmpl", "[1]", "/v1/completions has `n`"},
          ExtraField{"n", "[1]", "/v1/completions has `n`"},
          ExtraField{"logprobs", "[0, false]", "use `n_probs`"},
          ExtraField{"max_completion_tokens", "[-1]", "use `n_predict`"},
          ExtraField{"stream_options", kAnything, "the last event always tells what was used"},
          ExtraField{"reasoning_format", kAnything, "the answer is what the model wrote"},
          ExtraField{"parse_tool_calls", kAnything, "the answer is what the model wrote"},
          ExtraField{"chat_format", kAnything, "the answer is what the model wrote"},
          ExtraField{"chat_parser", kAnything, "the answer is what the model wrote"},
          ExtraField{"generation_prompt", kAnything, "the answer is what the model wrote"},
          ExtraField{"echo", "[false]", "/v1/completions has it"},
          ExtraField{"image_data", "[[]]", "prompts are text alone"},
          ExtraField{"user", kAnything, "an end user's name"},
      });
  return kExtras;
}

template <>
std::span<const BodyField<LlamaCppTokenizeBody>> body_fields<LlamaCppTokenizeBody>() {
  using B = LlamaCppTokenizeBody;
  static constexpr std::array kFields = {
      body_field<&B::content>("content", {.description = "the text", .required = true}),
      body_field<&B::add_special>("add_special", {"what a text begins and ends with too"}),
      body_field<&B::with_pieces>("with_pieces", {"the text of each token too"}),
  };
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<LlamaCppTokenizeBody>() {
  static constexpr std::array kExtras = {
      ExtraField{"parse_special", "[true]", "special tokens that are written out are known"},
  };
  return kExtras;
}

template <>
std::span<const BodyField<DetokenizeBody>> body_fields<DetokenizeBody>() {
  static constexpr std::array kFields = {
      body_field<&DetokenizeBody::tokens>("tokens", {.description = "ids", .required = true}),
  };
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<DetokenizeBody>() {
  static constexpr std::array kExtras = {
      ExtraField{"model", kAnything, "one of several models; any other name means the default one"},
  };
  return kExtras;
}

template <>
std::span<const BodyField<VllmTokenizeBody>> body_fields<VllmTokenizeBody>() {
  using B = VllmTokenizeBody;
  static constexpr std::array kFields = {
      body_field<&B::model>("model",
                            {"one of several models; any other name means the default one"}),
      body_field<&B::prompt>("prompt", {.description = "the text", .required = true}),
      body_field<&B::add_special_tokens>("add_special_tokens",
                                         {"what a text begins and ends with too; default true"}),
      body_field<&B::return_token_strings>("return_token_strs", {"the text of each token too"}),
  };
  return kFields;
}

OrderedJson llama_cpp_prompts(const OrderedJson& prompt, const Tokenize& tokenize) {
  const auto is_number = [](const OrderedJson& json) { return json.is_number(); };
  const bool is_one =
      !prompt.is_array() || (std::any_of(prompt.begin(), prompt.end(), is_number) &&
                             std::all_of(prompt.begin(), prompt.end(), is_text_or_id));
  if (is_one) return OrderedJson::array({one_prompt(prompt, "prompt", tokenize)});
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < prompt.size(); ++i) {
    out.push_back(one_prompt(prompt[i], fmt::format("prompt[{}]", i), tokenize));
  }
  return out;
}

CompletionBody to_completion(const LlamaCppBody& body,
                             OrderedJson prompts,
                             const ApiOptions& options,
                             const Tokenize& tokenize) {
  check_ranges(body);
  const int64_t num_top = body.n_probs.value_or(0);
  require(num_top <= options.max_top_logprobs, "`n_probs` must be >= 0 and <= {}. Given: {}",
          options.max_top_logprobs, num_top);
  CompletionBody out;
  to_openai(body, kLlamaCppDefaults, out);
  if (body.samplers) {
    check_samplers(*body.samplers);
    leave_out_samplers(*body.samplers, out);
  }
  set_num_predict(body.n_predict ? *body.n_predict : body.max_tokens.value_or(-1), out);
  if (!body.grammar.value_or("").empty()) out.grammar = *body.grammar;
  out.json_schema = body.json_schema;
  if (body.logit_bias) out.logit_bias = bias_of(*body.logit_bias, tokenize);
  if (num_top > 0) out.logprobs = static_cast<uint32_t>(num_top);
  out.prompt = std::move(prompts);
  out.model = body.model;
  out.stream = body.stream;
  out.ignore_eos = body.ignore_eos;
  return out;
}

std::span<const Term> llama_cpp_terms() {
  static constexpr std::array<Term, 6> kTerms = {{
      {"prompt_ids", "prompt"},
      {"max_new_tokens", "n_predict"},
      {"max_tokens", "n_predict"},
      {"repetition_penalty", "repeat_penalty"},
      {"`logprobs`", "`n_probs`"},
      {"`inputs`", "`prompt`"},
  }};
  return kTerms;
}

OrderedJson generation_settings(const LlamaCppBody& body, const CompletionBody& asked) {
  const auto number = [](const auto& given, auto otherwise) {
    return OrderedJson(given ? *given : otherwise);
  };
  const int64_t num_predict = asked.max_tokens ? int64_t{*asked.max_tokens} : -1;
  OrderedJson stop = OrderedJson::array();
  if (asked.stop) stop = asked.stop->is_string() ? OrderedJson::array({*asked.stop}) : *asked.stop;
  return {{"n_predict", num_predict},
          {"max_tokens", num_predict},
          {"seed", asked.seed ? OrderedJson(asked.seed->value) : OrderedJson(-1)},
          {"temperature", number(asked.temperature, kLlamaCppDefaults.temperature)},
          {"top_k", asked.top_k == ipc::kAllTokens ? OrderedJson(0)
                                                   : number(asked.top_k, kLlamaCppDefaults.top_k)},
          {"top_p", number(asked.top_p, kLlamaCppDefaults.top_p)},
          {"min_p", number(asked.min_p, kLlamaCppDefaults.min_p)},
          {"typical_p", number(asked.typical_p, 1.0)},
          {"repeat_penalty", number(asked.repetition_penalty, 1.0)},
          {"repeat_last_n", body.repeat_last_n.value_or(-1) == 0 ? 0 : -1},
          {"presence_penalty", number(asked.presence_penalty, 0.0)},
          {"frequency_penalty", number(asked.frequency_penalty, 0.0)},
          {"mirostat", 0},
          {"dry_multiplier", 0.0},
          {"xtc_probability", 0.0},
          {"stop", std::move(stop)},
          {"n_probs", body.n_probs.value_or(0)},
          {"grammar", body.grammar.value_or("")},
          {"ignore_eos", body.ignore_eos},
          {"stream", body.stream},
          {"timings_per_token", body.timings_per_token}};
}

}  // namespace tgi::http
