#include "engine/weights/formats/auto_round.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"

namespace tgi {
namespace {

constexpr std::string_view kPackingKey = "packing_format";
constexpr std::string_view kModuleRulesKey = "extra_config";
constexpr int64_t kPlainBits = 16;

struct PackingRow {
  std::string_view packing;
  std::string_view format;
};

// Those without a name behind the colon have the zero points as they are, as gptq_v2 has them.
constexpr PackingRow kAutoRoundPackings[] = {{"auto_round:auto_gptq", "gptq"},
                                             {"auto_round:gptq", "gptq"},
                                             {"auto", "gptq"},
                                             {"auto_round:gptqmodel", "gptq_v2"},
                                             {"auto_round", "gptq_v2"},
                                             {"auto_round:auto_awq", "awq"},
                                             {"auto_round:awq", "awq"}};

constexpr auto kAutoRoundFields = std::to_array<KnownField>({
    read("bits"),
    read_or_null("group_size"),
    read_or_null("sym"),
    read_or_null(kPackingKey),
    read_or_null(kModuleRulesKey),
    harmless("backend", "chooses how the same sums are computed"),
});

std::string_view format_of_packing(const JsonReader& quantization) {
  const std::string packing = quantization.string_or(kPackingKey, "auto");
  std::string known;
  for (const PackingRow& row : kAutoRoundPackings) {
    if (row.packing == packing) return row.format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.packing);
  }
  throw Error(Code::kUnsupported,
              fmt::format("{}: auto-round in the layout '{}' can't be loaded; supported: {}",
                          quantization.path_of(kPackingKey), packing, known));
}

// {"model.layers.0.mlp.gate": {"bits": 16, ...}}, where a name may be a pattern.
std::vector<std::string> read_plain_modules(const JsonReader& quantization) {
  std::vector<std::string> out;
  if (!quantization.has(kModuleRulesKey)) return out;
  const JsonReader rules = quantization.object(kModuleRulesKey);
  for (const auto& [name, rule] : rules.json().items()) {
    const JsonReader reader(rule, rules.path_of(name));
    if (reader.integer_or("bits", 0) < kPlainBits) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: auto-round with modules that are quantised in another way than "
                              "the others can't be loaded; supported: modules left in {} bits",
                              rules.path_of(name), kPlainBits));
    }
    out.push_back(name);
  }
  check_left_plain(out);
  return out;
}

}  // namespace

bool is_auto_round(const JsonReader& config) {
  return quant_method_of(config) == "auto-round";
}

AutoRoundConfig read_auto_round(const JsonReader& quantization) {
  return {.format = format_of_packing(quantization),
          .plain_modules = read_plain_modules(quantization)};
}

void check_auto_round(const JsonReader& quantization) {
  check_quantization(quantization, kAutoRoundFields, "auto-round");
}

}  // namespace tgi
