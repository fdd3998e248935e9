// The "pre_tokenizer" of tokenizer.json: cuts a normalised text into the pieces that the model sees
// one by one. Immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/text/tokenizer/alignment.h"
#include "engine/text/unicode/regex.h"

namespace tgi {

struct Pieces {
  std::string text;
  std::vector<TextRange> ranges;  // of text: in order, none empty, without overlap
  bool at_start = false;          // text begins where the whole input does
  // Each byte of the text stands for its byte-level character, which it has not been turned into.
  bool raw_bytes = false;
  Alignment* alignment = nullptr;  // of text; null: nobody asks
};

class PreTokenizer {
 public:
  PreTokenizer() = default;  // leaves the text in one piece

  // component: the object under "pre_tokenizer". Throws kInvalidArgument or kUnsupported with its
  // path.
  explicit PreTokenizer(const JsonReader& component);

  // raw_bytes: whether the model takes pieces like that. alignment: that of `text`, then that of
  // the pieces' text; or null.
  Pieces apply(std::string text, bool at_start, bool raw_bytes, Alignment* alignment) const;

  class Step {
   public:
    virtual ~Step() = default;
    // raw_bytes: the model comes next, and takes them.
    virtual void apply(Pieces& pieces, bool raw_bytes) const = 0;
  };

 private:
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace tgi
