// What of a tokenizer.model a GGUF file has too: pieces, scores, kinds, and how spaces are put
// before a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gguf/gguf_vocabulary.h"

namespace tgi::gguf {

struct SentencePiece {
  std::string text;
  float score = 0.0F;
  TokenType type = TokenType::kNormal;
};

struct SentencePieceModel {
  static constexpr int64_t kBpe = 2;
  int64_t type = 1;  // TrainerSpec.ModelType: 1 Unigram, 2 BPE
  bool adds_space_before = true;
  bool removes_extra_spaces = true;
  std::vector<SentencePiece> pieces;
};

// proto: a serialised sentencepiece.ModelProto (github.com/google/sentencepiece,
// src/sentencepiece_model.proto). Throws kInvalidArgument for bytes that are none.
SentencePieceModel read_sentencepiece(std::string_view proto);

}  // namespace tgi::gguf
