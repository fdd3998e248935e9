#include "tests/dialect/taken.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/guide/matcher.h"
#include "tests/dialect/spoken.h"

namespace tgi::dialect {

std::shared_ptr<const guide::Vocabulary> vocabulary() {
  static const std::shared_ptr<const guide::Vocabulary> kVocabulary = [] {
    std::vector<guide::Vocabulary::Token> tokens;
    for (int32_t byte = 0; byte < kAnswerEnd; ++byte) {
      tokens.push_back({std::string(1, static_cast<char>(byte)), ""});
    }
    tokens.push_back({"", "<|end_of_answer|>"});
    std::set<std::string> names;
    const auto add = [&](std::string_view mark) {
      for (const MarkPiece& piece : pieces_of(mark, is_usual_special)) {
        if (piece.is_special) names.insert(piece.text);
      }
    };
    const auto add_all = [&](const CallSyntax& syntax) {
      for (const CallParts* parts : {&syntax.begin, &syntax.call, &syntax.separator, &syntax.end}) {
        for (const CallPart& part : *parts) {
          for (const std::string_view mark : {part.text, part.open, part.middle,
                                              part.middle_of_json, part.value_open, part.close}) {
            add(mark);
          }
        }
      }
    };
    for (const ToolDialect* const each : tool_dialects()) {
      add_all(each->syntax);
      for (const CallSyntax& also : each->also) add_all(also);
    }
    for (const ReasoningDialect* const each : reasoning_dialects()) {
      for (const std::string_view mark : {each->begin, each->end, each->after, each->before_text}) {
        add(mark);
      }
      for (const std::string_view mark : each->dropped) add(mark);
    }
    for (const std::string& name : names) tokens.push_back({"", name});
    return std::make_shared<const guide::Vocabulary>(std::move(tokens), std::vector{kAnswerEnd});
  }();
  return kVocabulary;
}

std::shared_ptr<const guide::CompiledGrammar> compiled(const AnswerForm& form) {
  guide::Grammar grammar;
  grammar.set_start(add_answer(grammar, form, is_usual_special));
  return compile_grammar(grammar);
}

namespace {

// How many bytes of the text the grammar takes; one more when it may end there.
size_t num_taken(const std::shared_ptr<const guide::CompiledGrammar>& grammar,
                 std::string_view text) {
  guide::Matcher matcher(grammar, vocabulary());
  size_t taken = 0;
  for (const MarkPiece& piece : pieces_of(text, is_usual_special)) {
    if (piece.is_special) {
      const std::optional<int32_t> id = vocabulary()->special_id(piece.text);
      if (!id || !matcher.accept(*id)) return taken;
      taken += piece.text.size();
      continue;
    }
    for (const char c : piece.text) {
      if (!matcher.accept(static_cast<unsigned char>(c))) return taken;
      ++taken;
    }
  }
  return matcher.can_end() ? taken + 1 : taken;
}

}  // namespace

bool takes(const std::shared_ptr<const guide::CompiledGrammar>& grammar, std::string_view text) {
  return num_taken(grammar, text) == text.size() + 1;
}

std::string random_answer(const std::shared_ptr<const guide::CompiledGrammar>& grammar,
                          std::mt19937& random) {
  guide::Matcher matcher(grammar, vocabulary());
  std::vector<uint32_t> mask(static_cast<size_t>(vocabulary()->size() + 31) / 32);
  std::string out;
  for (int64_t left = 300;; --left) {
    matcher.fill_mask(mask, left);
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < vocabulary()->size(); ++id) {
      if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) allowed.push_back(id);
    }
    if (allowed.empty()) throw Error(Code::kInternal, "nothing can follow: " + out);
    if (matcher.can_end() && (left <= 0 || random() % 8 == 0)) return out;
    std::erase(allowed, kAnswerEnd);
    if (allowed.empty()) return out;
    const int32_t id = allowed[random() % allowed.size()];
    if (!matcher.accept(id)) throw Error(Code::kInternal, "an allowed token is refused: " + out);
    out += id < kAnswerEnd ? std::string(vocabulary()->bytes(id))
                           : std::string(vocabulary()->special_name(id));
  }
}

const OrderedJson& book_tools() {
  static const OrderedJson kTools = OrderedJson::parse(R"json([
    {"type": "function", "function": {"name": "book", "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "nights": {"type": "integer"}, "kind": {"enum": ["room", "a \"suite\""], "type": "string"},
      "guests": {"type": "array", "items": {"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}},
      "late": {"type": "boolean"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
      "required": ["city", "nights"]}}},
    {"type": "function", "function": {"name": "book_all", "parameters": {"type": "object", "properties": {
      "price": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}}}}}},
    {"type": "function", "function": {"name": "ping"}}])json");
  return kTools;
}

}  // namespace tgi::dialect
