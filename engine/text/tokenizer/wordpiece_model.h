// The "model" of tokenizer.json when it is WordPiece (Schuster and Nakajima 2012; BERT's,
// arxiv.org/abs/1810.04805): a word is cut from the left, each time the longest token that fits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer/piece_model.h"
#include "engine/text/tokenizer/piece_trie.h"

namespace tgi {

struct WordPieceSpec {
  Vocabulary vocabulary;  // indexed
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  int64_t max_input_chars_per_word = 100;  // a longer word is one unk_token
};

class WordPieceModel final : public PieceModel {
 public:
  explicit WordPieceModel(WordPieceSpec spec);

  // A word of which some part is no token is one unk_token. Time is linear in the size of the word
  // times that of the longest token.
  void encode(std::string_view piece,
              bool raw_bytes,
              std::vector<int32_t>& ids,
              std::vector<TextRange>* places) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  bool encode_word(std::string_view word,
                   std::vector<int32_t>& ids,
                   std::vector<TextRange>* places) const;

  Vocabulary vocabulary_;
  std::string unk_token_;
  int64_t max_characters_;
  int32_t unk_id_;
  PieceTrie trie_;
  uint32_t continuing_;  // where tokens inside a word begin
};

}  // namespace tgi
