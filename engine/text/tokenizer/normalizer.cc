#include "engine/text/tokenizer/normalizer.h"

#include <algorithm>
#include <functional>

#include "base/utf8.h"
#include "engine/text/tokenizer/byte_level.h"
#include "engine/text/tokenizer/component_list.h"
#include "engine/text/tokenizer/precompiled_normalizer.h"
#include "engine/text/tokenizer/split.h"
#include "engine/text/unicode/unicode.h"

namespace tgi {
namespace {

class PrependStep final : public Normalizer::Step {
 public:
  explicit PrependStep(const JsonReader& component) : prefix_(component.string("prepend")) {}
  void apply(std::string& text, bool& /*at_start*/, Alignment* alignment) const override {
    if (text.empty()) return;
    AlignmentWriter places(alignment);
    places.place(0, prefix_.size());
    places.copy(0, text.size());
    places.finish();
    text.insert(0, prefix_);
  }

 private:
  const std::string prefix_;
};

class ReplaceStep final : public Normalizer::Step {
 public:
  explicit ReplaceStep(const JsonReader& component)
      : pattern_(component), content_(component.string("content")) {}

  void apply(std::string& text, bool& at_start, Alignment* alignment) const override {
    if (text.empty()) return;
    std::vector<TextRange> matches;
    pattern_.find_all(text, matches);
    if (matches.empty()) return;
    // What replaces several characters counts as being where the last of them was.
    const TextRange& first = matches.front();
    if (first.begin == 0 && first.size() != 0 &&
        (content_.empty() || first.size() > utf8_size(text[0]))) {
      at_start = false;
    }
    std::string replaced;
    replaced.reserve(text.size() + matches.size() * content_.size());
    AlignmentWriter places(alignment);
    size_t end = 0;
    for (const TextRange& match : matches) {
      replaced.append(text, end, match.begin - end);
      places.copy(end, match.begin - end);
      replaced += content_;
      // Its place is that of the last byte replaced, or of what stands before an empty match.
      places.place(match.end - 1, content_.size());
      end = match.end;
    }
    replaced.append(text, end);
    places.copy(end, text.size() - end);
    places.finish();
    text = std::move(replaced);
  }

 private:
  const Pattern pattern_;
  const std::string content_;
};

class NormalFormStep final : public Normalizer::Step {
 public:
  explicit NormalFormStep(NormalForm form) : form_(form) {}
  void apply(std::string& text, bool& /*at_start*/, Alignment* alignment) const override {
    if (alignment == nullptr) {
      text = normalize(text, form_);
      return;
    }
    Changes changes;
    std::string normal = normalize_counting(text, form_, changes);
    align_changes(text, normal, changes, *alignment);
    text = std::move(normal);
  }

 private:
  const NormalForm form_;
};

class LowercaseStep final : public Normalizer::Step {
 public:
  void apply(std::string& text, bool& /*at_start*/, Alignment* alignment) const override {
    std::string lower;
    lower.reserve(text.size());
    AlignmentWriter places(alignment);
    for (size_t offset = 0; offset < text.size();) {
      const size_t begin = offset;
      const size_t before = lower.size();
      append_lowercase(next_character(text, offset), lower);
      places.place(begin, lower.size() - before);
    }
    places.finish();
    text = std::move(lower);
  }
};

class StripStep final : public Normalizer::Step {
 public:
  explicit StripStep(const JsonReader& component)
      : left_(component.boolean("strip_left")), right_(component.boolean("strip_right")) {}

  void apply(std::string& text, bool& at_start, Alignment* alignment) const override {
    size_t begin = 0;
    while (left_ && begin < text.size()) {
      size_t next = begin;
      if (!is_white_space(next_character(text, next))) break;
      begin = next;
    }
    size_t end = text.size();
    while (right_ && end > begin) {
      const size_t last = character_begin(text, end - 1);
      size_t offset = last;
      if (!is_white_space(next_character(text, offset))) break;
      end = last;
    }
    if (begin != 0) at_start = false;
    AlignmentWriter places(alignment);
    places.copy(begin, end - begin);
    places.finish();
    text = text.substr(begin, end - begin);
  }

 private:
  const bool left_;
  const bool right_;
};

// Takes the characters away that `keep` refuses, and writes `map` of the others.
template <typename Keep, typename Map>
void filter_characters(
    std::string& text, bool& at_start, Alignment* alignment, const Keep& keep, const Map& map) {
  std::string kept;
  kept.reserve(text.size());
  AlignmentWriter places(alignment);
  for (size_t offset = 0; offset < text.size();) {
    const size_t begin = offset;
    const char32_t character = next_character(text, offset);
    if (!keep(character)) {
      if (begin == 0) at_start = false;
      continue;
    }
    const size_t before = kept.size();
    append_utf8(map(character), kept);
    places.place(begin, kept.size() - before);
  }
  places.finish();
  text = std::move(kept);
}

constexpr auto kSame = [](char32_t character) { return character; };

class StripAccentsStep final : public Normalizer::Step {
 public:
  void apply(std::string& text, bool& at_start, Alignment* alignment) const override {
    filter_characters(text, at_start, alignment, std::not_fn(is_combining_mark), kSame);
  }
};

// sentencepiece's rules for translation: no control characters, spaces of all kinds are one.
class NmtStep final : public Normalizer::Step {
 public:
  void apply(std::string& text, bool& at_start, Alignment* alignment) const override {
    const auto keep = [](char32_t c) {
      const bool removed = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                           c == 0x7F || c == 0x8F || c == 0x9F;
      return !removed;
    };
    const auto map = [](char32_t c) {
      const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                         c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      return space ? U' ' : c;
    };
    filter_characters(text, at_start, alignment, keep, map);
  }
};

// BERT's (github.com/google-research/bert, tokenization.py), with the library's categories.
class BertStep final : public Normalizer::Step {
 public:
  explicit BertStep(const JsonReader& component)
      : clean_text_(component.boolean("clean_text")),
        handle_chinese_chars_(component.boolean("handle_chinese_chars")),
        lowercase_(component.boolean("lowercase")),
        strip_accents_(component.boolean_or("strip_accents", lowercase_)) {
    component.refuse_unknown(
        {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  }

  void apply(std::string& text, bool& at_start, Alignment* alignment) const override {
    if (clean_text_) {
      const auto keep = [](char32_t c) { return c != 0 && c != 0xFFFD && !is_control(c); };
      const auto map = [](char32_t c) { return is_white_space(c) ? U' ' : c; };
      filter_characters(text, at_start, alignment, keep, map);
    }
    if (handle_chinese_chars_) put_spaces_around_chinese(text, alignment);
    if (strip_accents_) {
      decompose_.apply(text, at_start, alignment);
      filter_characters(text, at_start, alignment, std::not_fn(is_nonspacing_mark), kSame);
    }
    if (lowercase_) lower_.apply(text, at_start, alignment);
  }

 private:
  // Not all of Han: the blocks that BERT's authors list.
  static bool is_chinese(char32_t c) {
    return (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0x2F800 && c <= 0x2FA1F);
  }

  static void put_spaces_around_chinese(std::string& text, Alignment* alignment) {
    std::string spaced;
    spaced.reserve(text.size());
    AlignmentWriter places(alignment);
    for (size_t offset = 0; offset < text.size();) {
      const size_t begin = offset;
      const bool chinese = is_chinese(next_character(text, offset));
      if (chinese) spaced += ' ';
      spaced.append(text, begin, offset - begin);
      if (chinese) spaced += ' ';
      places.place(begin, offset - begin + (chinese ? 2 : 0));
    }
    places.finish();
    text = std::move(spaced);
  }

  const bool clean_text_;
  const bool handle_chinese_chars_;
  const bool lowercase_;
  const bool strip_accents_;
  const NormalFormStep decompose_{NormalForm::kNfd};
  const LowercaseStep lower_;
};

class ByteLevelStep final : public Normalizer::Step {
 public:
  void apply(std::string& text, bool& /*at_start*/, Alignment* alignment) const override {
    AlignmentWriter places(alignment);
    for (size_t at = 0; at < text.size(); ++at) places.place(at, byte_level_size(text[at]));
    places.finish();
    text = to_byte_level(text);
  }
};

using StepPointer = std::unique_ptr<Normalizer::Step>;

template <NormalForm form>
StepPointer make_normal_form(const JsonReader& /*component*/) {
  return std::make_unique<NormalFormStep>(form);
}

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
    {"Prepend", make_step<PrependStep>},
    {"Replace", make_step<ReplaceStep>},
    {"NFC", make_normal_form<NormalForm::kNfc>},
    {"NFD", make_normal_form<NormalForm::kNfd>},
    {"NFKC", make_normal_form<NormalForm::kNfkc>},
    {"NFKD", make_normal_form<NormalForm::kNfkd>},
    {"Lowercase", make_step<LowercaseStep>},
    {"Strip", make_step<StripStep>},
    {"StripAccents", make_step<StripAccentsStep>},
    {"ByteLevel", make_step<ByteLevelStep>},
    {"Nmt", make_step<NmtStep>},
    {"BertNormalizer", make_step<BertStep>},
    {"Precompiled", make_precompiled_step},
};

constexpr std::string_view kKnown =
    "Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, ByteLevel, "
    "Nmt, BertNormalizer, Precompiled";

}  // namespace

Normalizer::Normalizer(const JsonReader& component) {
  add_component_steps(component, "normalizers", kSteps, kKnown, steps_);
}

void Normalizer::apply(std::string& text, bool& at_start, Alignment* alignment) const {
  for (const auto& step : steps_) step->apply(text, at_start, alignment);
}

}  // namespace tgi
