#include "engine/dialect/answer_grammar.h"

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "engine/dialect/arguments_grammar.h"
#include "engine/dialect/listed_arguments.h"
#include "engine/guide/regex.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;
using guide::Regex;

std::string json_string(std::string_view text) {
  std::string out;
  JsonText(out).string(text);
  return out;
}

class AnswerGrammar {
 public:
  AnswerGrammar(Grammar& grammar, const AnswerForm& form, const IsSpecialToken& is_special)
      : grammar_(grammar), form_(form), is_special_(is_special) {}

  Expr answer() {
    using Reasoning = AnswerForm::Reasoning;
    const ReasoningDialect* const how = form_.dialects.reasoning;
    const bool reasons = how != nullptr && form_.reasoning != Reasoning::kNone;
    const bool reasons_again = reasons && how->is_anywhere;
    Expr rest = body();
    if (reasons_again || has_preambles()) {
      const guide::Rule again = grammar_.declare("answer after a message");
      std::vector<Expr> forms = {rest};
      if (reasons_again) forms.push_back(reasoning(*how, grammar_.call(again)));
      if (has_preambles()) forms.push_back(preamble(*how, grammar_.call(again)));
      grammar_.define(again, grammar_.either(forms));
      rest = grammar_.call(again);
    }
    if (!reasons) return rest;
    if (form_.reasoning == Reasoning::kBegun) return begun_reasoning(*how, rest);
    return reasons_again ? rest : grammar_.either({rest, reasoning(*how, rest)});
  }

 private:
  Expr mark(std::string_view text) { return written_mark(grammar_, text, is_special_); }
  Expr space() { return optional_space(grammar_); }

  Expr reasoning(const ReasoningDialect& how, Expr rest) {
    return grammar_.sequence({space(), one_of(how.begins()), begun_reasoning(how, rest)});
  }

  // Nothing is said before what has a form of its own, or before a call that is asked for.
  bool has_preambles() const {
    const ReasoningDialect* const how = form_.dialects.reasoning;
    return how != nullptr && !how->before_preamble.empty() && form_.marks_text && !form_.text &&
           !form_.tools.must_call;
  }

  Expr preamble(const ReasoningDialect& how, Expr rest) {
    return grammar_.sequence({space(), mark(how.before_preamble), begun_reasoning(how, rest)});
  }

  // `rest`: of the answer, behind the reasoning's end. Calls that end it are all of the rest.
  Expr begun_reasoning(const ReasoningDialect& how, Expr rest) {
    const Expr thought = text_without(grammar_, how.ends(), is_special_);
    Expr end = grammar_.sequence({one_of(how.ends()), mark(how.after), space(), rest});
    if (calls_end_reasoning()) end = grammar_.either({end, calls()});
    return grammar_.sequence({thought, end});
  }

  bool calls_end_reasoning() const {
    if (form_.tools.tools.empty() || !form_.dialects.tools->ends_reasoning) return false;
    const CallSyntax& syntax = form_.dialects.tools->syntax;
    return syntax.place == CallPlace::kBehindText &&
           pieces_of(opening_mark(syntax), is_special_).front().is_special;
  }

  Expr one_of(const std::vector<std::string_view>& marks) {
    std::vector<Expr> out;
    for (const std::string_view each : marks) out.push_back(mark(each));
    return grammar_.either(out);
  }

  Expr body() {
    const ToolUse& tools = form_.tools;
    if (tools.tools.empty()) return text(/*before_calls=*/false);
    const CallSyntax& syntax = form_.dialects.tools->syntax;
    const Expr called = calls();
    if (tools.must_call) return grammar_.sequence({space(), called});
    if (syntax.place == CallPlace::kBehindText && !form_.text) {
      return grammar_.sequence({text(/*before_calls=*/true), grammar_.optional(called)});
    }
    Expr said = text(/*before_calls=*/false);
    if (syntax.place == CallPlace::kMessages && !form_.text) {
      said = grammar_.sequence({said, grammar_.optional(calls_behind(syntax, syntax.separator))});
    }
    return grammar_.either({said, grammar_.sequence({space(), called})});
  }

  Expr text(bool before_calls) {
    const Expr words = form_.text ? grammar_.call(*form_.text) : free_text(before_calls);
    return form_.marks_text ? grammar_.sequence({mark(form_.dialects.before_text()), words})
                            : words;
  }

  // Where tools may be called, what looks like the beginning of a call is one.
  Expr free_text(bool before_calls) {
    guide::RegexPool& pool = grammar_.regex();
    if (form_.tools.tools.empty()) return grammar_.terminal(pool.any_text());
    const CallSyntax& syntax = form_.dialects.tools->syntax;
    if (before_calls || !is_unmarked(syntax.place)) {
      std::vector<std::string_view> marks;
      for (const CallSyntax* const each : taken_syntaxes()) marks.push_back(opening_mark(*each));
      return with_silent_marks(text_without(grammar_, marks, is_special_));
    }
    const Regex any = pool.any_text();
    const Regex begin = opening({&syntax.begin, &syntax.call});
    Regex words = pool.without(any, pool.concat({space_regex(), begin, any}));
    if (syntax.place == CallPlace::kWholeAnswer) return grammar_.terminal(words);
    const Regex behind = opening({&syntax.separator, &syntax.call});
    words = pool.without(words, pool.concat({any, behind, any}));
    return with_silent_marks(grammar_.terminal(words));
  }

  Expr with_silent_marks(Expr words) {
    const Expr more = grammar_.sequence({silent_marks(), words});
    return grammar_.sequence({words, grammar_.repeat(more, 0, guide::kUnbounded)});
  }

  // Special tokens that models write around their texts and that nobody is told of.
  Expr silent_marks() {
    std::vector<Expr> out = {grammar_.nothing()};
    for (const std::string_view silent : form_.dialects.dropped()) {
      if (pieces_of(silent, is_special_).front().is_special) out.push_back(mark(silent));
    }
    return grammar_.either(out);
  }

  static std::string_view opening_mark(const CallSyntax& syntax) {
    for (const CallParts* parts : {&syntax.begin, &syntax.call}) {
      for (const CallPart& part : *parts) {
        if (part.kind == CallPart::Kind::kMark && !part.may_miss) return part.text;
      }
    }
    return "";
  }

  Regex space_regex() {
    return parse_regex(grammar_.regex(), "[ \\n\\r\\t]*", guide::RegexUse::kWhole);
  }

  Regex names(bool quoted) {
    std::vector<Regex> out;
    for (const Tool& tool : form_.tools.tools) {
      out.push_back(grammar_.regex().literal(quoted ? json_string(tool.name) : tool.name));
    }
    return grammar_.regex().either(out);
  }

  // By which a call that nothing marks is known: all that is written before its arguments.
  Regex opening(std::initializer_list<const CallParts*> list) {
    guide::RegexPool& pool = grammar_.regex();
    Regex out = pool.empty_text();
    for (const CallParts* parts : list) {
      for (const CallPart& part : *parts) {
        switch (part.kind) {
          case CallPart::Kind::kMark:
            if (!part.may_miss) out = pool.concat({out, pool.literal(part.text)});
            break;
          case CallPart::Kind::kGap:
            out = pool.concat({out, space_regex()});
            break;
          case CallPart::Kind::kName:
            out = pool.concat({out, names(false)});
            break;
          case CallPart::Kind::kObject:
            return pool.concat({out, pool.literal("{"), space_regex(),
                                pool.literal(json_string(part.name_key)), space_regex(),
                                pool.literal(":"), space_regex(), names(true)});
          case CallPart::Kind::kNone:
            break;
          default:
            return out;
        }
      }
    }
    return out;
  }

  Expr calls() {
    if (!calls_) {
      calls_ = grammar_.declare("calls of tools");
      std::vector<Expr> ways;
      for (const CallSyntax* const each : taken_syntaxes()) {
        ways.push_back(calls_behind(*each, each->begin));
      }
      grammar_.define(*calls_, grammar_.either(ways));
    }
    return grammar_.call(*calls_);
  }

  // The ways to write calls that the grammar takes.
  std::vector<const CallSyntax*> taken_syntaxes() const {
    const ToolDialect& dialect = *form_.dialects.tools;
    std::vector<const CallSyntax*> out = {&dialect.syntax};
    for (const CallSyntax& also : dialect.also) {
      if (also.is_taken) out.push_back(&also);
    }
    return out;
  }

  // `begin`: what stands before the first. White space behind the last is nobody's: it would else
  // ask for another one where nothing ends the calls. What has an end is over there.
  Expr calls_behind(const CallSyntax& syntax, const CallParts& begin) {
    const Expr one = call(syntax);
    const Expr more = grammar_.sequence({parts(syntax.separator, nullptr), one});
    const bool several = form_.tools.several && syntax.several;
    const bool has_end = !several || syntax.end.front().kind != CallPart::Kind::kNone;
    return grammar_.sequence({parts(begin, nullptr), one,
                              grammar_.repeat(more, 0, several ? guide::kUnbounded : 0),
                              has_end ? parts(syntax.end, nullptr) : space()});
  }

  Expr call(const CallSyntax& syntax) {
    const auto [place, is_new] = call_.try_emplace(&syntax, guide::Rule{});
    if (is_new) {
      place->second = grammar_.declare("call of a tool");
      std::vector<Expr> each;
      for (const Tool& tool : form_.tools.tools) each.push_back(parts(syntax.call, &tool));
      grammar_.define(place->second, grammar_.either(each));
    }
    return grammar_.call(place->second);
  }

  Expr parts(const CallParts& list, const Tool* tool) {
    std::vector<Expr> out;
    for (const CallPart& part : list) {
      switch (part.kind) {
        case CallPart::Kind::kMark:
          out.push_back(part.may_miss ? grammar_.optional(mark(part.text)) : mark(part.text));
          break;
        case CallPart::Kind::kId:
          out.push_back(id(part));
          break;
        case CallPart::Kind::kGap:
          out.push_back(part.text.empty() ? space() : grammar_.text(part.text));
          break;
        case CallPart::Kind::kName:
          out.push_back(grammar_.text(tool->name));
          break;
        case CallPart::Kind::kNumber:
          out.push_back(number());
          break;
        case CallPart::Kind::kArguments:
          out.push_back(json_arguments(grammar_, *tool));
          break;
        case CallPart::Kind::kObject:
          out.push_back(object(part, *tool));
          break;
        case CallPart::Kind::kParameters:
          out.push_back(
              parameter_arguments(grammar_, with_listed_arguments(*tool), part, is_special_));
          break;
        case CallPart::Kind::kKeywords:
          out.push_back(keyword_arguments(grammar_, with_listed_arguments(*tool), part));
          break;
        case CallPart::Kind::kEntries:
          out.push_back(entry_arguments(grammar_, with_listed_arguments(*tool), part, is_special_));
          break;
        case CallPart::Kind::kElements:
          out.push_back(
              element_arguments(grammar_, with_listed_arguments(*tool), part, is_special_));
          break;
        case CallPart::Kind::kNone:
          break;
      }
    }
    return grammar_.sequence(out);
  }

  Expr number() {
    return grammar_.terminal(
        parse_regex(grammar_.regex(), "0|[1-9][0-9]{0,3}", guide::RegexUse::kWhole));
  }

  Expr id(const CallPart& part) {
    const Expr letters = grammar_.terminal(
        parse_regex(grammar_.regex(), "[a-zA-Z0-9_-]{1,40}", guide::RegexUse::kWhole));
    if (part.text.empty()) return letters;
    return grammar_.optional(grammar_.sequence({mark(part.text), letters}));
  }

  Expr object(const CallPart& part, const Tool& tool) {
    std::vector<Expr> out = {grammar_.text("{")};
    const auto member = [&](std::string_view key, Expr value, bool is_last) {
      out.insert(out.end(), {space(), grammar_.text(json_string(key)), space(), grammar_.text(":"),
                             space(), value, space()});
      out.push_back(grammar_.text(is_last ? "}" : ","));
    };
    if (!part.id_key.empty()) {
      member(part.id_key, grammar_.sequence({grammar_.text("\""), number(), grammar_.text("\"")}),
             false);
    }
    member(part.name_key, grammar_.text(json_string(tool.name)), false);
    member(part.arguments_key, json_arguments(grammar_, tool), true);
    return grammar_.sequence(out);
  }

  Grammar& grammar_;
  const AnswerForm& form_;
  const IsSpecialToken& is_special_;
  std::map<const CallSyntax*, guide::Rule> call_;
  std::optional<guide::Rule> calls_;
};

}  // namespace

guide::Rule add_answer(Grammar& grammar, const AnswerForm& form, const IsSpecialToken& is_special) {
  const guide::Rule rule = grammar.declare("answer");
  grammar.define(rule, AnswerGrammar(grammar, form, is_special).answer());
  return rule;
}

}  // namespace tgi::dialect
