// What clients of OpenRouter send beside OpenAI's fields: wishes about which provider answers, what
// to fall back on, and whether usage is told. There is one provider, this server: what it fulfils
// anyway is taken, what only another one could do is refused by its name.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/openai_body.h"

namespace tgi::http {
namespace {

constexpr std::string_view kOneProvider = "there is one provider, this server";

constexpr std::array kProviderFields = {
    ExtraField{"order", kAnything, kOneProvider},
    ExtraField{"sort", kAnything, kOneProvider},
    ExtraField{"ignore", kAnything, kOneProvider},
    ExtraField{"allow_fallbacks", kAnything, kOneProvider},
    ExtraField{"require_parameters", kAnything, "a parameter that is not known is always refused"},
    ExtraField{"data_collection", kAnything, "nothing is collected"},
    ExtraField{"zdr", kAnything, "nothing is kept"},
    ExtraField{"max_price", kAnything, "answers have no price"},
    ExtraField{"preferred_min_throughput", kAnything, kOneProvider},
    ExtraField{"preferred_max_latency", kAnything, kOneProvider},
    ExtraField{"only", "[[]]", "this server is none of OpenRouter's providers"},
    ExtraField{"quantizations", "[[]]", "the model is served as it was loaded"},
    ExtraField{"enforce_distillable_text", "[false]", "a model's licence is not known here"},
};

void check_provider(const OrderedJson& provider) {
  if (!provider.is_object()) fail_body_type("provider", "an object", provider);
  std::vector<std::string_view> known;
  for (const ExtraField& field : kProviderFields) known.push_back(field.name);
  for (const auto& item : provider.items()) {
    check_extra_field("provider." + item.key().substr(0, 100), item.key(), item.value(),
                      kProviderFields, known);
  }
}

}  // namespace

bool openrouter_wants_usage(const OpenAiParameters& parameters) {
  if (!parameters.usage) return false;
  const OrderedJson& usage = *parameters.usage;
  if (!usage.is_object()) fail_body_type("usage", "an object", usage);
  static constexpr std::array<std::string_view, 1> kKnown = {"include"};
  bool wanted = false;
  for (const auto& item : usage.items()) {
    const std::string path = "usage." + item.key().substr(0, 100);
    if (item.key() != kKnown[0]) check_extra_field(path, item.key(), item.value(), {}, kKnown);
    if (item.key() == kKnown[0] && !item.value().is_null()) {
      read_body_value(item.value(), path, wanted);
    }
  }
  return wanted;
}

void check_openrouter(const OpenAiParameters& parameters) {
  (void)openrouter_wants_usage(parameters);
  if (parameters.provider) check_provider(*parameters.provider);
  // What else may answer where the model fails: nothing does, and the failure is told. Without
  // `model` the first of them would be meant.
  const bool names_model = !parameters.model.value_or("").empty();
  require(!parameters.models || parameters.models->empty() || names_model,
          "`models` without `model` is not supported: one model answers, name it by `model`");
}

}  // namespace tgi::http
