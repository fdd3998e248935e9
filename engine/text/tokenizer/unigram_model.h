// The "model" of tokenizer.json when it is Unigram (Kudo 2018, arxiv.org/abs/1804.10959): of all
// ways to cut a text into pieces, the one whose scores sum up to the most. Unlike
// sentencepiece_tokenizer, which runs the reference on a tokenizer.model, this gives the ids of the
// `tokenizers` library, which differ where sums are equal or nearly so.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer/piece_model.h"
#include "engine/text/tokenizer/piece_trie.h"

namespace tgi {

struct ScoredPiece {
  std::string text;
  double score;  // finite
};

struct UnigramSpec {
  std::vector<ScoredPiece> pieces;  // in the order of their ids; one that comes again counts last
  std::optional<int32_t> unk_id;    // below pieces.size()
  bool byte_fallback = false;       // what is unknown is written as <0x00> to <0xFF>
};

class UnigramModel final : public PieceModel {
 public:
  // Throws kInvalidArgument when there are more pieces than ids.
  explicit UnigramModel(UnigramSpec spec);

  // Characters that no piece has, side by side, are one unk token or the bytes of all of them. Time
  // is linear in the size of the text times that of the longest piece.
  void encode(std::string_view text,
              bool raw_bytes,
              std::vector<int32_t>& ids,
              std::vector<TextRange>* places) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  // The best way to the byte where it ends: its last piece.
  struct Step {
    double score;  // of all pieces up to here
    size_t begin;  // of the last piece; kNowhere: no way leads here
    int32_t id;
  };

  void find_best_path(std::string_view text, std::vector<Step>& path) const;
  void append_unknown(std::string_view text,
                      TextRange range,
                      std::vector<int32_t>& ids,
                      std::vector<TextRange>* places) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;  // by id
  double unk_score_;
  int32_t unk_id_;                       // -1: none
  std::array<int32_t, 256> byte_ids_{};  // of <0x00> to <0xFF>; -1: not there or not wanted
  PieceTrie trie_;
};

}  // namespace tgi
