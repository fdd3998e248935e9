// What the parts of a HostAdapter are views of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_source.h"
#include "engine/lora/adapter_files.h"
#include "engine/model/model_weights.h"
#include "engine/tensor/low_rank.h"

namespace tgi {

struct OpenedAdapter final : FileSource {
  std::unique_ptr<FileSource> folder;  // (optional) null: it was computed
  AdapterFiles adapter;

  std::optional<std::span<const std::byte>> find(const std::string& name) const override;
  std::string describe(const std::string& name) const override;
  void release(std::span<const std::byte> bytes) const override;
  void check_intact() const override;
};

// As adapter_parts, of each rank.
std::vector<std::vector<LowRankPart>> parts_of_ranks(const AdapterFiles& adapter,
                                                     const LoadedConfig& model,
                                                     LoadWeightsOptions weights,
                                                     int32_t num_ranks);

}  // namespace tgi
