// Tokenizers out of metadata.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_source.h"
#include "engine/gguf/tokenizer_files.h"
#include "engine/text/tokenizer.h"

namespace tgi {

inline std::unique_ptr<Tokenizer> load_gguf_tokenizer(const GgufMetadata& metadata) {
  const std::map<std::string, std::string> texts = gguf::tokenizer_files(metadata);
  std::vector<EmbeddedFile> files;
  for (const auto& [name, text] : texts) {
    files.push_back({name, std::as_bytes(std::span<const char>(text.data(), text.size()))});
  }
  return load_tokenizer(*open_embedded("test", files));
}

}  // namespace tgi
