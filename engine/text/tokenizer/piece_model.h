// The "model" of tokenizer.json: what turns a piece of a text into ids. Immutable after
// construction: any thread may encode with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer/vocabulary.h"
#include "engine/text/unicode/regex.h"

namespace tgi {

struct TokenizerJson;

class PieceModel {
 public:
  virtual ~PieceModel() = default;

  // Appends the ids of `piece` and, unless `places` is null, where in it each of them stands, in
  // bytes. raw_bytes: each byte stands for its byte-level character. Throws kInvalidArgument when
  // the token for what is unknown is needed and not there. REQUIRES: piece is not empty and valid
  // UTF-8; raw_bytes only where takes_raw_bytes.
  virtual void encode(std::string_view piece,
                      bool raw_bytes,
                      std::vector<int32_t>& ids,
                      std::vector<TextRange>* places) const = 0;

  virtual bool takes_raw_bytes() const { return false; }
  virtual const Vocabulary& vocabulary() const = 0;
};

// The model of the type that `parsed` names, whose vocabulary it takes. Throws kInvalidArgument or
// kUnsupported with the path of what is wrong.
std::unique_ptr<PieceModel> make_piece_model(TokenizerJson& parsed);

}  // namespace tgi
