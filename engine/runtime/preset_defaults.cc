#include "engine/runtime/preset_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "engine/runtime/guide_compiler.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

template <typename To, typename From>
void fill(std::optional<To>& to, const std::optional<From>& from) {
  if (!to && from) to = static_cast<To>(*from);
}

bool says_how_to_draw(const ipc::GenerateParams& params) {
  return params.temperature || params.top_k || params.top_p || params.typical_p || params.min_p;
}

void fill_sampling(const PresetParameters& from, ipc::GenerateParams& to) {
  fill(to.temperature, from.temperature);
  if (!to.top_k && from.top_k) to.top_k = *from.top_k > 0 ? *from.top_k : ipc::kAllTokens;
  fill(to.top_p, from.top_p);
  fill(to.min_p, from.min_p);
  fill(to.typical_p, from.typical_p);
}

void fill_sampling(const ipc::SamplingDefaults& from, ipc::GenerateParams& to) {
  fill(to.temperature, from.temperature);
  fill(to.top_k, from.top_k);
  fill(to.top_p, from.top_p);
  fill(to.min_p, from.min_p);
}

// A temperature of 0, which alone makes an answer greedy, leaves nothing to the others.
void settle_greedy(ipc::GenerateParams& params) {
  if (params.temperature != 0.0) return;
  params.do_sample = false;
  params.temperature.reset();
  params.top_k.reset();
  params.top_p.reset();
  params.typical_p.reset();
  params.min_p.reset();
}

void fill_params(const Preset* preset, ipc::GenerateParams& to) {
  const bool is_greedy = to.do_sample == false && !says_how_to_draw(to);
  if (preset != nullptr) {
    const PresetParameters& from = preset->parameters;
    if (!is_greedy) fill_sampling(from, to);
    fill(to.repetition_penalty, from.repeat_penalty);
    fill(to.presence_penalty, from.presence_penalty);
    fill(to.frequency_penalty, from.frequency_penalty);
    if (from.seed.value_or(-1) >= 0) fill(to.seed, from.seed);
    if (from.num_predict.value_or(-1) >= 0) {
      if (!to.sampling_defaults) to.sampling_defaults.emplace();
      to.sampling_defaults->max_new_tokens = from.num_predict;
    }
    if (to.stop.empty()) to.stop = from.stop;
  }
  if (!is_greedy && to.sampling_defaults) fill_sampling(*to.sampling_defaults, to);
  if (!is_greedy) settle_greedy(to);
}

bool has_role(const OrderedJson& message, std::string_view role) {
  return message.is_object() && message.contains("role") && message["role"] == role;
}

// The system's message first, the request's own before the preset's; then the messages that every
// conversation begins with, then the request's.
void put_before(const Preset& preset, OrderedJson& messages) {
  if (!preset.system && preset.messages.empty()) return;
  const bool brings_system = std::ranges::any_of(
      messages, [](const OrderedJson& message) { return has_role(message, "system"); });
  OrderedJson out = OrderedJson::array();
  size_t num_first = 0;
  while (num_first < messages.size() && has_role(messages[num_first], "system")) {
    out.push_back(messages[num_first++]);
  }
  if (!brings_system && preset.system && !preset.system->empty()) {
    out.push_back({{"role", "system"}, {"content", *preset.system}});
  }
  for (const PresetMessage& message : preset.messages) {
    if (brings_system && message.role == "system") continue;
    out.push_back({{"role", message.role}, {"content", message.content}});
  }
  for (size_t i = num_first; i < messages.size(); ++i) out.push_back(std::move(messages[i]));
  messages = std::move(out);
}

}  // namespace

std::optional<ipc::GenerateRequest> with_defaults(const Preset* preset,
                                                  const ipc::GenerateRequest& asked) {
  if (preset == nullptr && !asked.params.sampling_defaults) return std::nullopt;
  ipc::GenerateRequest out = asked;
  fill_params(preset, out.params);
  if (preset != nullptr && preset->schema && !out.params.guide && !out.tools) {
    out.params.guide.emplace().json_schema = OrderedJson::parse(*preset->schema);
  }
  if (preset != nullptr && out.messages) put_before(*preset, *out.messages);
  return out;
}

std::optional<ipc::TokenizeParams> with_defaults(const Preset* preset,
                                                 const ipc::TokenizeParams& asked) {
  if (preset == nullptr || !asked.messages) return std::nullopt;
  ipc::TokenizeParams out = asked;
  put_before(*preset, *out.messages);
  return out;
}

void fill_settings(const Preset& preset, ipc::ModelSettings& to) {
  if (preset.parameters.num_ctx && !to.max_total_tokens) {
    to.max_total_tokens = static_cast<int32_t>(*preset.parameters.num_ctx);
  }
  if (to.merge_adapter.empty()) to.merge_adapter = preset.adapter;
  if (to.speculate == 0) return;  // said, so that nothing of the preset drafts
  if (to.speculator.empty() && to.draft_model.empty()) {
    to.speculator = preset.speculator;
    to.draft_model = preset.draft_model;
  }
  if (!to.speculate && preset.parameters.speculate) {
    to.speculate = static_cast<int32_t>(*preset.parameters.speculate);
  }
}

void check_preset_schema(const Preset& preset, Task task, const std::string& place) {
  if (!preset.schema) return;
  if (task != Task::kGenerate) {
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: SCHEMA: the model writes no answers, so that it has none; leave it out",
                    place));
  }
  ipc::GuideParams guide;
  guide.json_schema = OrderedJson::parse(*preset.schema);
  try {
    check_guide(guide);
  } catch (const Error& error) {
    throw error.in(place + ": SCHEMA");
  }
}

}  // namespace tgi
