#include "engine/text/tokenizer/pre_tokenizer.h"

#include <utility>

#include "base/utf8.h"
#include "engine/text/tokenizer/byte_level.h"
#include "engine/text/tokenizer/component_list.h"
#include "engine/text/tokenizer/split.h"
#include "engine/text/unicode/script_tables.h"
#include "engine/text/unicode/unicode.h"
#include "engine/text/unicode/unicode_tables.h"

namespace tgi {
namespace {

// Replaces the text by what `rewrite(piece, index, out, places)` appends for each of its pieces.
template <typename Rewrite>
void rewrite_pieces(Pieces& pieces, Rewrite rewrite) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.text.size() / 2);
  AlignmentWriter places(pieces.alignment);
  for (TextRange& range : pieces.ranges) {
    const size_t begin = text.size();
    rewrite(range.in(pieces.text), range.begin, text, places);
    range = {begin, text.size()};
  }
  places.finish();
  pieces.text = std::move(text);
}

// Cuts every piece: find(piece, matches) gives the delimiters inside one.
template <typename Find>
void split_pieces(Pieces& pieces, SplitBehavior behavior, bool invert, Find find) {
  std::vector<TextRange> cut;
  cut.reserve(pieces.ranges.size() == 1 ? pieces.text.size() / 4 : pieces.ranges.size());
  std::vector<TextRange> matches;
  for (const TextRange& range : pieces.ranges) {
    matches.clear();
    find(range.in(pieces.text), matches);
    for (TextRange& match : matches) {
      match = {match.begin + range.begin, match.end + range.begin};
    }
    split_at(range, matches, behavior, invert, cut);
  }
  pieces.ranges = std::move(cut);
}

template <typename Predicate>
void split_at_characters(Pieces& pieces, SplitBehavior behavior, Predicate is_delimiter) {
  split_pieces(pieces, behavior, false,
               [&](std::string_view piece, std::vector<TextRange>& matches) {
                 for (size_t offset = 0; offset < piece.size();) {
                   const size_t begin = offset;
                   if (is_delimiter(next_character(piece, offset))) {
                     matches.push_back({begin, offset});
                   }
                 }
               });
}

class SplitStep final : public PreTokenizer::Step {
 public:
  explicit SplitStep(const JsonReader& component)
      : pattern_(component),
        behavior_(read_split_behavior(component, SplitBehavior::kRemoved)),
        invert_(component.boolean_or("invert", false)) {
    component.string("behavior");  // required
  }

  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_pieces(pieces, behavior_, invert_, [this](std::string_view piece, auto& matches) {
      pattern_.find_all(piece, matches);
    });
  }

 private:
  const Pattern pattern_;
  const SplitBehavior behavior_;
  const bool invert_;
};

class ByteLevelStep final : public PreTokenizer::Step {
 public:
  explicit ByteLevelStep(const JsonReader& component)
      : add_prefix_space_(component.boolean("add_prefix_space")) {
    // GPT-2's (github.com/openai/gpt-2, src/encoder.py).
    if (component.boolean_or("use_regex", true)) {
      regex_ = std::make_unique<Regex>(
          R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
    }
  }

  void apply(Pieces& pieces, bool raw_bytes) const override {
    if (add_prefix_space_) {
      rewrite_pieces(pieces, [](std::string_view piece, size_t begin, std::string& out,
                                AlignmentWriter& places) {
        if (!piece.starts_with(' ')) {
          out += ' ';
          places.place(begin, 1);
        }
        out += piece;
        places.copy(begin, piece.size());
      });
    }
    if (regex_ != nullptr) {
      split_pieces(
          pieces, SplitBehavior::kIsolated, false,
          [this](std::string_view piece, auto& matches) { regex_->find_all(piece, matches); });
    }
    if (raw_bytes) {
      pieces.raw_bytes = true;
    } else {
      rewrite_pieces(pieces, [](std::string_view piece, size_t begin, std::string& out,
                                AlignmentWriter& places) {
        out += to_byte_level(piece);
        for (const char byte : piece) places.place(begin++, byte_level_size(byte));
      });
    }
  }

 private:
  const bool add_prefix_space_;
  std::unique_ptr<Regex> regex_;  // or null
};

class MetaspaceStep final : public PreTokenizer::Step {
 public:
  explicit MetaspaceStep(const JsonReader& component)
      : replacement_(read_character(component, "replacement")),
        split_(component.boolean_or("split", true)) {
    std::string scheme = component.string_or("prepend_scheme", "always");
    if (!component.boolean_or("add_prefix_space", true)) scheme = "never";
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      throw Error(Code::kInvalidArgument, fmt::format("{}: \"{}\" is none of always, first, never",
                                                      component.path_of("prepend_scheme"), scheme));
    }
    always_ = scheme == "always";
    first_ = scheme == "first";
  }

  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    const bool at_start = pieces.at_start;
    rewrite_pieces(pieces, [&](std::string_view piece, size_t begin, std::string& out,
                               AlignmentWriter& places) {
      const bool prepend = always_ || (first_ && at_start && begin == 0);
      if (prepend && piece[0] != ' ' && !piece.starts_with(replacement_)) {
        out += replacement_;
        places.place(begin, replacement_.size());
      }
      for (const char c : piece) {
        if (c == ' ') {
          out += replacement_;
          places.place(begin++, replacement_.size());
        } else {
          out += c;
          places.place(begin++, 1);
        }
      }
    });
    if (!split_) return;
    split_pieces(pieces, SplitBehavior::kMergedWithNext, false,
                 [this](std::string_view piece, std::vector<TextRange>& matches) {
                   find_literal(piece, replacement_, matches);
                 });
  }

 private:
  const std::string replacement_;
  const bool split_;
  bool always_ = false;
  bool first_ = false;
};

class WhitespaceStep final : public PreTokenizer::Step {
 public:
  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_pieces(
        pieces, SplitBehavior::kRemoved, true,
        [this](std::string_view piece, auto& matches) { words_.find_all(piece, matches); });
  }

 private:
  // \w+|[^\w\s]+ with the \w of Rust's regular expressions.
  const Regex words_{R"([[:word:]\u200C\u200D]+|[^[:word:]\u200C\u200D\s]+)"};
};

class WhitespaceSplitStep final : public PreTokenizer::Step {
 public:
  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_at_characters(pieces, SplitBehavior::kRemoved, is_white_space);
  }
};

class CharDelimiterStep final : public PreTokenizer::Step {
 public:
  explicit CharDelimiterStep(const JsonReader& component)
      : delimiter_(read_character(component, "delimiter")) {}
  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_pieces(pieces, SplitBehavior::kRemoved, false,
                 [this](std::string_view piece, std::vector<TextRange>& matches) {
                   find_literal(piece, delimiter_, matches);
                 });
  }

 private:
  const std::string delimiter_;
};

// Pieces of so many characters, from the start of each; the last has what is left.
class FixedLengthStep final : public PreTokenizer::Step {
 public:
  explicit FixedLengthStep(const JsonReader& component)
      : length_(component.integer_or("length", kDefaultLength)) {
    if (length_ < 1) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: expected 1 character or more, got {}",
                                                      component.path_of("length"), length_));
    }
  }
  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_pieces(pieces, SplitBehavior::kIsolated, false,
                 [this](std::string_view piece, std::vector<TextRange>& matches) {
                   for (size_t offset = 0; offset < piece.size();) {
                     const size_t begin = offset;
                     for (int64_t i = 0; i < length_ && offset < piece.size(); ++i) {
                       next_character(piece, offset);
                     }
                     matches.push_back({begin, offset});
                   }
                 });
  }

 private:
  static constexpr int64_t kDefaultLength = 5;

  const int64_t length_;
};

// Cuts where the script changes. What fits any stays with what is before it, and is lost where
// nothing is: so the library has it.
class UnicodeScriptsStep final : public PreTokenizer::Step {
 public:
  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_pieces(pieces, SplitBehavior::kRemoved, true,
                 [](std::string_view piece, std::vector<TextRange>& matches) {
                   int32_t last = 0;
                   for (size_t offset = 0; offset < piece.size();) {
                     const size_t begin = offset;
                     const ScriptRange* range =
                         find_range(script_ranges(), next_character(piece, offset));
                     if (range != nullptr && range->script != last) {
                       matches.push_back({begin, begin});
                       last = range->script;
                     }
                     if (!matches.empty()) matches.back().end = offset;
                   }
                 });
  }
};

class DigitsStep final : public PreTokenizer::Step {
 public:
  explicit DigitsStep(const JsonReader& component)
      : behavior_(component.boolean("individual_digits") ? SplitBehavior::kIsolated
                                                         : SplitBehavior::kContiguous) {}
  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_at_characters(pieces, behavior_, is_numeric);
  }

 private:
  const SplitBehavior behavior_;
};

class PunctuationStep final : public PreTokenizer::Step {
 public:
  explicit PunctuationStep(const JsonReader& component)
      : behavior_(read_split_behavior(component, SplitBehavior::kIsolated)) {}
  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_at_characters(pieces, behavior_, is_punctuation);
  }

 private:
  const SplitBehavior behavior_;
};

class BertStep final : public PreTokenizer::Step {
 public:
  void apply(Pieces& pieces, bool /*raw_bytes*/) const override {
    split_at_characters(pieces, SplitBehavior::kRemoved, is_white_space);
    split_at_characters(pieces, SplitBehavior::kIsolated, is_punctuation);
  }
};

using StepPointer = std::unique_ptr<PreTokenizer::Step>;

template <typename S>
StepPointer make_step(const JsonReader& component) {
  if constexpr (std::is_constructible_v<S, const JsonReader&>) {
    return std::make_unique<S>(component);
  } else {
    return std::make_unique<S>();
  }
}

struct StepRow {
  std::string_view type;
  StepPointer (*make)(const JsonReader& component);
};

constexpr StepRow kSteps[] = {
    {"ByteLevel", make_step<ByteLevelStep>},
    {"Split", make_step<SplitStep>},
    {"Metaspace", make_step<MetaspaceStep>},
    {"Whitespace", make_step<WhitespaceStep>},
    {"WhitespaceSplit", make_step<WhitespaceSplitStep>},
    {"CharDelimiterSplit", make_step<CharDelimiterStep>},
    {"FixedLength", make_step<FixedLengthStep>},
    {"UnicodeScripts", make_step<UnicodeScriptsStep>},
    {"Digits", make_step<DigitsStep>},
    {"Punctuation", make_step<PunctuationStep>},
    {"BertPreTokenizer", make_step<BertStep>},
};

constexpr std::string_view kKnown =
    "Sequence, ByteLevel, Split, Metaspace, Whitespace, WhitespaceSplit, CharDelimiterSplit, "
    "FixedLength, UnicodeScripts, Digits, Punctuation, BertPreTokenizer";

}  // namespace

PreTokenizer::PreTokenizer(const JsonReader& component) {
  add_component_steps(component, "pretokenizers", kSteps, kKnown, steps_);
}

Pieces PreTokenizer::apply(std::string text,
                           bool at_start,
                           bool raw_bytes,
                           Alignment* alignment) const {
  Pieces pieces{std::move(text), {}, at_start, false, alignment};
  if (pieces.text.empty()) return pieces;
  pieces.ranges.push_back({0, pieces.text.size()});
  for (const auto& step : steps_) step->apply(pieces, raw_bytes && &step == &steps_.back());
  return pieces;
}

}  // namespace tgi
