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
    const bool is_one_of_many = tensor.expert >= 0 && !tensor.is_stacked;
    if (is_of_layer != (tensor.layer >= 0) || is_of_stack != is_one_of_many) continue;
    std::string name = replaced(rule.name, "{layer}", layer);
    name = replaced(name, "{expert}", std::to_string(tensor.expert));
    const std::string weight = name + (rule.bias_suffix ? "" : ".weight");
    const std::string bias = name + rule.bias_suffix.value_or(".bias");
    // Where both are the same, the rule says what is stored.
    const bool is_bare = weight == bias;
    const bool is_bias = tensor.name == bias && (!is_bare || rule.stored_suffix == ".bias");
    if (tensor.name != bias && tensor.name != weight) continue;
    const std::string suffix = is_bare ? rule.stored_suffix : is_bias ? ".bias" : ".weight";
    return TensorPlace{.stored = replaced(rule.stored, "{layer}", layer) + suffix,
                       .rule = &rule,
                       .is_bias = is_bias,
                       .is_of_stack = is_of_stack || tensor.is_stacked};
  }
  return std::nullopt;
}

}  // namespace tgi::gguf
