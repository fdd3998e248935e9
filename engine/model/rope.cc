#include "engine/model/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/config_fields.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

// The parameters, wherever the config keeps them.
struct RopeFields {
  JsonReader config;                 // the whole of it
  std::optional<JsonReader> object;  // rope_parameters or rope_scaling
  std::string type;
  double theta = 0.0;
  int64_t default_original_positions = 0;  // 0: those of the model

  std::string path_of(std::string_view key) const {
    return object ? object->path_of(key) : config.path_of(key);
  }
  double number(std::string_view key) const {
    if (!object) throw Error(Code::kInvalidArgument, fmt::format("{}: missing", path_of(key)));
    return object->number(key);
  }
  std::optional<double> optional_number(std::string_view key) const {
    return object ? object->optional_number(key) : std::nullopt;
  }
};

[[noreturn]] void fail(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}

double positive(const RopeFields& fields, std::string_view key, double value) {
  if (!(value > 0.0) || !std::isfinite(value)) {
    fail(fmt::format("{}: expected a number above 0, got {}", fields.path_of(key), value));
  }
  return value;
}

double scaling_factor(const RopeFields& fields) {
  const double factor = positive(fields, "factor", fields.number("factor"));
  if (factor < 1.0) {
    fail(fmt::format("{}: expected 1 or more, got {}", fields.path_of("factor"), factor));
  }
  return factor;
}

// The length the model was trained with, before scaling.
int32_t original_positions(const RopeFields& fields, const ModelConfig& model) {
  static constexpr std::string_view kKey = "original_max_position_embeddings";
  if (fields.config.has(kKey)) {
    return check_size(fields.config, kKey, fields.config.integer(kKey), kMaxPositions);
  }
  if (fields.object && fields.object->has(kKey)) {
    return check_size(*fields.object, kKey, fields.object->integer(kKey), kMaxPositions);
  }
  return fields.default_original_positions > 0
             ? static_cast<int32_t>(fields.default_original_positions)
             : model.max_positions;
}

void widen_context(ModelConfig& model, double positions) {
  const double limit = std::min(positions, static_cast<double>(kMaxPositions));
  model.max_positions = std::max(model.max_positions, static_cast<int32_t>(limit));
}

// theta ^ (2i / dim), in float32 as the models were trained.
std::vector<float> frequencies(double theta, int32_t dim) {
  std::vector<float> out(static_cast<size_t>(dim / 2));
  for (size_t i = 0; i < out.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    out[i] = std::pow(static_cast<float>(theta), exponent);
  }
  return out;
}

std::vector<float> inverse_frequencies(double theta, int32_t dim) {
  std::vector<float> out = frequencies(theta, dim);
  for (float& value : out) value = 1.0F / value;
  return out;
}

void set_default(const RopeFields& fields, ModelConfig& /*model*/, RopeSpec& rope) {
  rope.inv_freq = inverse_frequencies(fields.theta, rope.rotary_dim);
}

void set_linear(const RopeFields& fields, ModelConfig& model, RopeSpec& rope) {
  const double factor = scaling_factor(fields);
  set_default(fields, model, rope);
  for (float& value : rope.inv_freq) value /= static_cast<float>(factor);
  widen_context(model, factor * model.max_positions);
}

// With alpha the base is stretched once, whatever the length.
void set_stretched(const RopeFields& fields, double alpha, RopeSpec& rope) {
  const double dim = rope.rotary_dim;
  const double stretch = std::pow(positive(fields, "alpha", alpha), dim / (dim - 2.0));
  rope.base = static_cast<float>(fields.theta * stretch);
  rope.inv_freq = inverse_frequencies(fields.theta * stretch, rope.rotary_dim);
}

void set_dynamic(const RopeFields& fields, ModelConfig& model, RopeSpec& rope) {
  if (rope.rotary_dim <= 2) {
    fail(fmt::format("{}: dynamic scaling needs a head_dim above 2", fields.path_of("rope_type")));
  }
  const double alpha = fields.optional_number("alpha").value_or(0.0);
  if (alpha != 0.0) return set_stretched(fields, alpha, rope);
  const double factor = scaling_factor(fields);
  set_default(fields, model, rope);
  rope.dynamic_original_positions = model.max_positions;
  rope.dynamic_factor = static_cast<float>(factor);
  widen_context(model, factor * model.max_positions);
}

// Long wavelengths are stretched by the factor, short ones kept, those between blended.
void set_llama3(const RopeFields& fields, ModelConfig& model, RopeSpec& rope) {
  const auto factor = static_cast<float>(scaling_factor(fields));
  const double low_factor = positive(fields, "low_freq_factor", fields.number("low_freq_factor"));
  const double high_factor =
      positive(fields, "high_freq_factor", fields.number("high_freq_factor"));
  if (high_factor < low_factor) {
    fail(fmt::format("{}: expected low_freq_factor = {} or more, got {}",
                     fields.path_of("high_freq_factor"), low_factor, high_factor));
  }
  const auto original = static_cast<double>(original_positions(fields, model));
  const auto low_wavelength = static_cast<float>(original / low_factor);
  const auto high_wavelength = static_cast<float>(original / high_factor);
  set_default(fields, model, rope);
  for (float& value : rope.inv_freq) {
    const float wavelength = static_cast<float>(2.0 * std::numbers::pi) / value;
    if (wavelength < high_wavelength) continue;
    if (wavelength > low_wavelength || high_factor == low_factor) {
      value /= factor;
      continue;
    }
    const float smooth =
        (static_cast<float>(original) / wavelength - static_cast<float>(low_factor)) /
        static_cast<float>(high_factor - low_factor);
    value = (1.0F - smooth) * value / factor + smooth * value;
  }
}

double yarn_mscale(double scale, double mscale) {
  return scale <= 1.0 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

double yarn_attention_factor(const RopeFields& fields, double factor) {
  if (const auto given = fields.optional_number("attention_factor")) {
    return positive(fields, "attention_factor", *given);
  }
  const double mscale = fields.optional_number("mscale").value_or(0.0);
  const double mscale_all_dim = fields.optional_number("mscale_all_dim").value_or(0.0);
  if (mscale != 0.0 && mscale_all_dim != 0.0) {
    return yarn_mscale(factor, mscale) / yarn_mscale(factor, mscale_all_dim);
  }
  return yarn_mscale(factor, 1.0);
}

// The dimension that turns `rotations` times within the original context.
double yarn_dimension(double rotations, int32_t dim, double theta, double original) {
  return dim * std::log(original / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(theta));
}

void set_yarn(const RopeFields& fields, ModelConfig& model, RopeSpec& rope) {
  const auto original = static_cast<double>(original_positions(fields, model));
  const double factor =
      fields.optional_number("factor") ? scaling_factor(fields) : model.max_positions / original;
  if (fields.theta == 1.0) fail("rope_theta: yarn needs a number above 1, got 1");
  const auto number_or_default = [&fields](std::string_view key, double fallback) {
    const double value = fields.optional_number(key).value_or(0.0);
    return value == 0.0 ? fallback : positive(fields, key, value);
  };
  const double beta_fast = number_or_default("beta_fast", 32.0);
  const double beta_slow = number_or_default("beta_slow", 1.0);
  const int32_t dim = rope.rotary_dim;
  double low = yarn_dimension(beta_fast, dim, fields.theta, original);
  double high = yarn_dimension(beta_slow, dim, fields.theta, original);
  if (!fields.object || fields.object->boolean_or("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;  // a ramp of no width would divide by zero

  const std::vector<float> freq = frequencies(fields.theta, dim);
  rope.inv_freq.resize(freq.size());
  for (size_t i = 0; i < freq.size(); ++i) {
    const float ramp = std::clamp(
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0F,
        1.0F);
    const float keep = 1.0F - ramp;
    const float stretched = 1.0F / (static_cast<float>(factor) * freq[i]);
    rope.inv_freq[i] = stretched * (1.0F - keep) + 1.0F / freq[i] * keep;
  }
  rope.attention_factor = static_cast<float>(yarn_attention_factor(fields, factor));
  widen_context(model, factor * original);
}

// One factor for each frequency.
std::vector<float> factor_list(const RopeFields& fields, std::string_view key, size_t count) {
  const std::string path = fields.path_of(key);
  if (!fields.object || !fields.object->has(key)) fail(path + ": missing");
  const Json& list = fields.object->json().at(std::string(key));
  if (!list.is_array() || list.size() != count) {
    fail(fmt::format(
        "{}: expected a list of {} numbers, one for each pair of rotated columns, got {}", path,
        count, list.is_array() ? fmt::format("{} of them", list.size()) : list.dump()));
  }
  std::vector<float> out;
  for (const Json& item : list) {
    if (!item.is_number() || !(item.get<double>() > 0.0) || !std::isfinite(item.get<double>())) {
      fail(fmt::format("{}: expected numbers above 0, got {}", path, item.dump()));
    }
    out.push_back(static_cast<float>(item.get<double>()));
  }
  return out;
}

// cos and sin are stretched by what the context was.
double longrope_attention_factor(const RopeFields& fields,
                                 std::string_view own_name,
                                 double factor,
                                 double original) {
  for (const std::string_view key : {own_name, std::string_view("attention_factor")}) {
    if (const auto given = fields.optional_number(key)) return positive(fields, key, *given);
  }
  if (factor <= 1.0) return 1.0;
  if (original <= 1.0) fail("original_max_position_embeddings: longrope needs more than 1, got 1");
  return std::sqrt(1.0 + std::log(factor) / std::log(original));
}

// LongRoPE (https://arxiv.org/abs/2402.13753) has two lists of factors, for texts of up to the
// original length and for longer ones. Which is taken is decided here, by the context that the
// model is for: keys in the cache may not depend on what comes after them.
void set_longrope(const RopeFields& fields, ModelConfig& model, RopeSpec& rope) {
  const auto original = static_cast<double>(original_positions(fields, model));
  const bool is_long = model.max_positions > original;
  const double factor =
      fields.optional_number("factor") ? scaling_factor(fields) : model.max_positions / original;
  const std::vector<float> freq = frequencies(fields.theta, rope.rotary_dim);
  const std::vector<float> short_factors = factor_list(fields, "short_factor", freq.size());
  const std::vector<float> long_factors = factor_list(fields, "long_factor", freq.size());
  const std::vector<float>& factors = is_long ? long_factors : short_factors;
  rope.inv_freq.resize(freq.size());
  for (size_t i = 0; i < freq.size(); ++i) rope.inv_freq[i] = 1.0F / (factors[i] * freq[i]);
  rope.attention_factor = static_cast<float>(longrope_attention_factor(
      fields, is_long ? "long_mscale" : "short_mscale", factor, original));
}

// The last pairs of a head are not rotated; the others' frequencies are those of the whole head.
void set_proportional(const RopeFields& fields, ModelConfig& /*model*/, RopeSpec& rope) {
  const double partial = fields.optional_number("partial_rotary_factor").value_or(1.0);
  if (!(partial >= 0.0 && partial <= 1.0)) {
    fail(fmt::format("{}: expected 0 to 1, got {}", fields.path_of("partial_rotary_factor"),
                     partial));
  }
  const double factor = positive(fields, "factor", fields.optional_number("factor").value_or(1.0));
  const auto rotated = static_cast<size_t>(std::floor(partial * rope.rotary_dim / 2.0));
  rope.inv_freq = inverse_frequencies(fields.theta, rope.rotary_dim);
  for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
    rope.inv_freq[i] = i < rotated ? rope.inv_freq[i] / static_cast<float>(factor) : 0.0F;
  }
}

struct RopeType {
  std::string_view name;
  void (*set)(const RopeFields& fields, ModelConfig& model, RopeSpec& rope);
  bool is_whole = false;  // the table has all columns of a head, whichever are rotated
  bool is_owned = false;  // only families that name it know it
};

constexpr std::array<RopeType, 10> kRopeTypes = {{
    {"default", set_default},
    {"linear", set_linear},
    {"dynamic", set_dynamic},
    {"llama3", set_llama3},
    {"yarn", set_yarn},
    {"longrope", set_longrope},
    {"su", set_longrope},  // its first name
    {"proportional", set_proportional, true},
    {"mrope", set_default},                // by place in an image, which text has none of
    {"xdrope", set_dynamic, false, true},  // the same
}};

bool takes_type(const RopeTraits& traits, const RopeType& row) {
  if (!traits.types.empty()) return std::ranges::find(traits.types, row.name) != traits.types.end();
  return !row.is_owned || row.name == traits.own_type;
}

const RopeType& find_rope_type(const RopeFields& fields, const RopeTraits& traits) {
  std::string known;
  for (const RopeType& row : kRopeTypes) {
    if (!takes_type(traits, row)) continue;
    if (row.name == fields.type) return row;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  throw Error(Code::kUnsupported,
              fmt::format("{}: rope scaling '{}' is not supported; known are {}",
                          fields.path_of("rope_type"), fields.type, known));
}

// What an object of rope parameters can hold; which of them are read depends on its type.
constexpr auto kRopeFields = std::to_array<KnownField>({
    read_or_null("rope_type"),
    read_or_null("type"),
    read_or_null("rope_theta"),
    read_or_null("partial_rotary_factor"),
    read_or_null("factor"),
    read_or_null("original_max_position_embeddings"),
    read_or_null("attention_factor"),
    read_or_null("beta_fast"),
    read_or_null("beta_slow"),
    read_or_null("mscale"),
    read_or_null("mscale_all_dim"),
    read_or_null("truncate"),
    read_or_null("low_freq_factor"),
    read_or_null("high_freq_factor"),
    harmless("max_position_embeddings", "the model's own field says it"),
    read_or_null("short_factor"),
    read_or_null("long_factor"),
    read_or_null("short_mscale"),
    read_or_null("long_mscale"),
    harmless("mrope_section", "positions are of text alone, alike in every section"),
    harmless("mrope_interleaved", "positions are of text alone, alike in every section"),
    harmless("finetuned", "says how the weights were made"),
});

constexpr std::string_view kThetaName = "rope_theta";

constexpr std::string_view kWindowTypes[] = {"full_attention", "sliding_attention"};

std::span<const std::string_view> layer_types_of(const RopeTraits& traits) {
  return traits.layer_types.empty() ? std::span<const std::string_view>(kWindowTypes)
                                    : traits.layer_types;
}

bool is_nested(const JsonReader& object, const RopeTraits& traits) {
  return std::ranges::any_of(layer_types_of(traits),
                             [&](std::string_view type) { return object.json().contains(type); });
}

// rope_parameters may hold one object per layer type. For one that serves all layers they have to
// agree.
JsonReader object_of_layers(const JsonReader& object, const RopeTraits& traits) {
  if (!is_nested(object, traits)) return object;
  const std::span<const std::string_view> types = layer_types_of(traits);
  std::vector<std::string_view> known(types.begin(), types.end());
  // Some files have these of an object of one kind, too, which nobody reads.
  known.insert(known.end(), {"rope_type", kThetaName});
  object.refuse_unknown(known);
  const std::string_view layer_type = traits.layer_type;
  if (!layer_type.empty()) {
    static const Json kNothing = Json::object();
    return object.has(layer_type) ? object.object(layer_type)
                                  : JsonReader(kNothing, object.path_of(layer_type));
  }
  std::optional<JsonReader> only;
  for (const std::string_view type : types) {
    if (!object.json().contains(type)) continue;
    const JsonReader nested = object.object(type);
    if (only && only->json() != nested.json()) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: differs between layer types, which is not supported",
                              object.path_of(type)));
    }
    only.emplace(nested);
  }
  return *only;
}

bool is_given(const JsonReader& config, std::string_view key) {
  return config.has(key) && !config.object(key).json().empty();
}

RopeFields find_fields(const JsonReader& config, const RopeTraits& traits) {
  RopeFields fields{.config = config, .object = std::nullopt, .type = "default"};
  fields.default_original_positions = traits.default_original_positions;
  bool is_own = false;
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    if (!is_given(config, key)) continue;
    const JsonReader object = config.object(key);
    if (fields.object && object.json() != config.object("rope_scaling").json()) {
      fail(fmt::format("{}: differs from rope_scaling, which is its old name; leave one of them",
                       config.path_of(key)));
    }
    is_own = is_nested(object, traits) && !traits.layer_type.empty();
    fields.object.emplace(object_of_layers(object, traits));
    refuse_unknown_fields(*fields.object, traits.fields, kRopeFields, "rotary embeddings");
  }
  std::optional<double> theta = config.optional_number(traits.theta_name);
  const bool is_scaled = traits.is_scaled || is_own;
  if (fields.object && is_scaled) {
    const std::string old_name = fields.object->string_or("type", "default");
    fields.type = fields.object->string_or("rope_type", old_name);
    if (fields.type == "yarn") fields.type = traits.type_of_yarn;
  }
  const bool has_theta = is_own || !traits.theta_is_outside;
  if (fields.object && has_theta && (is_scaled || traits.theta_name == kThetaName)) {
    if (const auto own = fields.object->optional_number(kThetaName)) theta = own;
  }
  fields.theta = theta.value_or(traits.default_theta);
  return fields;
}

// The columns of a head that are rotated.
int32_t rotated_columns(const RopeFields& fields, const RopeTraits& traits, int32_t head_dim) {
  if (traits.columns > 0) return traits.columns;
  const double partial =
      fields.optional_number("partial_rotary_factor")
          .value_or(fields.config.number_or(traits.partial_name, traits.default_partial));
  if (!traits.takes_partial && partial != 1.0) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: {} is not supported for this architecture; it rotates whole heads",
                            fields.path_of(traits.partial_name), partial));
  }
  const auto columns = static_cast<int32_t>(partial * head_dim);
  if (!(partial > 0.0 && partial <= 1.0) || columns < 2 || columns % 2 != 0) {
    fail(fmt::format("{}: {} of a head of {} are {} columns; expected an even number of 2 or more",
                     fields.path_of(traits.partial_name), partial, head_dim, columns));
  }
  return columns;
}

}  // namespace

Json with_default_rope(const Json& config, std::string_view key, const Json& value) {
  Json out = config;
  for (const char* spelling : {"rope_parameters", "rope_scaling"}) {
    const auto found = out.find(spelling);
    if (found != out.end() && !found->empty()) return out;
  }
  out[std::string(key)] = value;
  return out;
}

int32_t add_rope(const JsonReader& config, const RopeTraits& traits, ModelConfig& model) {
  const RopeFields fields = find_fields(config, traits);
  if (!(fields.theta >= 1.0) || !std::isfinite(fields.theta)) {
    fail(fmt::format("{}: expected 1 or more, got {}", traits.theta_name, fields.theta));
  }
  const int32_t head_dim = traits.head_dim > 0 ? traits.head_dim : model.head_dim;
  const RopeType& type = find_rope_type(fields, traits);
  if (head_dim % 2 != 0 && (type.is_whole || !traits.takes_partial)) {
    fail(fmt::format("head_dim: rotary embeddings need an even number, got {}", head_dim));
  }
  RopeSpec rope;
  rope.rotary_dim = type.is_whole ? head_dim : rotated_columns(fields, traits, head_dim);
  rope.interleaved = traits.interleaved;
  rope.base = static_cast<float>(fields.theta);
  const int32_t max_positions = model.max_positions;
  type.set(fields, model, rope);
  if (!traits.widens_context) model.max_positions = max_positions;
  model.ropes.push_back(std::move(rope));
  return static_cast<int32_t>(model.ropes.size()) - 1;
}

void read_rope(const JsonReader& config, ModelConfig& model, const RopeTraits& traits) {
  const int32_t index = add_rope(config, traits, model);
  for (LayerPlan& layer : model.layers) layer.rope = index;
}

void read_rope_by_window(const JsonReader& config,
                         ModelConfig& model,
                         const RopeTraits& with_window,
                         const RopeTraits& without) {
  const int32_t windowed = add_rope(config, with_window, model);
  const int32_t full = add_rope(config, without, model);
  for (LayerPlan& layer : model.layers) layer.rope = layer.sliding_window > 0 ? windowed : full;
}

float read_score_multiplier(const JsonReader& config, const RopeTraits& traits) {
  const RopeFields fields = find_fields(config, traits);
  const double mscale = fields.optional_number("mscale_all_dim").value_or(0.0);
  if (fields.type == "default" || mscale == 0.0) return 1.0F;
  const double factor = yarn_mscale(scaling_factor(fields), mscale);
  return static_cast<float>(factor * factor);
}

PositionScale read_query_scale(const JsonReader& config,
                               const ModelConfig& model,
                               const RopeTraits& traits) {
  const RopeFields fields = find_fields(config, traits);
  const double beta = fields.optional_number("llama_4_scaling_beta").value_or(0.0);
  if (!(beta >= 0.0) || !std::isfinite(beta)) {
    fail(fmt::format("{}: expected 0 or more, got {}", fields.path_of("llama_4_scaling_beta"),
                     beta));
  }
  return {.beta = static_cast<float>(beta), .positions = original_positions(fields, model)};
}

}  // namespace tgi
