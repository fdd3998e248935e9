// Texts on which tokenizers differ, if they differ at all.
#pragma once

#include <string>
#include <vector>

namespace tgi::gguf {

const std::vector<std::string>& tokenizer_probes();

}  // namespace tgi::gguf
