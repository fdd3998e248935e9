// The codec of what a client asks: every field with the values it may have. What depends on the
// model (does the prompt fit, is the id in the vocabulary) is checked later, at intake.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/known_names.h"
#include "ipc/request_checks.h"

namespace tgi::ipc {
namespace {

void check_messages(const OrderedJson& messages) {
  if (messages.empty()) fail_field("messages", "expected at least one message, got none");
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto role = messages[i].find("role");
    const std::string path = fmt::format("messages.{}.role", i);
    if (role == messages[i].end()) fail_field(path, "missing");
    if (!role->is_string()) fail_type(path, "a string", *role);
  }
}

void check_tool_choice(const ToolChoice& choice, const OrderedJson& json) {
  refuse_unknown<ToolChoice>(json, "tool_choice");
  if (choice.mode == "auto" || choice.mode == "required" || choice.mode == "none") return;
  fail_field("tool_choice.mode",
             fmt::format("expected auto, required or none, got {}", choice.mode.substr(0, 100)));
}

// What only a chat template reads.
template <typename Request>
void check_chat(const Request& request, const OrderedJson& json) {
  if (request.tool_choice) check_tool_choice(*request.tool_choice, json["tool_choice"]);
  if (request.messages) return check_messages(*request.messages);
  const auto refuse = [](bool given, const char* name) {
    if (given) fail_field(name, "only goes with messages");
  };
  refuse(request.tools.has_value(), "tools");
  refuse(request.tool_choice.has_value(), "tool_choice");
  refuse(request.tool_prompt.has_value(), "tool_prompt");
  refuse(request.reasoning_effort.has_value(), "reasoning_effort");
  refuse(request.chat_template_kwargs.has_value(), "chat_template_kwargs");
  refuse(request.continue_final_message, "continue_final_message");
}

void check_name_of(const std::string& field, Names names, const std::string& given) {
  if (std::ranges::find(names, given) != names.end()) return;
  fail_field(field, fmt::format("expected one of {}, got \"{}\"", fmt::join(names, ", "),
                                given.substr(0, 100)));
}

void check_merged(const MergedAdapters& merged, const OrderedJson& json) {
  const std::string field = "merged_adapters";
  refuse_unknown<MergedAdapters>(json, field);
  const size_t count = merged.ids.size();
  if (count == 0) fail_field(field + ".ids", "expected at least one adapter, got none");
  if (count > kMaxMergedAdapters) {
    fail_field(field + ".ids",
               fmt::format("expected at most {}, got {}", kMaxMergedAdapters, count));
  }
  for (const std::string& id : merged.ids) check_adapter_name(field + ".ids", id);
  const auto check_count = [&](const char* name, size_t given) {
    if (given == 0 || given == count) return;
    fail_field(fmt::format("{}.{}", field, name),
               fmt::format("expected one for each of ids, {}, got {}", count, given));
  };
  check_count("paths", merged.paths.size());
  check_count("weights", merged.weights.size());
  for (const std::string& path : merged.paths) {
    if (!path.empty()) check_adapter_path(field + ".paths", path);
  }
  check_name_of(field + ".merge_strategy", kMergeStrategyNames, merged.merge_strategy);
  check_name_of(field + ".majority_sign_method", kMajoritySignNames, merged.majority_sign_method);
  const double density = merged.density.value_or(0);
  if (merged.merge_strategy != "linear" && (density <= 0 || density > 1)) {
    fail_field(field + ".density",
               fmt::format("expected the share of the numbers that {} keeps, above 0 and at most 1",
                           merged.merge_strategy));
  }
}

void check_guide(const GuideParams& guide, const OrderedJson& json) {
  refuse_unknown<GuideParams>(json, "guide");
  check_one_of("guide: json_schema, json_object, regex, choice, gbnf, lark",
               {guide.json_schema.has_value(), guide.json_object, guide.regex.has_value(),
                !guide.choice.empty(), guide.gbnf.has_value(), guide.lark.has_value()});
  if (guide.flexible_whitespace && !guide.json_schema && !guide.json_object) {
    fail_field("guide.flexible_whitespace", "only goes with json_schema and json_object");
  }
}

}  // namespace

template <>
std::span<const Field<TokenBias>> fields<TokenBias>() {
  static constexpr std::array kFields = {
      field<&TokenBias::id>("id", {.low = 0, .required = true}),
      field<&TokenBias::bias>("bias", {.low = -100, .high = 100, .required = true}),
  };
  return kFields;
}

template <>
std::span<const Field<GuideParams>> fields<GuideParams>() {
  using G = GuideParams;
  static constexpr std::array kFields = {
      field<&G::json_schema>("json_schema", {.is_object = true}),
      field<&G::json_object>("json_object"),
      field<&G::regex>("regex"),
      field<&G::choice>("choice", {.leave_out_empty = true}),
      field<&G::gbnf>("gbnf"),
      field<&G::lark>("lark"),
      field<&G::flexible_whitespace>("flexible_whitespace"),
  };
  return kFields;
}

template <>
std::span<const Field<MergedAdapters>> fields<MergedAdapters>() {
  using M = MergedAdapters;
  static constexpr std::array kFields = {
      field<&M::ids>("ids", {.required = true}),
      field<&M::paths>("paths", {.leave_out_empty = true}),
      field<&M::weights>("weights", {.leave_out_empty = true}),
      field<&M::merge_strategy>("merge_strategy"),
      field<&M::density>("density", {.low = 0}),
      field<&M::majority_sign_method>("majority_sign_method"),
  };
  return kFields;
}

template <>
std::span<const Field<ToolChoice>> fields<ToolChoice>() {
  static constexpr std::array kFields = {
      field<&ToolChoice::mode>("mode"),
      field<&ToolChoice::names>("names", {.leave_out_empty = true}),
  };
  return kFields;
}

template <>
std::span<const Field<SamplingDefaults>> fields<SamplingDefaults>() {
  using D = SamplingDefaults;
  static constexpr std::array kFields = {
      field<&D::temperature>("temperature", {.low = 0, .above_low = true}),
      field<&D::top_k>("top_k", {.low = 1}),
      field<&D::top_p>("top_p", {.low = 0, .high = 1, .above_low = true}),
      field<&D::min_p>("min_p", {.low = 0, .high = 1}),
      field<&D::max_new_tokens>("max_new_tokens", {.low = 0}),
  };
  return kFields;
}

template <>
std::span<const Field<GenerateParams>> fields<GenerateParams>() {
  using P = GenerateParams;
  constexpr Rules kPositive = {.low = 0, .above_low = true};
  constexpr Rules kShare = {.low = 0, .high = 1, .above_low = true};
  constexpr Rules kPenalty = {.low = -2, .high = 2};
  static constexpr std::array kFields = {
      field<&P::max_new_tokens>("max_new_tokens", {.low = 0}),
      field<&P::min_new_tokens>("min_new_tokens", {.low = 0}),
      field<&P::do_sample>("do_sample"),
      field<&P::temperature>("temperature", kPositive),
      field<&P::top_k>("top_k", {.low = 1}),
      field<&P::top_p>("top_p", kShare),
      field<&P::typical_p>("typical_p", kShare),
      field<&P::min_p>("min_p", {.low = 0, .high = 1}),
      field<&P::sampling_defaults>("sampling_defaults"),
      field<&P::repetition_penalty>("repetition_penalty", kPositive),
      field<&P::frequency_penalty>("frequency_penalty", kPenalty),
      field<&P::presence_penalty>("presence_penalty", kPenalty),
      field<&P::logit_bias>("logit_bias", {.leave_out_empty = true}),
      field<&P::seed>("seed"),
      field<&P::stop>("stop", {.leave_out_empty = true}),
      field<&P::include_stop_text>("include_stop_text"),
      field<&P::best_of>("best_of", {.low = 1}),
      field<&P::top_n_tokens>("top_n_tokens", {.low = 0}),
      field<&P::truncate>("truncate", {.low = 1}),
      field<&P::max_input_tokens>("max_input_tokens", {.low = 1}),
      field<&P::max_total_tokens>("max_total_tokens", {.low = 1}),
      field<&P::ignore_eos>("ignore_eos"),
      field<&P::guide>("guide"),
      field<&P::max_reasoning_tokens>("max_reasoning_tokens", {.low = 0}),
      field<&P::return_full_text>("return_full_text"),
      field<&P::watermark>("watermark"),
      field<&P::details>("details"),
      field<&P::prompt_logprobs>("prompt_logprobs"),
      field<&P::use_prefix_cache>("use_prefix_cache"),
      field<&P::speculate>("speculate", {.low = 0}),
  };
  return kFields;
}

template <>
std::span<const Field<GenerateRequest>> fields<GenerateRequest>() {
  using R = GenerateRequest;
  static constexpr std::array kFields = {
      field<&R::model>("model"),
      field<&R::keep_alive_seconds>("keep_alive_seconds"),
      field<&R::prompt>("prompt"),
      field<&R::prompt_ids>("prompt_ids", {.low = 0}),
      field<&R::messages>("messages"),
      field<&R::adapter>("adapter"),
      field<&R::adapter_path>("adapter_path"),
      field<&R::merged_adapters>("merged_adapters"),
      field<&R::tools>("tools"),
      field<&R::tool_choice>("tool_choice"),
      field<&R::parallel_tool_calls>("parallel_tool_calls"),
      field<&R::tool_prompt>("tool_prompt"),
      field<&R::reasoning_effort>("reasoning_effort"),
      field<&R::parse_answer>("parse_answer"),
      field<&R::chat_template_kwargs>("chat_template_kwargs", {.is_object = true}),
      field<&R::continue_final_message>("continue_final_message"),
      field<&R::announce>("announce"),
      field<&R::stream>("stream"),
  };
  return kFields;
}

template <>
std::span<const Field<TokenizeParams>> fields<TokenizeParams>() {
  static constexpr std::array kFields = {
      field<&TokenizeParams::model>("model"),
      field<&TokenizeParams::prompt>("prompt"),
      field<&TokenizeParams::messages>("messages"),
      field<&TokenizeParams::tools>("tools"),
      field<&TokenizeParams::tool_choice>("tool_choice"),
      field<&TokenizeParams::tool_prompt>("tool_prompt"),
      field<&TokenizeParams::reasoning_effort>("reasoning_effort"),
      field<&TokenizeParams::chat_template_kwargs>("chat_template_kwargs", {.is_object = true}),
      field<&TokenizeParams::add_special>("add_special"),
      field<&TokenizeParams::continue_final_message>("continue_final_message"),
  };
  return kFields;
}

void set_grammar(GuideParams& guide, std::string text) {
  // As readers of JSON do with the mark that editors of Windows write.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  // A text in braces is llguidance's list of grammars.
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_list = begin != std::string::npos && text[begin] == '{';
  const bool is_gbnf = !is_list && text.find("::=") != std::string::npos;
  (is_gbnf ? guide.gbnf : guide.lark) = std::move(text);
}

OrderedJson to_json(const GuideParams& guide) {
  return write_value(guide);
}

OrderedJson to_json(const GenerateParams& params) {
  return write_value(params);
}

GenerateParams generate_params_from_json(const OrderedJson& params) {
  auto out = from_params<GenerateParams>(params);
  if (out.guide) check_guide(*out.guide, params["guide"]);
  for (size_t i = 0; i < out.stop.size(); ++i) {
    if (out.stop[i].empty()) fail_field(fmt::format("stop.{}", i), "expected a string, got \"\"");
  }
  if (out.logit_bias.size() > kMaxLogitBiases) {
    fail_field("logit_bias", fmt::format("expected at most {} tokens, got {}", kMaxLogitBiases,
                                         out.logit_bias.size()));
  }
  return out;
}

OrderedJson to_json(const GenerateRequest& request) {
  OrderedJson out = write_value(request);
  write_fields(request.params, out);  // in the same object: the wire has one flat list of fields
  return out;
}

GenerateRequest generate_request_from_json(const OrderedJson& params) {
  require_object(params, "params");
  refuse_unknown<GenerateRequest, GenerateParams>(params, "");
  GenerateRequest request;
  read_fields(params, "", request);
  OrderedJson rest = OrderedJson::object();
  for (const auto& field : fields<GenerateParams>()) {
    const auto it = params.find(std::string(field.name));
    if (it != params.end()) rest[std::string(field.name)] = *it;
  }
  request.params = generate_params_from_json(rest);
  check_one_of(
      "prompt, prompt_ids, messages",
      {request.prompt.has_value(), request.prompt_ids.has_value(), request.messages.has_value()});
  check_chat(request, params);
  if (!request.messages && request.parse_answer.value_or(false)) {
    fail_field("parse_answer", "only goes with messages");
  }
  if (request.params.max_reasoning_tokens && !request.parse_answer.value_or(false)) {
    fail_field("max_reasoning_tokens", "only goes with parse_answer");
  }
  if (request.prompt_ids && request.prompt_ids->empty()) {
    fail_field("prompt_ids", "expected at least one id, got none");
  }
  if (request.adapter) check_adapter_name("adapter", *request.adapter);
  if (request.adapter_path && !request.adapter) {
    fail_field("adapter_path", "only goes with adapter");
  }
  if (request.adapter_path) check_adapter_path("adapter_path", *request.adapter_path);
  if (request.merged_adapters) {
    if (request.adapter) fail_field("merged_adapters", "does not go with adapter");
    check_merged(*request.merged_adapters, params["merged_adapters"]);
  }
  return request;
}

OrderedJson to_json(const TokenizeParams& params) {
  return write_value(params);
}

TokenizeParams tokenize_params_from_json(const OrderedJson& params) {
  auto out = from_params<TokenizeParams>(params);
  check_one_of("prompt, messages", {out.prompt.has_value(), out.messages.has_value()});
  check_chat(out, params);
  return out;
}

}  // namespace tgi::ipc
