#include "engine/runtime/opened_adapter.h"

#include "engine/lora/adapter_parts.h"

namespace tgi {

std::optional<std::span<const std::byte>> OpenedAdapter::find(const std::string& name) const {
  return folder == nullptr ? std::nullopt : folder->find(name);
}

std::string OpenedAdapter::describe(const std::string& name) const {
  return folder == nullptr ? name : folder->describe(name);
}

void OpenedAdapter::release(std::span<const std::byte> bytes) const {
  if (folder != nullptr) folder->release(bytes);
}

void OpenedAdapter::check_intact() const {
  if (folder != nullptr) folder->check_intact();
}

std::vector<std::vector<LowRankPart>> parts_of_ranks(const AdapterFiles& adapter,
                                                     const LoadedConfig& model,
                                                     LoadWeightsOptions weights,
                                                     int32_t num_ranks) {
  std::vector<std::vector<LowRankPart>> out;
  for (int32_t rank = 0; rank < num_ranks; ++rank) {
    weights.rank = rank;
    weights.world_size = num_ranks;
    out.push_back(adapter_parts(adapter, model, weights));
  }
  return out;
}

}  // namespace tgi
