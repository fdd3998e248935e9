#include "engine/gguf/sentencepiece_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "engine/gguf/tokenizer_document.h"

namespace tgi::gguf {
namespace {

// A message of protocol buffers in the making: https://protobuf.dev/programming-guides/encoding
class Message {
 public:
  void add(int field, uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void add(int field, float value) {
    tag(field, 5);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof bytes);
  }
  void add(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    out_ += value;
  }
  const std::string& text() const { return out_; }

 private:
  void tag(int field, int wire_type) { varint(static_cast<uint64_t>(field << 3 | wire_type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

// Files have them with spaces, the library wants them as it writes them itself.
std::string piece_text(const GgufVocabulary& vocabulary, int64_t id) {
  std::string out(vocabulary.token(id));
  if (!vocabulary.is_user_defined(id)) return out;
  for (size_t at = out.find(' '); at != std::string::npos; at = out.find(' ', at)) {
    out.replace(at, 1, kLowerBlock);
  }
  return out;
}

// The library takes no piece without a text, and none twice; ids stay what they are.
std::string unique_text(std::string text, int64_t id, std::set<std::string>& seen) {
  if (text.empty()) text = fmt::format("<unused token {}>", id);
  while (!seen.insert(text).second) text += fmt::format("<again as {}>", id);
  return text;
}

int64_t find_unknown(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) == TokenType::kUnknown) return id;
  }
  return vocabulary.id_of_key(metadata, "unknown_token_id").value_or(0);
}

// The library wants a token for each of the 256 or none.
bool has_all_bytes(const GgufVocabulary& vocabulary) {
  std::set<std::string_view> texts;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) == TokenType::kByte) texts.insert(vocabulary.token(id));
  }
  return texts.size() == 256;
}

}  // namespace

std::string sentencepiece_proto(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  Message model;
  const int64_t unknown = find_unknown(vocabulary, metadata);
  const bool has_bytes = has_all_bytes(vocabulary);
  std::set<std::string> seen;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    TokenType type = vocabulary.type(id);
    // The library has exactly one.
    if (type == TokenType::kUnknown && id != unknown) type = TokenType::kControl;
    if (id == unknown) type = TokenType::kUnknown;
    if (type == TokenType::kByte && !has_bytes) type = TokenType::kUnused;
    Message piece;
    piece.add(1, unique_text(piece_text(vocabulary, id), id, seen));
    piece.add(2, vocabulary.score(id));
    piece.add(3, static_cast<uint64_t>(type));
    model.add(1, piece.text());
  }
  Message trainer;
  trainer.add(3, uint64_t{2});  // model_type: BPE
  trainer.add(4, static_cast<uint64_t>(vocabulary.size()));
  trainer.add(35, uint64_t{has_bytes});  // byte_fallback
  trainer.add(40, static_cast<uint64_t>(unknown));
  trainer.add(45, vocabulary.token(unknown));  // unk_piece
  model.add(2, trainer.text());
  Message normalizer;
  const auto flag = [&](const char* key, bool fallback) {
    return uint64_t{metadata.find_boolean(key).value_or(fallback)};
  };
  normalizer.add(3, flag("tokenizer.ggml.add_space_prefix", true));
  normalizer.add(4, flag("tokenizer.ggml.remove_extra_whitespaces", false));
  normalizer.add(5, uint64_t{1});  // escape_whitespaces
  model.add(3, normalizer.text());
  return model.text();
}

}  // namespace tgi::gguf
