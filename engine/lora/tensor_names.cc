#include "engine/lora/tensor_names.h"

#include <array>

namespace tgi {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";

struct Marker {
  std::string_view text;  // what follows the module
  AdapterTensor kind;
  std::string_view end;  // of the name; between the two may be the name of the adapter
};

constexpr std::array<Marker, 7> kMarkers = {{
    {".lora_A", AdapterTensor::kA, ".weight"},
    {".lora_B", AdapterTensor::kB, ".weight"},
    {".lora_B", AdapterTensor::kBBias, ".bias"},
    {".lora_embedding_A", AdapterTensor::kEmbeddingA, ""},
    {".lora_embedding_B", AdapterTensor::kEmbeddingB, ""},
    {".lora_magnitude_vector", AdapterTensor::kMagnitude, ".weight"},
    {".lora_magnitude_vector", AdapterTensor::kMagnitude, ""},
}};

// What a trained module of the base itself is called, bare or wrapped.
constexpr std::array<Marker, 4> kOwnTensors = {{
    {".base_layer", AdapterTensor::kWeight, ".weight"},
    {".base_layer", AdapterTensor::kBias, ".bias"},
    {"", AdapterTensor::kWeight, ".weight"},
    {"", AdapterTensor::kBias, ".bias"},
}};

// Nothing, or one part of a name with the dot before it.
bool is_adapter_name(std::string_view text) {
  return text.empty() || (text.front() == '.' && text.find('.', 1) == std::string_view::npos);
}

bool fits(std::string_view name, const Marker& marker, size_t& module_size) {
  if (!name.ends_with(marker.end)) return false;
  name.remove_suffix(marker.end.size());
  module_size = name.rfind(marker.text);
  if (module_size == std::string_view::npos || module_size == 0) return false;
  return is_adapter_name(name.substr(module_size + marker.text.size()));
}

}  // namespace

AdapterTensorName parse_adapter_tensor(std::string_view name) {
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const Marker& marker : kMarkers) {
    size_t size = 0;
    if (fits(name, marker, size)) return {.kind = marker.kind, .module = name.substr(0, size)};
  }
  if (name.find(".lora_") == std::string_view::npos) {
    for (const Marker& marker : kOwnTensors) {
      const size_t end = marker.text.size() + marker.end.size();
      if (name.size() <= end || !name.ends_with(marker.end)) continue;
      const std::string_view module = name.substr(0, name.size() - end);
      if (name.substr(module.size()).starts_with(marker.text)) {
        return {.kind = marker.kind, .module = module};
      }
    }
  }
  return {.kind = AdapterTensor::kOther, .module = name};
}

}  // namespace tgi
