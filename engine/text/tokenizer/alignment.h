// Where each byte of a text that was changed comes from: for `/tokenize`, whose tokens stand in the
// text as it was given. By the rules of NormalizedString of the `tokenizers` library: what is put
// in shares the place of what stands before it, what replaces several characters has the place of
// one of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/text/unicode/regex.h"

namespace tgi {

// One range of the original text, in bytes, for each byte of the changed one. A whole character at
// least.
using Alignment = std::vector<TextRange>;

// The alignment of a text that is the original, or begins at byte `begin` of it.
Alignment align_characters(std::string_view text, size_t begin = 0);

// Builds the alignment of a changed text while the text is written. Does nothing without an
// alignment: encoding alone doesn't need it.
class AlignmentWriter {
 public:
  explicit AlignmentWriter(Alignment* alignment) : alignment_(alignment) {
    if (alignment_ != nullptr) written_.reserve(alignment_->size());
  }

  // The next `count` bytes are those of the old text from `begin` on.
  void copy(size_t begin, size_t count) {
    if (alignment_ == nullptr) return;
    const auto first = alignment_->begin() + static_cast<std::ptrdiff_t>(begin);
    written_.insert(written_.end(), first, first + static_cast<std::ptrdiff_t>(count));
  }

  // They all have the place of the byte `at` of the old text; where there is none, an empty one
  // where the text begins.
  void place(size_t at, size_t count) {
    if (alignment_ == nullptr) return;
    const size_t begin = alignment_->empty() ? 0 : alignment_->front().begin;
    written_.insert(written_.end(), count,
                    at < alignment_->size() ? (*alignment_)[at] : TextRange{begin, begin});
  }

  void finish() {
    if (alignment_ != nullptr) *alignment_ = std::move(written_);
  }

 private:
  Alignment* const alignment_;
  Alignment written_;
};

// By how many characters a text grew at each character of the changed one, as the library counts: 0
// for one that replaces another, 1 for one that is put in, -n for one that replaces another and n
// more behind it.
using Changes = std::vector<int64_t>;

// The alignment of `changed`, by the changes that made it of `text`.
void align_changes(std::string_view text,
                   std::string_view changed,
                   const Changes& changes,
                   Alignment& alignment);

// The place of bytes of the changed text. REQUIRES: not empty.
inline TextRange place_of(const Alignment& alignment, TextRange range) {
  return {alignment[range.begin].begin, alignment[range.end - 1].end};
}

}  // namespace tgi
