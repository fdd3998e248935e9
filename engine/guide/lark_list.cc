#include "engine/guide/lark_list.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/bounded_json.h"
#include "base/error.h"
#include "base/json_syntax.h"

namespace tgi::guide {

using nlohmann::ordered_json;

namespace {

constexpr int kMaxListNesting = 128;

[[noreturn]] void refuse_list(const std::string& what, Code code = Code::kInvalidArgument) {
  throw Error(code, "the list of grammars: " + what);
}

void check_fields(const ordered_json& object,
                  const std::string& where,
                  std::initializer_list<std::string_view> known) {
  if (!object.is_object()) refuse_list(where + " is not an object");
  std::string names;
  for (const std::string_view name : known)
    names += (names.empty() ? "" : ", ") + std::string(name);
  for (const auto& [name, value] : object.items()) {
    if (value.is_null() || std::ranges::find(known, name) != known.end()) continue;
    refuse_list("the field \"" + name + "\" of " + where + " isn't supported; it has " + names,
                Code::kUnsupported);
  }
}

const ordered_json* member_of_list(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

ListedGrammar read_listed(const ordered_json& json, size_t index) {
  const std::string where = "grammar " + std::to_string(index);
  check_fields(json, where, {"name", "lark_grammar", "json_schema"});
  ListedGrammar grammar;
  if (const ordered_json* name = member_of_list(json, "name")) {
    if (!name->is_string()) refuse_list("the name of " + where + " is not a string");
    grammar.name = name->get<std::string>();
  }
  const ordered_json* const lark = member_of_list(json, "lark_grammar");
  const ordered_json* const schema = member_of_list(json, "json_schema");
  if ((lark == nullptr) == (schema == nullptr))
    refuse_list(where + " has to have either a lark_grammar or a json_schema");
  if (schema != nullptr) {
    grammar.schema = *schema;
    return grammar;
  }
  if (!lark->is_string() || lark->get_ref<const std::string&>().empty())
    refuse_list("lark_grammar of " + where + " is not a text");
  grammar.lark = lark->get<std::string>();
  return grammar;
}

}  // namespace

std::vector<ListedGrammar> read_grammar_list(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) {
    throw Error(Code::kInvalidArgument,
                "it is empty: expected rules, in GBNF (root ::= ...) or in Lark (start: ...)");
  }
  if (text[begin] != '{') return {{.name = "", .lark = std::string(text), .schema = {}}};
  if (nests_deeper(text, kMaxListNesting))
    refuse_list("nested deeper than " + std::to_string(kMaxListNesting));
  const ordered_json list = json_or_discarded(text);
  if (list.is_discarded()) refuse_list(json_syntax_error(text).what());
  check_fields(list, "the list", {"grammars"});
  const ordered_json* const entries = member_of_list(list, "grammars");
  if (entries == nullptr || !entries->is_array() || entries->empty())
    refuse_list("expected \"grammars\" with at least one");
  if (entries->size() > kMaxListedGrammars)
    refuse_list("more than " + std::to_string(kMaxListedGrammars) + " grammars");
  std::vector<ListedGrammar> grammars;
  for (const ordered_json& entry : *entries) {
    ListedGrammar grammar = read_listed(entry, grammars.size());
    const auto has_name = [&](const ListedGrammar& other) {
      return !grammar.name.empty() && other.name == grammar.name;
    };
    if (std::ranges::any_of(grammars, has_name))
      refuse_list("two grammars are named \"" + grammar.name + "\"");
    grammars.push_back(std::move(grammar));
  }
  return grammars;
}

}  // namespace tgi::guide
