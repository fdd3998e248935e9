// The files that sentence-transformers puts beside a model's weights.
#pragma once

namespace tgi {

inline constexpr const char* kModulesFile = "modules.json";
inline constexpr const char* kSentenceFile = "config_sentence_transformers.json";

}  // namespace tgi
