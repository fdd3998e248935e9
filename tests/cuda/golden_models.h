// Tiny checkpoints: of the sources, or where scripts/gpu_check has them side by side.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace tgi {

// kind: models, families
inline std::string golden_models(std::string_view kind) {
  const char* const elsewhere = std::getenv("TGI_GOLDEN_MODELS");
  return (elsewhere == nullptr ? TGI_SOURCE_DIR "/tests/golden" : elsewhere) +
         ("/" + std::string(kind));
}

}  // namespace tgi
