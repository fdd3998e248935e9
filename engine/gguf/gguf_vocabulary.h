// The tokens of a GGUF file, with their kinds and scores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/ggml/gguf_file.h"

namespace tgi::gguf {

enum class TokenType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// References the metadata.
class GgufVocabulary {
 public:
  // Throws kInvalidArgument when lists have different lengths, for kinds that do not exist and for
  // ids outside the vocabulary.
  explicit GgufVocabulary(const GgufMetadata& metadata);

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  std::string_view token(int64_t id) const { return tokens_[static_cast<size_t>(id)]; }
  // The same as UTF-8, and never empty: bytes that are none become U+FFFD.
  std::string text(int64_t id) const;
  TokenType type(int64_t id) const { return types_[static_cast<size_t>(id)]; }
  float score(int64_t id) const;  // 0 without scores

  bool is_special(int64_t id) const {
    return type(id) == TokenType::kControl || type(id) == TokenType::kUnknown;
  }
  bool is_user_defined(int64_t id) const { return type(id) == TokenType::kUserDefined; }

  // The token that "tokenizer.ggml.KEY" names; nothing when there is none, or -1.
  std::optional<int64_t> id_of_key(const GgufMetadata& metadata, const std::string& key) const;
  // The same of a list of tokens.
  std::vector<int64_t> ids_of_key(const GgufMetadata& metadata, const std::string& key) const;

 private:
  void check_id(const std::string& key, int64_t id) const;  // throws kInvalidArgument

  std::vector<std::string_view> tokens_;
  std::vector<TokenType> types_;
  std::vector<double> scores_;
};

}  // namespace tgi::gguf
