// What AutoRound writes: matrices as gptq or awq stores them, and a quantization_config of its own
// that says which, and which modules it left plain.
//
// Source: https://github.com/intel/auto-round (export/export_to_autoround, inference)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tgi {

struct AutoRoundConfig {
  std::string_view format;  // "gptq", "gptq_v2" or "awq"
  std::vector<std::string> plain_modules;
};

// Whether quantization_config is of it.
bool is_auto_round(const JsonReader& config);

// REQUIRES: is_auto_round. Throws kUnsupported for another layout, and for modules that are
// quantised in another way than the others.
AutoRoundConfig read_auto_round(const JsonReader& quantization);

// Throws kUnsupported for fields that are not known.
void check_auto_round(const JsonReader& quantization);

}  // namespace tgi
