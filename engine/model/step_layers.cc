#include "engine/model/step_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/model/config_fields.h"
#include "engine/model/expert_fields.h"

namespace tgi {
namespace {

constexpr std::string_view kOtherHeads = "attention_other_setting";
constexpr std::string_view kSlidingHeads = "num_sliding_attention_heads";
constexpr std::string_view kHeadsByLayer = "per_layer_config";
constexpr std::string_view kExpertLayers = "moe_layers_enum";
constexpr std::string_view kNumHeads = "num_attention_heads";

[[noreturn]] void refuse_step(const JsonReader& config,
                              std::string_view key,
                              const std::string& what) {
  throw Error(Code::kInvalidArgument, fmt::format("{}: {}", config.path_of(key), what));
}

// What the list `key` says of the layers of a type, which have to agree; a number is for all of
// them. Null: nothing.
Json of_type(const JsonReader& config,
             const Json& json,
             std::string_view key,
             const std::vector<std::string>& types,
             std::string_view type) {
  const Json value = json.value(std::string(key), Json());
  if (!value.is_array()) return value;
  if (value.size() != types.size()) {
    refuse_step(
        config, key,
        fmt::format("expected {} entries, one per layer, got {}", types.size(), value.size()));
  }
  Json out;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != type) continue;
    if (!out.is_null() && out != value[i]) {
      refuse_step(config, key,
                  fmt::format("{} of layer {} differs from that of another layer of type "
                              "{}, which is {}",
                              value[i].dump(), i, type, out.dump()));
    }
    out = value[i];
  }
  return out;
}

// The older spelling counts the layers; a scaling is for those without a window.
Json rope_of_type(const JsonReader& config,
                  const Json& json,
                  const std::vector<std::string>& types,
                  std::string_view type) {
  Json rope = {{"rope_type", "default"}};
  const Json scaling = json.value("rope_scaling", Json());
  if (type == kStepFull && scaling.is_object()) rope.update(scaling);
  const Json theta = of_type(config, json, "rope_theta", types, type);
  const Json partial = of_type(config, json, "partial_rotary_factors", types, type);
  if (!theta.is_null()) rope["rope_theta"] = theta;
  if (!partial.is_null()) rope["partial_rotary_factor"] = partial;
  return rope;
}

// Of layers with a window: the count, where the other sizes are the model's.
int64_t read_other_heads(const JsonReader& config, const ModelConfig& model) {
  if (!config.has(kOtherHeads)) return model.num_heads;
  const JsonReader other = config.object(kOtherHeads);
  int64_t heads = model.num_heads;
  for (const auto& [key, value] : other.json().items()) {
    if (key == kNumHeads) {
      heads = other.integer(key);
      continue;
    }
    Json expected;
    if (key == "attention_type") expected = kStepWindowed;
    if (key == "num_attention_groups") expected = model.num_kv_heads;
    if (key == "head_dim" || key == "true_head_dim") expected = model.head_dim;
    if (expected.is_null() || value != expected) {
      throw Error(
          Code::kUnsupported,
          fmt::format("{}: {} is not supported, expected {}", other.path_of(key), value.dump(),
                      expected.is_null() ? "no such field" : expected.dump()));
    }
  }
  return heads;
}

void set_heads(const JsonReader& config,
               std::string_view key,
               size_t layer,
               int64_t heads,
               ModelConfig& model) {
  const int64_t most = std::min<int64_t>(kMaxHeads, kMaxQuerySize / model.head_dim);
  if (heads <= 0 || heads > most || heads % model.num_kv_heads != 0) {
    refuse_step(config, key,
                fmt::format("{} heads, expected a multiple of {} KV heads, at most {}", heads,
                            model.num_kv_heads, most));
  }
  model.layers[layer].num_heads = heads == model.num_heads ? 0 : static_cast<int32_t>(heads);
}

void read_heads_by_layer(const JsonReader& config, ModelConfig& model) {
  const JsonReader layers = config.object(kHeadsByLayer);
  for (const auto& [key, value] : layers.json().items()) {
    const auto layer = std::ranges::find_if(
        model.layers,
        [&, i = size_t{0}](const LayerPlan&) mutable { return key == fmt::format("{}", i++); });
    const Json heads = value.is_object() && value.size() == 1
                           ? value.value(std::string(kNumHeads), Json())
                           : Json();
    if (layer == model.layers.end() || !heads.is_number_integer()) {
      throw Error(
          Code::kUnsupported,
          fmt::format("{}: {}: {}: expected the number of a layer below {}, and its {} alone",
                      config.path_of(kHeadsByLayer), key, value.dump(), model.num_layers,
                      kNumHeads));
    }
    set_heads(config, kHeadsByLayer, static_cast<size_t>(layer - model.layers.begin()),
              heads.get<int64_t>(), model);
  }
}

// What silu makes `limit` of: it rises from there on, and is below it before.
float before_silu(double limit) {
  double low = limit;
  double high = limit + 1.0;
  for (int i = 0; i < 64; ++i) {
    const double middle = 0.5 * (low + high);
    (middle / (1.0 + std::exp(-middle)) < limit ? low : high) = middle;
  }
  return static_cast<float>(high);
}

}  // namespace

void cut_step_lists(Json& json, int64_t num_layers, int64_t further) {
  for (const char* key : {"layer_types", "mlp_layer_types", "swiglu_limits", "swiglu_limits_shared",
                          "rope_theta", "partial_rotary_factors"}) {
    const auto list = json.find(key);
    if (list == json.end() || !list->is_array()) continue;
    if (static_cast<int64_t>(list->size()) != num_layers + further) continue;
    list->erase(list->begin() + num_layers, list->end());
  }
}

void spell_step_ropes(const JsonReader& config, const std::vector<std::string>& types, Json& json) {
  const Json given = json.value("rope_parameters", Json());
  Json ropes = Json::object();
  for (const std::string_view type : {kStepFull, kStepWindowed}) {
    if (given.is_object() && given.contains(type)) {
      ropes[std::string(type)] = given.at(std::string(type));
    } else if (given.is_null() || std::ranges::find(types, type) == types.end()) {
      ropes[std::string(type)] = rope_of_type(config, json, types, type);
    } else {
      refuse_step(config, "rope_parameters",
                  fmt::format("expected an object for each type of layer, got none for {}", type));
    }
  }
  json["rope_parameters"] = ropes;
  for (const char* key : {"rope_theta", "partial_rotary_factors", "rope_scaling"}) json.erase(key);
}

void read_step_heads(const JsonReader& config, ModelConfig& model) {
  if (config.has(kHeadsByLayer)) return read_heads_by_layer(config, model);
  const bool is_counted = config.has(kSlidingHeads);
  const int64_t heads =
      is_counted ? config.integer(kSlidingHeads) : read_other_heads(config, model);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].sliding_window == 0) continue;
    set_heads(config, is_counted ? kSlidingHeads : kOtherHeads, i, heads, model);
  }
}

void read_step_limits(const JsonReader& config,
                      std::string_view key,
                      GateLimits LayerPlan::*target,
                      ModelConfig& model) {
  if (!config.has(key)) return;
  const Json& list = config.json().at(std::string(key));
  if (!list.is_array() || (!list.empty() && list.size() != model.layers.size())) {
    refuse_step(config, key,
                fmt::format("expected a list of {} numbers, one per layer, got {}",
                            model.num_layers, list.dump()));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_null()) continue;
    const double limit = list[i].is_number() ? list[i].get<double>() : -1.0;
    if (!(limit >= 0.0 && limit <= 1e6)) {
      refuse_step(config, key,
                  fmt::format("entry {} is {}, expected 0 to 1e6, or null", i, list[i].dump()));
    }
    if (limit == 0.0) continue;
    model.layers[i].*target = {.limit = before_silu(limit), .up_limit = static_cast<float>(limit)};
  }
}

void read_step_expert_layers(const JsonReader& config, int64_t further, ModelConfig& model) {
  if (read_mlp_layer_types(config, model)) return;
  std::vector<int64_t> layers;
  if (!config.has(kExpertLayers)) {
    for (int64_t i = 3; i < model.num_layers; ++i) layers.push_back(i);
  } else {
    const Json& given = config.json().at(std::string(kExpertLayers));
    const Json list = given.is_string()
                          ? Json::parse("[" + given.get<std::string>() + "]", nullptr, false)
                          : given;
    const bool is_list =
        list.is_array() && std::ranges::all_of(list, [&](const Json& item) {
          return item.is_number_integer() && item >= 0 && item < model.num_layers + further;
        });
    if (!is_list) {
      refuse_step(
          config, kExpertLayers,
          fmt::format("expected numbers of layers below {} with commas between them, got {}",
                      model.num_layers + further, given.dump()));
    }
    for (const Json& item : list) layers.push_back(item.get<int64_t>());
  }
  for (const int64_t layer : layers) {
    if (layer < model.num_layers) model.layers[static_cast<size_t>(layer)].mlp = MlpKind::kExperts;
  }
}

}  // namespace tgi
