#include "engine/gguf/gguf_vocabulary.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace tgi::gguf {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kScores = "tokenizer.ggml.scores";

void check_length(const char* key, size_t length, size_t num_tokens) {
  if (length == num_tokens) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected {} elements, as many as there are tokens, got {}", key,
                          num_tokens, length));
}

}  // namespace

GgufVocabulary::GgufVocabulary(const GgufMetadata& metadata) : tokens_(metadata.texts(kTokens)) {
  if (tokens_.empty()) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: there are none", kTokens));
  }
  types_.assign(tokens_.size(), TokenType::kNormal);
  if (metadata.has(kTypes)) {
    const std::vector<int64_t> types = metadata.integers(kTypes);
    check_length(kTypes, types.size(), tokens_.size());
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] < 0 || types[i] > 6) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}: expected kinds from 0 to 6, got {} for token {}", kTypes,
                                types[i], i));
      }
      if (types[i] != 0) types_[i] = static_cast<TokenType>(types[i]);  // 0: not said
    }
  }
  if (metadata.has(kScores)) {
    scores_ = metadata.numbers(kScores);
    check_length(kScores, scores_.size(), tokens_.size());
  }
}

std::string GgufVocabulary::text(int64_t id) const {
  const std::string_view bytes = token(id);
  if (bytes.empty()) return fmt::format("[EMPTY_{}]", id);
  return is_valid_utf8(bytes) ? std::string(bytes) : replace_invalid_utf8(bytes);
}

float GgufVocabulary::score(int64_t id) const {
  return scores_.empty() ? 0.0F : static_cast<float>(scores_[static_cast<size_t>(id)]);
}

std::optional<int64_t> GgufVocabulary::id_of_key(const GgufMetadata& metadata,
                                                 const std::string& key) const {
  const std::string full = "tokenizer.ggml." + key;
  const auto id = metadata.find_integer(full);
  // Files say that there is none by -1, of 32 bits without a sign too.
  constexpr int64_t kNone = 0xFFFFFFFF;
  if (!id || *id == -1 || *id == kNone) return std::nullopt;
  check_id(full, *id);
  return *id;
}

std::vector<int64_t> GgufVocabulary::ids_of_key(const GgufMetadata& metadata,
                                                const std::string& key) const {
  const std::string full = "tokenizer.ggml." + key;
  if (!metadata.has(full)) return {};
  std::vector<int64_t> ids = metadata.integers(full);
  for (const int64_t id : ids) check_id(full, id);
  return ids;
}

void GgufVocabulary::check_id(const std::string& key, int64_t id) const {
  if (id >= 0 && id < size()) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected a token id from 0 to {}, got {}", key, size() - 1, id));
}

}  // namespace tgi::gguf
