// From the syntax of a regular expression to its language. Assertions make this more than a fold:
// what may follow depends on what stands before, so every part is made a function from "what
// follows, by what was before it" to the same (translate()).
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/guide/regex_ast.h"
#include "engine/guide/regex_sets.h"

namespace tgi::guide {
namespace {

using Ast = RegexAst;

// What stands before a place in the text.
enum Before : size_t { kStart, kAfterWord, kAfterLineEnd, kAfterOther, kNumBefore };
// The texts that may follow a place.
using Follow = std::array<Regex, kNumBefore>;

constexpr int32_t kMaxUnrolled = 64;

bool same_after_any_character(const Follow& follow) {
  return follow[kAfterWord] == follow[kAfterLineEnd] && follow[kAfterWord] == follow[kAfterOther];
}

Follow everywhere(Regex language) {
  return {language, language, language, language};
}

class RegexBuilder {
 public:
  RegexBuilder(RegexPool& pool, std::string_view pattern, const Ast& ast)
      : pool_(pool), pattern_(pattern), ast_(ast) {
    const CodePoints word = word_characters();
    classes_[kAfterWord] = word;
    classes_[kAfterLineEnd] = ast.line_ends;
    CodePoints neither = word;
    for (const CodePointRange& range : ast.line_ends) neither.push_back(range);
    classes_[kAfterOther] = negate_code_points(normalize_code_points(neither));
  }

  Regex build(RegexUse use) {
    if (use == RegexUse::kWhole)
      return translate(ast_.root, everywhere(pool_.empty_text()))[kStart];
    const Follow found = translate(ast_.root, everywhere(pool_.any_text()));
    if (same_after_any_character(found)) {
      if (found[kStart] == found[kAfterOther])
        return pool_.concat({pool_.any_text(), found[kStart]});
      const Regex some_text = pool_.repeat(pool_.any_character(), 1, kUnbounded);
      return pool_.either({found[kStart], pool_.concat({some_text, found[kAfterOther]})});
    }
    return after_texts(pool_.any_text(), found)[kStart];
  }

 private:
  Follow translate(int32_t id, const Follow& follow) {
    // Repetitions within repetitions are translated many times, also where nothing new comes of it.
    constexpr size_t kSteps = 20;  // as long as these take elsewhere
    pool_.count_steps(kSteps);
    const Ast::Node& node = ast_.node(id);
    if (!node.has_assertion && node.kind != Ast::Kind::kCharacter && all_same(follow))
      return everywhere(pool_.concat({plain(id), follow[kStart]}));
    switch (node.kind) {
      case Ast::Kind::kCharacter:
        return translate_character(node.characters, follow);
      case Ast::Kind::kSequence: {
        Follow result = follow;
        for (size_t end = node.parts.size(); end > 0; --end)
          result = translate(node.parts[end - 1], result);
        return result;
      }
      case Ast::Kind::kEither: {
        std::array<std::vector<Regex>, kNumBefore> alternatives;
        for (const int32_t part : node.parts) {
          const Follow one = translate(part, follow);
          for (size_t before = 0; before < kNumBefore; ++before)
            alternatives[before].push_back(one[before]);
        }
        Follow result;
        for (size_t before = 0; before < kNumBefore; ++before)
          result[before] = pool_.either(alternatives[before]);
        return result;
      }
      case Ast::Kind::kRepeat:
        return translate_repeat(node, follow);
      default:
        return translate_assertion(node, follow);
    }
  }

  static bool all_same(const Follow& follow) {
    return same_after_any_character(follow) && follow[kStart] == follow[kAfterOther];
  }

  // REQUIRES: no assertions inside, but for anchors, which hold nowhere.
  Regex plain(int32_t id) {
    pool_.count_steps(1);
    const Ast::Node& node = ast_.node(id);
    if (node.kind == Ast::Kind::kTextStart || node.kind == Ast::Kind::kTextEnd)
      return pool_.nothing();
    std::vector<Regex> parts;
    for (const int32_t part : node.parts) parts.push_back(plain(part));
    switch (node.kind) {
      case Ast::Kind::kCharacter:
        return pool_.code_points(node.characters);
      case Ast::Kind::kSequence:
        return pool_.concat(parts);
      case Ast::Kind::kEither:
        return pool_.either(parts);
      default:
        return pool_.repeat(parts[0], node.min, node.max);
    }
  }

  Follow translate_character(const CodePoints& set, const Follow& follow) {
    if (same_after_any_character(follow))
      return everywhere(pool_.concat({pool_.code_points(set), follow[kAfterOther]}));
    std::vector<Regex> alternatives;
    for (size_t before = kAfterWord; before < kNumBefore; ++before) {
      const CodePoints part = intersect_code_points(set, classes_[before]);
      alternatives.push_back(pool_.concat({pool_.code_points(part), follow[before]}));
    }
    return everywhere(pool_.either(alternatives));
  }

  // Texts of `language`, divided by their last character, then what may follow that.
  Follow after_texts(Regex language, const Follow& follow) {
    std::vector<Regex> alternatives;
    for (size_t before = kAfterWord; before < kNumBefore; ++before) {
      const Regex ending = pool_.concat({pool_.any_text(), pool_.code_points(classes_[before])});
      alternatives.push_back(pool_.concat({pool_.both(language, ending), follow[before]}));
    }
    const Regex not_empty = pool_.either(alternatives);
    Follow result = everywhere(not_empty);
    if (!pool_.accepts_empty_text(language)) return result;
    for (size_t before = 0; before < kNumBefore; ++before)
      result[before] = pool_.either({follow[before], not_empty});
    return result;
  }

  Follow translate_repeat(const Ast::Node& node, const Follow& follow) {
    const int32_t body = node.parts[0];
    if (!ast_.node(body).has_assertion)
      return after_texts(pool_.repeat(plain(body), node.min, node.max), follow);
    if (node.max == kUnbounded && node.min <= kMaxUnrolled && has_only_anchors(body) &&
        same_after_any_character(follow)) {
      Follow result = translate_anchored_star(body, follow);
      for (int32_t i = 0; i < node.min; ++i) result = translate(body, result);
      return result;
    }
    if (node.max == kUnbounded) return translate_watched_star(node, follow);
    if (node.max > kMaxUnrolled) {
      refuse_regex(
          pattern_, node.place,
          "an assertion that is repeated more than " + std::to_string(kMaxUnrolled) + " times",
          true);
    }
    Follow result = follow;
    for (int32_t i = node.min; i < node.max; ++i) {
      const Follow more = translate(body, result);
      for (size_t before = 0; before < kNumBefore; ++before)
        result[before] = pool_.either({follow[before], more[before]});
    }
    for (int32_t i = 0; i < node.min; ++i) result = translate(body, result);
    return result;
  }

  bool has_only_anchors(int32_t id) const {
    const Ast::Node& node = ast_.node(id);
    if (node.kind == Ast::Kind::kTextStart || node.kind == Ast::Kind::kTextEnd) return true;
    if (node.kind >= Ast::Kind::kTextStart) return false;
    return !node.has_assertion ||
           std::ranges::all_of(node.parts, [this](int32_t part) { return has_only_anchors(part); });
  }

  // (x|^y|z$)*: in the middle of the text a round that needs one of its ends is none; what ends it
  // may be the last one, and what begins it the first.
  Follow translate_anchored_star(int32_t body, const Follow& follow) {
    const Regex after = follow[kAfterOther];
    const Regex last = pool_.accepts_empty_text(after)
                           ? translate(body, everywhere(pool_.empty_text()))[kAfterOther]
                           : pool_.nothing();
    const Regex rounds = pool_.repeat(plain(body), 0, kUnbounded);
    Follow result = everywhere(pool_.concat({rounds, pool_.either({after, last})}));
    // A first round without a character changes nothing.
    result[kStart] = follow[kStart];
    result[kStart] = pool_.either({follow[kStart], translate(body, result)[kStart]});
    return result;
  }

  // ((?!x)y)* at the end of the text, with y one character: all repetitions of y, but those in
  // which x begins at one of them.
  Follow translate_watched_star(const Ast::Node& node, const Follow& follow) {
    const Ast::Node& body = ast_.node(node.parts[0]);
    const bool fits = body.kind == Ast::Kind::kSequence && body.parts.size() == 2 &&
                      ast_.node(body.parts[1]).kind == Ast::Kind::kCharacter &&
                      (ast_.node(body.parts[0]).kind == Ast::Kind::kAhead ||
                       ast_.node(body.parts[0]).kind == Ast::Kind::kNotAhead) &&
                      all_same(follow) && follow[kStart] == pool_.empty_text();
    if (!fits) {
      refuse_regex(pattern_, node.place,
                   "an assertion inside an unbounded repetition, other than ^, $ and ((?!...).)*$",
                   true);
    }
    const Ast::Node& ahead = ast_.node(body.parts[0]);
    const Follow watched = translate(ahead.parts[0], everywhere(pool_.any_text()));
    if (!all_same(watched)) {
      refuse_regex(pattern_, ahead.place,
                   "an assertion inside an assertion that is repeated without bound", true);
    }
    const Regex broken =
        ahead.kind == Ast::Kind::kNotAhead ? watched[kStart] : pool_.complement(watched[kStart]);
    const Regex one = plain(body.parts[1]);
    const Regex bad = pool_.concat(
        {pool_.repeat(one, 0, kUnbounded), pool_.both(broken, pool_.repeat(one, 1, kUnbounded))});
    return everywhere(pool_.without(pool_.repeat(one, node.min, node.max), bad));
  }

  Follow translate_assertion(const Ast::Node& node, const Follow& follow) {
    const Regex end = pool_.empty_text();
    const auto then = [&](const CodePoints& set) {
      return pool_.concat({pool_.code_points(set), pool_.any_text()});
    };
    Follow result = follow;
    const auto restrict = [&](size_t before, Regex to) {
      result[before] = pool_.both(follow[before], to);
    };
    switch (node.kind) {
      case Ast::Kind::kTextStart:
      case Ast::Kind::kLineStart:
        for (size_t before = kAfterWord; before < kNumBefore; ++before) {
          if (node.kind == Ast::Kind::kTextStart || before != kAfterLineEnd)
            result[before] = pool_.nothing();
        }
        break;
      case Ast::Kind::kTextEnd:
        for (size_t before = 0; before < kNumBefore; ++before) restrict(before, end);
        break;
      case Ast::Kind::kLineEnd:
        for (size_t before = 0; before < kNumBefore; ++before)
          restrict(before, pool_.either({end, then(classes_[kAfterLineEnd])}));
        break;
      case Ast::Kind::kWordBorder:
      case Ast::Kind::kNoWordBorder:
        for (size_t before = 0; before < kNumBefore; ++before) {
          const bool wants_word = (before == kAfterWord) == (node.kind == Ast::Kind::kNoWordBorder);
          const Regex word = then(classes_[kAfterWord]);
          restrict(before, wants_word ? word : pool_.complement(word));
        }
        break;
      default: {
        const Follow ahead = translate(node.parts[0], everywhere(pool_.any_text()));
        for (size_t before = 0; before < kNumBefore; ++before) {
          restrict(before, node.kind == Ast::Kind::kAhead ? ahead[before]
                                                          : pool_.complement(ahead[before]));
        }
      }
    }
    return result;
  }

  RegexPool& pool_;
  std::string_view pattern_;
  const Ast& ast_;
  std::array<CodePoints, kNumBefore> classes_;
};

}  // namespace

void refuse_regex(std::string_view pattern, size_t place, std::string_view what, bool unsupported) {
  constexpr size_t kShown = 24;
  place = std::min(place, pattern.size());
  std::string_view rest = pattern.substr(place);
  bool cut = false;
  if (rest.size() > kShown) {
    rest = rest.substr(0, character_begin(rest, kShown));
    cut = true;
  }
  const std::string where =
      rest.empty() ? "at the end of the pattern"
                   : "in the pattern at character " +
                         std::to_string(count_utf8_characters(pattern.substr(0, place)) + 1) +
                         ", \"" + std::string(rest) + (cut ? "...\"" : "\"");
  throw Error(unsupported ? Code::kUnsupported : Code::kInvalidArgument,
              where + ": " + std::string(what) + (unsupported ? " can't be enforced" : ""));
}

Regex parse_regex(RegexPool& pool, std::string_view pattern, RegexUse use, RegexSyntax syntax) {
  const RegexAst ast = parse_regex_syntax(pattern, syntax);
  return RegexBuilder(pool, pattern, ast).build(use);
}

}  // namespace tgi::guide
