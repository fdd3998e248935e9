#include "engine/text/unicode/graphemes.h"

#include "base/utf8.h"
#include "engine/text/unicode/grapheme_tables.h"
#include "engine/text/unicode/unicode_tables.h"

namespace tgi {
namespace {

GraphemeClass class_of(char32_t character) {
  if (character < 0x7F) return character < ' ' ? GraphemeClass::kControl : GraphemeClass::kOther;
  // Han and the syllables of Hangul: most of the text that isn't Latin, and none of the table.
  if (character >= 0x3400 && character < 0xA000) return GraphemeClass::kOther;
  if (character >= 0xAC00 && character < 0xD7A4) return GraphemeClass::kOther;
  const GraphemeRange* row = find_range(grapheme_ranges(), character);
  return row == nullptr ? GraphemeClass::kOther : row->grapheme_class;
}

enum class Hangul { kNone, kLeading, kVowel, kTrailing, kSyllable, kClosedSyllable };

Hangul hangul_of(char32_t c) {
  if (c < 0x1100 || c > 0xD7FB) return Hangul::kNone;
  if (c <= 0x115F || (c >= 0xA960 && c <= 0xA97C)) return Hangul::kLeading;
  if (c <= 0x11A7 || (c >= 0xD7B0 && c <= 0xD7C6)) return Hangul::kVowel;
  if (c <= 0x11FF || c >= 0xD7CB) return Hangul::kTrailing;
  if (c < 0xAC00 || c > 0xD7A3) return Hangul::kNone;
  return (c - 0xAC00) % 28 == 0 ? Hangul::kSyllable : Hangul::kClosedSyllable;
}

bool hangul_joins(char32_t before, char32_t after) {
  const Hangul right = hangul_of(after);
  if (right == Hangul::kNone) return false;
  const Hangul left = hangul_of(before);
  switch (left) {
    case Hangul::kLeading:
      return right != Hangul::kTrailing;
    case Hangul::kVowel:
    case Hangul::kSyllable:
      return right == Hangul::kVowel || right == Hangul::kTrailing;
    case Hangul::kTrailing:
    case Hangul::kClosedSyllable:
      return right == Hangul::kTrailing;
    case Hangul::kNone:
      break;
  }
  return false;
}

bool joins_before(GraphemeClass grapheme_class) {
  return grapheme_class >= GraphemeClass::kSpacingMark;
}

// What the characters so far are the beginning of, for the rules that look further back than one.
class ClusterContext {
 public:
  explicit ClusterContext(GraphemeClass first) { add(first); }

  bool joins(GraphemeClass next) const {
    return (pictograph_ == kComplete && next == GraphemeClass::kPictographic) ||
           (conjunct_ == kComplete && next == GraphemeClass::kConsonant);
  }

  void add(GraphemeClass next) {
    const bool extends = next == GraphemeClass::kExtend ||
                         next == GraphemeClass::kConjoiningExtend || next == GraphemeClass::kLinker;
    if (next == GraphemeClass::kPictographic) {
      pictograph_ = kBegun;
    } else if (pictograph_ == kBegun && next == GraphemeClass::kJoiner) {
      pictograph_ = kComplete;
    } else if (!(pictograph_ == kBegun && extends)) {
      pictograph_ = kNone;
    }
    if (next == GraphemeClass::kConsonant) {
      conjunct_ = kBegun;
    } else if (conjunct_ != kNone && next == GraphemeClass::kLinker) {
      conjunct_ = kComplete;
    } else if (next != GraphemeClass::kConjoiningExtend && next != GraphemeClass::kJoiner) {
      conjunct_ = kNone;
    }
  }

 private:
  enum State { kNone, kBegun, kComplete };  // complete: the second half may follow
  State pictograph_ = kNone;
  State conjunct_ = kNone;
};

}  // namespace

size_t grapheme_end(std::string_view text, size_t begin) {
  size_t end = begin;
  char32_t last = next_character(text, end);
  // Nothing of ASCII joins what stands before it, but for the end of a line.
  if (end == text.size() || (last < 0x7F && text[end] > '\n' && text[end] < 0x7F)) return end;
  if (last == '\r' && text[end] == '\n') return end + 1;
  GraphemeClass left = class_of(last);
  if (left == GraphemeClass::kControl) return end;
  ClusterContext context(left);
  while (end < text.size()) {
    size_t next = end;
    const char32_t character = next_character(text, next);
    const GraphemeClass right = class_of(character);
    const bool joined = joins_before(right) ||
                        (left == GraphemeClass::kPrepend && right != GraphemeClass::kControl) ||
                        context.joins(right) || hangul_joins(last, character);
    if (!joined) break;
    context.add(right);
    left = right;
    last = character;
    end = next;
  }
  return end;
}

}  // namespace tgi
