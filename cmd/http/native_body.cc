#include "cmd/http/native_body.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/known_names.h"

namespace tgi::http {

template <>
std::span<const BodyField<MergedAdaptersBody>> body_fields<MergedAdaptersBody>() {
  using M = MergedAdaptersBody;
  static constexpr std::array kFields = {
      body_field<&M::ids>(
          "ids", {.description = "adapters, named as `adapter_id` names one", .required = true}),
      body_field<&M::weights>("weights", {"what each counts; default: 1"}),
      body_field<&M::merge_strategy>(
          "merge_strategy", {"linear (the default), ties, dare_linear or dare_ties: of what each "
                             "adapter adds to a weight, the whole product"}),
      body_field<&M::density>(
          "density", {"the share of the numbers that ties, dare_linear and dare_ties keep, which "
                      "they need"}),
      body_field<&M::majority_sign_method>(
          "majority_sign_method",
          {"the sign that ties and dare_ties keep: of the sum (total, the default), or that most "
           "have (frequency)"}),
  };
  return kFields;
}

// The order of the rows with a range is the order in which TGI checks them.
template <>
std::span<const BodyField<GenerateParameters>> body_fields<GenerateParameters>() {
  using P = GenerateParameters;
  static constexpr std::array kFields = {
      body_field<&P::best_of>("best_of",
                              {"sequences to sample; the best by mean log-probability is "
                               "the answer, the others are in the details"}),
      body_field<&P::temperature>(
          "temperature", {.description = "divides the logits",
                          .range = {.low = 0,
                                    .above_low = true,
                                    .rule = "`temperature` must be strictly positive; leave it out "
                                            "for a greedy answer, which is the default"}}),
      body_field<&P::repetition_penalty>(
          "repetition_penalty",
          {.description = "1 is off; once per distinct token of prompt and output",
           .range = {.low = 0,
                     .above_low = true,
                     .rule = "`repetition_penalty` must be strictly positive"}}),
      body_field<&P::frequency_penalty>(
          "frequency_penalty",
          {.description = "subtracted for each occurrence in the output",
           .range = {.low = -2,
                     .high = 2,
                     .rule = "`frequency_penalty` must be >= -2.0 and <= 2.0"}}),
      body_field<&P::presence_penalty>(
          "presence_penalty", {.description = "subtracted once for a token of the output",
                               .range = {.low = -2,
                                         .high = 2,
                                         .rule = "`presence_penalty` must be >= -2.0 and <= 2.0"}}),
      body_field<&P::top_p>(
          "top_p",
          {.description = "nucleus sampling: the most likely tokens that make up this mass",
           .range = {.low = 0,
                     .high = 1,
                     .above_low = true,
                     .below_high = true,
                     .rule = "`top_p` must be > 0.0 and < 1.0"}}),
      body_field<&P::typical_p>("typical_p",
                                {.description = "typical decoding mass",
                                 .range = {.low = 0,
                                           .high = 1,
                                           .above_low = true,
                                           .below_high = true,
                                           .rule = "`typical_p` must be > 0.0 and < 1.0"}}),
      body_field<&P::min_p>(
          "min_p", {.description = "tokens at least this likely, as a share of the most likely one",
                    .range = {.low = 0, .high = 1, .rule = "`min_p` must be >= 0.0 and <= 1.0"}}),
      body_field<&P::top_k>(
          "top_k",
          {.description = "the k most likely tokens",
           .range = {.low = 0, .above_low = true, .rule = "`top_k` must be strictly positive"}}),
      body_field<&P::max_new_tokens>(
          "max_new_tokens", {.description = "default: all that fits",
                             .range = {.low = 0,
                                       .above_low = true,
                                       .rule = "`max_new_tokens` must be strictly positive"}}),
      body_field<&P::stop>("stop", {"texts that end the answer; they stay in it"}),
      body_field<&P::seed>("seed", {"seed of the draws; default: random, reported in the details"}),
      body_field<&P::top_n_tokens>("top_n_tokens", {"alternatives to list for each token"}),
      body_field<&P::truncate>("truncate", {"keep only this many tokens at the end of the prompt"}),
      body_field<&P::do_sample>("do_sample", {"sample instead of taking the most likely token"}),
      body_field<&P::return_full_text>("return_full_text", {"put the prompt before the answer"}),
      body_field<&P::watermark>("watermark", {"watermark of Kirchenbauer et al., 2023"}),
      body_field<&P::details>("details", {"list the tokens of the answer"}),
      body_field<&P::decoder_input_details>(
          "decoder_input_details",
          {"list the tokens of the prompt (needs --enable-prefill-logprobs)"}),
      inherited_field<P, &GuideFields::grammar>(
          "grammar",
          {"what the answer has to be: {\"type\": \"json\", \"value\": schema}, \"regex\" or "
           "\"json_schema\"; or a text, a grammar in GBNF or Lark"}),
      inherited_field<P, &GuideFields::response_format>(
          "response_format", {"as LoRAX: {\"type\": \"json_object\", \"schema\": schema}"}),
      body_field<&P::adapter_id>(
          "adapter_id", {"the LoRA adapter to answer by: one that the server was started with, or "
                         "ORG/NAME of the hub; absent or \"\": the base model"}),
      body_field<&P::adapter_source>("adapter_source",
                                     {"where `adapter_id` is: hub, local (then it is the path of "
                                      "a folder of the server) or s3; default: hub"}),
      body_field<&P::api_token>("api_token", {"to the hub, for a private `adapter_id`"}),
      body_field<&P::merged_adapters>("merged_adapters",
                                      {"as LoRAX: several adapters as one; not with `adapter_id`"}),
      body_field<&P::ignore_eos_token>("ignore_eos_token", {"go on after the end of the text"}),
      body_field<&P::min_new_tokens>(
          "min_new_tokens", {"the text does not end before so many tokens, unless by `stop`"}),
      body_field<&P::speculate>("speculate",
                                {"tokens to be drafted at most for a step, up to the server's "
                                 "--speculate, which is the default; the answer is the same"}),
      body_field<&P::return_k_alternatives>(
          "return_k_alternatives",
          {"as LoRAX: alternatives to list in each token of the details or of the stream"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<TokenizeBody>> body_fields<TokenizeBody>() {
  using B = TokenizeBody;
  static constexpr std::array kFields = {
      body_field<&B::inputs>("inputs", {.description = "the prompt", .required = true}),
      body_field<&B::add_special_tokens>("add_special_tokens",
                                         {"false: without those that mark a text's ends"}),
      body_field<&B::parameters>("parameters", {"of the same prompt's generation, which changes "
                                                "no token of it"}),
      body_field<&B::stream>("stream", {"likewise"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<GenerateBody>> body_fields<GenerateBody>() {
  static constexpr std::array kFields = {
      body_field<&GenerateBody::inputs>("inputs", {.description = "the prompt", .required = true}),
      body_field<&GenerateBody::parameters>("parameters"),
      body_field<&GenerateBody::stream>("stream", {"answer with server-sent events"}),
  };
  return kFields;
}

GenerateParameters default_parameters() {
  GenerateParameters out;
  out.do_sample = true;
  return out;
}

namespace {

bool is_sampling(const GenerateParameters& p) {
  return p.do_sample || p.temperature || p.top_k || p.top_p || p.typical_p || p.min_p;
}

void check_best_of(const GenerateParameters& p, bool stream, const ApiOptions& options) {
  const uint64_t best_of = p.best_of.value_or(1);
  const auto max = static_cast<uint64_t>(options.max_best_of);
  require(!stream || best_of == 1, "`best_of` != 1 is not supported when streaming tokens");
  require(!stream || !p.decoder_input_details,
          "`decoder_input_details` == true is not supported when streaming tokens");
  require(best_of <= 1 || max > 1, "`best_of` != 1 is not allowed for this endpoint");
  require(best_of <= max, "`best_of` must be > 0 and <= {}. Given: {}", max, best_of);
  require(best_of <= 1 || is_sampling(p), "you must use sampling when `best_of` is > 1");
}

void check_name_of(std::string_view field, Names names, const std::string& given) {
  require(std::ranges::find(names, given) != names.end(),
          "`merged_adapters.{}` must be one of {}. Given: {}", field, fmt::join(names, ", "),
          given.substr(0, 100));
}

// In LoRAX's words where it has any.
void check_merged(const GenerateParameters& p) {
  const MergedAdaptersBody& merged = *p.merged_adapters;
  require(!p.adapter_id, "at most one of `adapter_id` or `adapters` may be provided");
  require(!merged.ids.empty(), "at least one adapter ID must be provided when setting `adapters`");
  require(merged.ids.size() <= ipc::kMaxMergedAdapters,
          "`merged_adapters.ids` has at most {} adapters. Given: {}", ipc::kMaxMergedAdapters,
          merged.ids.size());
  require(merged.weights.empty() || merged.weights.size() == merged.ids.size(),
          "number of adapter IDs must match number of adapter weights");
  const std::string strategy = merged.merge_strategy.value_or("linear");
  check_name_of("merge_strategy", kMergeStrategyNames, strategy);
  check_name_of("majority_sign_method", kMajoritySignNames,
                merged.majority_sign_method.value_or("total"));
  require(merged.density.value_or(0) >= 0, "`merged_adapters.density` must be >= 0.0");
  require(strategy == "linear" || merged.density.value_or(0) > 0,
          "`merged_adapters.density` must be given with merge_strategy {}, and be above 0: it is "
          "the share of the numbers that are kept",
          strategy);
}

}  // namespace

std::optional<ipc::MergedAdapters> merged_adapters_of(const GenerateParameters& p) {
  if (!p.merged_adapters) return std::nullopt;
  const MergedAdaptersBody& merged = *p.merged_adapters;
  return ipc::MergedAdapters{.ids = merged.ids,
                             .weights = merged.weights,
                             .merge_strategy = merged.merge_strategy.value_or("linear"),
                             .density = merged.density,
                             .majority_sign_method = merged.majority_sign_method.value_or("total")};
}

void check_parameters(const GenerateParameters& p,
                      const std::string& inputs,
                      bool stream,
                      const ApiOptions& options) {
  check_best_of(p, stream, options);
  check_ranges(p);
  const auto max_stop = static_cast<size_t>(options.max_stop_sequences);
  require(p.stop.size() <= max_stop, "`stop` supports up to {} stop sequences. Given: {}", max_stop,
          p.stop.size());
  for (const std::string& stop : p.stop) require(!stop.empty(), "`stop` must not hold empty texts");
  require(!p.seed || p.best_of.value_or(1) <= 1, "`seed` must not be set when `best_of` > 1");
  const int64_t top_n = p.top_n_tokens.value_or(0);
  require(top_n <= options.max_top_n_tokens, "`top_n_tokens` must be >= 0 and <= {}. Given: {}",
          options.max_top_n_tokens, top_n);
  const int64_t alternatives = p.return_k_alternatives.value_or(0);
  require(alternatives <= options.max_top_n_tokens,
          "`return_k_alternatives` must be >= 0 and <= {}. Given: {}", options.max_top_n_tokens,
          alternatives);
  require(!inputs.empty(), "`inputs` cannot be empty");
  const auto max_input = static_cast<uint64_t>(options.max_input_tokens);
  require(!p.truncate || (*p.truncate > 0 && *p.truncate <= max_input),
          "`truncate` must be strictly positive and less than {}. Given: {}", max_input,
          p.truncate.value_or(0));
  (void)guide_of(p, options.supports_grammars);
  if (p.merged_adapters) check_merged(p);
}

ipc::GenerateRequest to_daemon(const GenerateParameters& p,
                               const std::string& inputs,
                               bool stream,
                               const ApiOptions& options) {
  ipc::GenerateRequest out;
  out.prompt = inputs;
  out.stream = stream;
  ipc::GenerateParams& to = out.params;
  if (p.max_new_tokens) to.max_new_tokens = *p.max_new_tokens;
  if (p.do_sample) to.do_sample = true;  // its clients always say false
  // A neutral temperature does not make TGI sample.
  if (p.temperature && *p.temperature != 1) to.temperature = p.temperature;
  if (p.top_k) to.top_k = *p.top_k;
  to.top_p = p.top_p;
  to.typical_p = p.typical_p;
  to.min_p = p.min_p;
  to.repetition_penalty = p.repetition_penalty;
  to.frequency_penalty = p.frequency_penalty;
  to.presence_penalty = p.presence_penalty;
  to.seed = p.seed;
  to.stop = p.stop;
  to.best_of = static_cast<int64_t>(std::max<uint64_t>(p.best_of.value_or(1), 1));
  // With several sequences a temperature of 1 is still sampling.
  if (to.best_of > 1) to.do_sample = true;
  to.top_n_tokens = std::max(p.top_n_tokens.value_or(0), p.return_k_alternatives.value_or(0));
  if (p.truncate) to.truncate = static_cast<int64_t>(*p.truncate);
  to.watermark = p.watermark;
  to.ignore_eos = p.ignore_eos_token;
  if (p.min_new_tokens) to.min_new_tokens = *p.min_new_tokens;
  if (p.speculate) to.speculate = *p.speculate;
  to.guide = guide_of(p, options.supports_grammars);
  // In a stream only the whole text at its end has the prompt in front, which is put there later.
  to.return_full_text = !stream && p.return_full_text.value_or(false);
  to.details = p.details || p.decoder_input_details;
  to.prompt_logprobs = p.decoder_input_details && options.enable_prefill_logprobs;
  to.max_input_tokens = options.max_input_tokens;
  to.max_total_tokens = options.max_total_tokens;
  return out;
}

}  // namespace tgi::http
