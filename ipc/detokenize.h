// The method "detokenize": the text that token ids spell, special tokens as they are written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/protocol.h"

namespace tgi::ipc {

inline constexpr std::string_view kDetokenize = "detokenize";

struct DetokenizeParams {
  std::optional<std::string> model{};  // by its name; absent: the default one
  std::vector<int32_t> ids;
};
struct DetokenizeResult {
  std::string text;  // byte errors replaced by U+FFFD
};

OrderedJson to_json(const DetokenizeParams& params);
DetokenizeParams detokenize_params_from_json(const OrderedJson& params);
OrderedJson to_json(const DetokenizeResult& result);
DetokenizeResult detokenize_result_from_json(const OrderedJson& json);

}  // namespace tgi::ipc
