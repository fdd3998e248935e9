// Tiny checkpoints: of the sources, or where scripts/gpu_check has them side by side.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace tgi {

inline std::string golden_models() {
  const char* const elsewhere = std::getenv("TGI_GOLDEN_MODELS");
  return elsewhere == nullptr ? TGI_SOURCE_DIR "/tests/golden/models" : elsewhere;
}

// Of tests/golden/families: experts chosen by a softmax or a sigmoid, in groups, beside a shared
// one. scripts/gpu/gpu_bundle takes them along.
inline constexpr const char* kModelsWithExperts[] = {"mixtral",   "mixtral-top1-sharded",
                                                     "qwen2-moe", "qwen2-moe-sparse-step-f16",
                                                     "qwen3-moe", "olmoe",
                                                     "glm4-moe",  "glm4-moe-groups-qk-norm-f16"};

inline std::string golden_family(std::string_view name) {
  const char* const elsewhere = std::getenv("TGI_GOLDEN_MODELS");
  const std::string folder =
      elsewhere == nullptr ? TGI_SOURCE_DIR "/tests/golden/families" : elsewhere;
  return folder + "/" + std::string(name);
}

}  // namespace tgi
