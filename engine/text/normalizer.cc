#include "engine/text/normalizer.h"

#include "engine/text/byte_level.h"
#include "engine/text/component_list.h"
#include "engine/text/split.h"
#include "engine/text/unicode.h"

namespace tgi {
namespace {

class PrependStep final : public Normalizer::Step {
 public:
  explicit PrependStep(const JsonReader& component) : prefix_(component.string("prepend")) {}
  void apply(std::string& text, bool& /*at_start*/) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  const std::string prefix_;
};

class ReplaceStep final : public Normalizer::Step {
 public:
  explicit ReplaceStep(const JsonReader& component)
      : pattern_(component), content_(component.string("content")) {}

  void apply(std::string& text, bool& at_start) const override {
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
    size_t end = 0;
    for (const TextRange& match : matches) {
      replaced.append(text, end, match.begin - end);
      replaced += content_;
      end = match.end;
    }
    replaced.append(text, end);
    text = std::move(replaced);
  }

 private:
  const Pattern pattern_;
  const std::string content_;
};

class NormalFormStep final : public Normalizer::Step {
 public:
  explicit NormalFormStep(NormalForm form) : form_(form) {}
  void apply(std::string& text, bool& /*at_start*/) const override {
    text = normalize(text, form_);
  }

 private:
  const NormalForm form_;
};

class LowercaseStep final : public Normalizer::Step {
 public:
  void apply(std::string& text, bool& /*at_start*/) const override {
    std::string lower;
    lower.reserve(text.size());
    for (size_t offset = 0; offset < text.size();) {
      append_lowercase(next_character(text, offset), lower);
    }
    text = std::move(lower);
  }
};

class StripStep final : public Normalizer::Step {
 public:
  explicit StripStep(const JsonReader& component)
      : left_(component.boolean("strip_left")), right_(component.boolean("strip_right")) {}

  void apply(std::string& text, bool& at_start) const override {
    size_t begin = 0;
    while (left_ && begin < text.size()) {
      size_t next = begin;
      if (!is_white_space(next_character(text, next))) break;
      begin = next;
    }
    size_t end = text.size();
    while (right_ && end > begin) {
      size_t last = end - 1;
      while ((text[last] & 0xC0) == 0x80) --last;
      size_t offset = last;
      if (!is_white_space(next_character(text, offset))) break;
      end = last;
    }
    if (begin != 0) at_start = false;
    text = text.substr(begin, end - begin);
  }

 private:
  const bool left_;
  const bool right_;
};

class StripAccentsStep final : public Normalizer::Step {
 public:
  void apply(std::string& text, bool& at_start) const override {
    std::string kept;
    kept.reserve(text.size());
    for (size_t offset = 0; offset < text.size();) {
      const size_t begin = offset;
      if (!is_combining_mark(next_character(text, offset))) {
        kept.append(text, begin, offset - begin);
      } else if (begin == 0) {
        at_start = false;
      }
    }
    text = std::move(kept);
  }
};

class ByteLevelStep final : public Normalizer::Step {
 public:
  void apply(std::string& text, bool& /*at_start*/) const override { text = to_byte_level(text); }
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
    {"Prepend", make_step<PrependStep>},           {"Replace", make_step<ReplaceStep>},
    {"NFC", make_normal_form<NormalForm::kNfc>},   {"NFD", make_normal_form<NormalForm::kNfd>},
    {"NFKC", make_normal_form<NormalForm::kNfkc>}, {"NFKD", make_normal_form<NormalForm::kNfkd>},
    {"Lowercase", make_step<LowercaseStep>},       {"Strip", make_step<StripStep>},
    {"StripAccents", make_step<StripAccentsStep>}, {"ByteLevel", make_step<ByteLevelStep>},
};

constexpr std::string_view kKnown =
    "Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, ByteLevel";

}  // namespace

Normalizer::Normalizer(const JsonReader& component) {
  add(component, 0);
}

void Normalizer::add(const JsonReader& component, int depth) {
  check_component_depth(component, depth);
  const std::string type = component.string("type");
  if (type == "Sequence") {
    for (const JsonReader& member : component_list(component, "normalizers")) {
      add(member, depth + 1);
    }
    return;
  }
  for (const StepRow& row : kSteps) {
    if (row.type != type) continue;
    steps_.push_back(row.make(component));
    return;
  }
  fail_unknown_type(component, type, kKnown);
}

void Normalizer::apply(std::string& text, bool& at_start) const {
  for (const auto& step : steps_) step->apply(text, at_start);
}

}  // namespace tgi
