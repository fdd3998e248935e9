#include "engine/text/tokenizer/wordpiece_model.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace tgi {
namespace {

constexpr size_t kShownOfWord = 100;  // bytes of a word in a message

PieceTrie make_wordpiece_trie(const Vocabulary& vocabulary) {
  std::vector<PieceTrie::Entry> entries;
  entries.reserve(vocabulary.size());
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    entries.push_back({vocabulary.token_at(i), vocabulary.id_at(i)});
  }
  return PieceTrie(std::move(entries));
}

}  // namespace

WordPieceModel::WordPieceModel(WordPieceSpec spec)
    : vocabulary_(std::move(spec.vocabulary)),
      unk_token_(std::move(spec.unk_token)),
      max_characters_(spec.max_input_chars_per_word),
      unk_id_(vocabulary_.find(unk_token_)),
      trie_(make_wordpiece_trie(vocabulary_)),
      continuing_(trie_.descend(PieceTrie::kRoot, spec.continuing_subword_prefix)) {}

bool WordPieceModel::encode_word(std::string_view word,
                                 std::vector<int32_t>& ids,
                                 std::vector<TextRange>* places) const {
  for (size_t begin = 0; begin < word.size();) {
    uint32_t node = begin == 0 ? PieceTrie::kRoot : continuing_;
    if (node == PieceTrie::kNone) return false;
    int32_t longest = -1;
    size_t longest_end = begin;
    for (size_t at = begin; at < word.size();) {
      node = trie_.child(node, word[at++]);
      if (node == PieceTrie::kNone) break;
      if (trie_.value(node) < 0) continue;
      longest = trie_.value(node);
      longest_end = at;
    }
    if (longest < 0) return false;
    ids.push_back(longest);
    if (places != nullptr) places->push_back({begin, longest_end});
    begin = longest_end;
  }
  return true;
}

void WordPieceModel::encode(std::string_view piece,
                            bool raw_bytes,
                            std::vector<int32_t>& ids,
                            std::vector<TextRange>* places) const {
  TGI_CHECK(!raw_bytes);
  const size_t num_ids = ids.size();
  const size_t num_places = places == nullptr ? 0 : places->size();
  const bool too_long = static_cast<int64_t>(piece.size()) > max_characters_ &&
                        count_utf8_characters(piece) > max_characters_;
  if (!too_long && encode_word(piece, ids, places)) return;
  if (unk_id_ < 0) {
    const size_t shown = valid_utf8_prefix(piece.substr(0, kShownOfWord));
    throw Error(Code::kInvalidArgument,
                fmt::format("\"{}\" is not made of tokens of the vocabulary, nor is unk_token "
                            "\"{}\" in it",
                            piece.substr(0, shown), unk_token_));
  }
  ids.resize(num_ids);
  ids.push_back(unk_id_);
  if (places == nullptr) return;
  places->resize(num_places);
  places->push_back({0, piece.size()});
}

}  // namespace tgi
