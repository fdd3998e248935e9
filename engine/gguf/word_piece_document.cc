#include "engine/gguf/word_piece_document.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "engine/gguf/tokenizer_document.h"

namespace tgi::gguf {
namespace {

// ggml marks the pieces that begin a word, where WordPiece marks those that don't.
std::string word_piece(const GgufVocabulary& vocabulary, int64_t id) {
  std::string piece = vocabulary.text(id);
  // The mark alone is a continuation that looks like one: no word begins with nothing.
  const bool begins_word = piece.starts_with(kLowerBlock) && piece != kLowerBlock;
  if (begins_word) return piece.substr(kLowerBlock.size());
  const bool is_own = vocabulary.is_special(id) || vocabulary.is_user_defined(id) ||
                      (piece.starts_with('[') && piece.ends_with(']') && piece.size() > 2);
  return is_own ? piece : "##" + piece;
}

int64_t require(const std::optional<int64_t>& id, const char* key) {
  if (id) return *id;
  throw Error(Code::kInvalidArgument,
              fmt::format("tokenizer.ggml.{}: not in the file's metadata", key));
}

}  // namespace

std::string word_piece_document(const GgufVocabulary& vocabulary,
                                const GgufMetadata& metadata,
                                const SpecialIds& ids) {
  std::vector<std::string> pieces;
  for (int64_t id = 0; id < vocabulary.size(); ++id) pieces.push_back(word_piece(vocabulary, id));
  const int64_t cls = ids.cls ? *ids.cls : require(ids.bos, "cls_token_id");
  const int64_t sep = require(ids.separator, "seperator_token_id");
  const int64_t unknown = require(ids.unknown, "unknown_token_id");
  const bool lowers = metadata.find_boolean("tokenizer.ggml.normalizer.lowercase").value_or(true);
  const bool strips =
      metadata.find_boolean("tokenizer.ggml.normalizer.strip_accents").value_or(lowers);
  const Json members = {{"added_tokens", added_tokens(vocabulary, metadata)},
                        {"normalizer",
                         {{"type", "BertNormalizer"},
                          {"clean_text", true},
                          {"handle_chinese_chars", true},
                          {"strip_accents", strips},
                          {"lowercase", lowers}}},
                        {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                        {"post_processor",
                         {{"type", "BertProcessing"},
                          {"sep", Json::array({vocabulary.text(sep), sep})},
                          {"cls", Json::array({vocabulary.text(cls), cls})}}},
                        {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}}};
  const Json model = {{"type", "WordPiece"},
                      {"unk_token", vocabulary.text(unknown)},
                      {"continuing_subword_prefix", "##"},
                      {"max_input_chars_per_word", 100}};
  return tokenizer_document(members, model, vocabulary_object(pieces), "");
}

}  // namespace tgi::gguf
