#include "engine/gguf/tensor_places.h"

#include <utility>

namespace tgi::gguf {
namespace {

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  const size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

}  // namespace

std::optional<TensorPlace> find_place(std::span<const TensorRule> rules,
                                      const ModelTensor& tensor) {
  const std::string layer = std::to_string(tensor.layer);
  for (const TensorRule& rule : rules) {
    const bool is_of_layer = rule.stored.find("{layer}") != std::string::npos;
    const bool is_of_stack = rule.name.find("{expert}") != std::string::npos;
    if (is_of_layer != (tensor.layer >= 0) || is_of_stack != (tensor.expert >= 0)) continue;
    std::string name = replaced(rule.name, "{layer}", layer);
    name = replaced(name, "{expert}", std::to_string(tensor.expert));
    const std::string weight = name + (rule.bias_suffix ? "" : ".weight");
    const std::string bias = name + rule.bias_suffix.value_or(".bias");
    // Where both are the same, what is stored is a bias.
    const bool is_bias = tensor.name == bias;
    if (!is_bias && tensor.name != weight) continue;
    return TensorPlace{
        .stored = replaced(rule.stored, "{layer}", layer) + (is_bias ? ".bias" : ".weight"),
        .rule = &rule,
        .is_bias = is_bias,
        .is_of_stack = is_of_stack};
  }
  return std::nullopt;
}

}  // namespace tgi::gguf
