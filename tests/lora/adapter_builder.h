// Adapters in memory, as PEFT writes them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {

inline Json small_adapter_config() {
  return Json{{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 4}};
}

inline MemorySource adapter_files(const Json& config, const std::vector<TestTensor>& tensors) {
  return MemorySource({{"adapter_config.json", config.dump()},
                       {"adapter_model.safetensors", build_safetensors(tensors)}});
}

// Element i is first + i / 8.
inline TestTensor numbers(const std::string& name, int64_t rows, int64_t cols, float first = 0.0F) {
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i) / 8.0F;
  return {name, "F32", "[" + std::to_string(rows) + "," + std::to_string(cols) + "]",
          f32_bytes(values)};
}

// A and B of a module.
inline std::vector<TestTensor> lora_of(const std::string& module,
                                       int64_t outputs,
                                       int64_t inputs,
                                       int64_t rank = 2) {
  const std::string name = "base_model.model." + module;
  return {numbers(name + ".lora_A.weight", rank, inputs),
          numbers(name + ".lora_B.weight", outputs, rank, 100.0F)};
}

inline std::vector<TestTensor> together(const std::vector<std::vector<TestTensor>>& parts) {
  std::vector<TestTensor> out;
  for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

// What `action` is refused with.
template <typename Action>
std::string refusal_of_action(Code code, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

}  // namespace tgi
