// The "model" of tokenizer.json when it is WordLevel: a piece is a token as a whole. Immutable
// after construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer/piece_model.h"

namespace tgi {

class WordLevelModel final : public PieceModel {
 public:
  // vocabulary: indexed. unk_token: what every other piece is; it may be missing in the vocabulary.
  WordLevelModel(Vocabulary vocabulary, std::string unk_token);

  void encode(std::string_view piece,
              bool raw_bytes,
              std::vector<int32_t>& ids,
              std::vector<TextRange>* places) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
  std::string unk_token_;
  int32_t unk_id_;  // -1: none
};

}  // namespace tgi
