#include "cmd/http/guide_body.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tgi::http {
namespace {

using ipc::GuideParams;

void refuse_other_members(const OrderedJson& json,
                          const std::string& path,
                          std::initializer_list<std::string_view> known) {
  for (const auto& item : json.items()) {
    if (item.value().is_null()) continue;  // as if it were not there
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    fail_body(fmt::format("{}.{}", path, item.key().substr(0, 100)),
              fmt::format("unknown field, expected one of {}", fmt::join(known, ", ")));
  }
}

const OrderedJson* member(const OrderedJson& json, std::string_view name) {
  const auto it = json.find(std::string(name));
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

const OrderedJson& required_member(const OrderedJson& json,
                                   const std::string& path,
                                   std::string_view name) {
  const OrderedJson* const found = member(json, name);
  if (found == nullptr) fail_body(fmt::format("{}.{}", path, name), "missing field");
  return *found;
}

std::string text_of(const OrderedJson& json, const std::string& path) {
  std::string out;
  read_body_value(json, path, out);
  return out;
}

// An object, true (which any JSON satisfies), or a text that holds one of these.
GuideParams by_schema(const OrderedJson& json, const std::string& path) {
  GuideParams out;
  if (json.is_string()) {
    OrderedJson parsed;
    try {
      parsed = ipc::parse_json(json.get_ref<const std::string&>());
    } catch (const Error& error) {
      fail_body(path, std::string("the text is not a JSON schema: ") + error.what());
    }
    if (!parsed.is_object() && !parsed.is_boolean()) {
      fail_body(path, "the text is not a JSON schema: expected an object written as JSON");
    }
    return by_schema(parsed, path);
  }
  if (json.is_boolean()) {
    require(json.get<bool>(), "`{}`: nothing satisfies the schema `false`", path);
    out.json_schema = OrderedJson::object();
  } else if (json.is_object()) {
    out.json_schema = json;
  } else {
    fail_body_type(path, "a JSON schema", json);
  }
  return out;
}

GuideParams any_object() {
  GuideParams out;
  out.json_object = true;
  return out;
}

GuideParams by_regex(const OrderedJson& json, const std::string& path) {
  GuideParams out;
  out.regex = text_of(json, path);
  return out;
}

GuideParams by_choice(const OrderedJson& json, const std::string& path) {
  GuideParams out;
  read_body_value(json, path, out.choice);
  if (out.choice.empty()) fail_body(path, "expected at least one text, got none");
  return out;
}

GuideParams by_grammar_text(const OrderedJson& json, const std::string& path) {
  GuideParams out;
  std::string text = text_of(json, path);
  ipc::set_grammar(out, std::move(text));
  return out;
}

// Every schema is kept to the letter, strict or not; but what is no boolean was meant otherwise.
void check_strict(const OrderedJson& json, const std::string& path) {
  const OrderedJson* const strict = member(json, "strict");
  bool is_strict = false;
  if (strict != nullptr) read_body_value(*strict, path + ".strict", is_strict);
}

// {name, schema, strict, description}: OpenAI's, and TGI's `value`.
GuideParams by_named_schema(const OrderedJson& json, const std::string& path) {
  if (!json.is_object()) fail_body_type(path, "an object with a schema", json);
  refuse_other_members(json, path, {"name", "schema", "strict", "description"});
  check_strict(json, path);
  return by_schema(required_member(json, path, "schema"), path + ".schema");
}

std::string type_of(const OrderedJson& json, const std::string& path) {
  if (!json.is_object()) fail_body_type(path, "an object with a type", json);
  return text_of(required_member(json, path, "type"), path + ".type");
}

// TGI's tagged union, of `grammar`.
GuideParams by_tagged_grammar(const OrderedJson& json, const std::string& path) {
  const std::string type = type_of(json, path);
  refuse_other_members(json, path, {"type", "value"});
  const std::string value_path = path + ".value";
  const OrderedJson& value = required_member(json, path, "value");
  if (type == "json" || type == "json_object") return by_schema(value, value_path);
  if (type == "json_schema") return by_named_schema(value, value_path);
  if (type == "regex") return by_regex(value, value_path);
  fail_body(path + ".type", fmt::format("unknown type `{}`, expected one of json, json_object, "
                                        "json_schema, regex",
                                        type.substr(0, 100)));
}

// OpenAI's types, with the schema where OpenAI, TGI (`value`) or LoRAX and llama.cpp (`schema`) put
// it.
std::optional<GuideParams> by_response_format(const OrderedJson& json, const std::string& path) {
  const std::string type = type_of(json, path);
  if (type == "text") {
    refuse_other_members(json, path, {"type"});
    return std::nullopt;
  }
  if (type == "json" || type == "regex") return by_tagged_grammar(json, path);
  if (type == "json_object") {
    refuse_other_members(json, path, {"type", "schema", "value"});
    for (const std::string_view name : {"schema", "value"}) {
      if (const OrderedJson* const schema = member(json, name)) {
        return by_schema(*schema, fmt::format("{}.{}", path, name));
      }
    }
    return any_object();
  }
  if (type == "json_schema") {
    refuse_other_members(json, path, {"type", "json_schema", "schema", "value", "strict", "name"});
    check_strict(json, path);
    if (const OrderedJson* const schema = member(json, "schema")) {
      return by_schema(*schema, path + ".schema");
    }
    const std::string_view name = member(json, "value") != nullptr ? "value" : "json_schema";
    return by_named_schema(required_member(json, path, name), fmt::format("{}.{}", path, name));
  }
  fail_body(path + ".type", fmt::format("unknown type `{}`, expected one of text, json_object, "
                                        "json_schema, json, regex",
                                        type.substr(0, 100)));
}

GuideParams by_structured_outputs(const OrderedJson& json, const std::string& path) {
  if (!json.is_object()) fail_body_type(path, "an object", json);
  refuse_other_members(
      json, path,
      {"json", "json_object", "regex", "choice", "grammar", "disable_fallback",
       "disable_any_whitespace", "disable_additional_properties", "whitespace_pattern"});
  // With either a text without white space is one that was asked for.
  const OrderedJson* const spaces = member(json, "whitespace_pattern");
  if (spaces != nullptr && *spaces != OrderedJson("") && *spaces != OrderedJson("[ ]?")) {
    fail_body(path + ".whitespace_pattern",
              "expected \"\" or \"[ ]?\": JSON is written without white space");
  }
  std::vector<GuideParams> out;
  if (const auto* const it = member(json, "json")) out.push_back(by_schema(*it, path + ".json"));
  if (const auto* const it = member(json, "json_object"); it != nullptr && *it == OrderedJson(true))
    out.push_back(any_object());
  if (const auto* const it = member(json, "regex")) out.push_back(by_regex(*it, path + ".regex"));
  if (const auto* const it = member(json, "choice"))
    out.push_back(by_choice(*it, path + ".choice"));
  if (const auto* const it = member(json, "grammar"))
    out.push_back(by_grammar_text(*it, path + ".grammar"));
  require(out.size() == 1,
          "`{}`: expected exactly one of json, json_object, regex, choice and grammar, got {}",
          path, out.size());
  return out.front();
}

// llama.cpp's clients send an empty text where they want none.
std::optional<GuideParams> by_grammar(const OrderedJson& json, const std::string& path) {
  if (!json.is_string()) return by_tagged_grammar(json, path);
  if (json.get_ref<const std::string&>().empty()) return std::nullopt;
  return by_grammar_text(json, path);
}

}  // namespace

std::optional<GuideParams> guide_of(const GuideFields& fields, bool is_supported) {
  struct Given {
    std::string_view name;
    GuideParams guide;
  };
  std::vector<Given> given;
  const auto read = [&](const std::optional<OrderedJson>& json, std::string_view name,
                        const auto& reader) {
    if (!json) return;
    std::optional<GuideParams> guide = reader(*json, std::string(name));
    if (guide) given.push_back({name, std::move(*guide)});
  };
  read(fields.grammar, "grammar", by_grammar);
  read(fields.response_format, "response_format", by_response_format);
  read(fields.json_schema, "json_schema", by_schema);
  read(fields.guided_json, "guided_json", by_schema);
  read(fields.guided_regex, "guided_regex", by_regex);
  read(fields.guided_choice, "guided_choice", by_choice);
  read(fields.guided_grammar, "guided_grammar", by_grammar_text);
  read(fields.structured_outputs, "structured_outputs", by_structured_outputs);
  read(fields.regex, "regex", by_regex);
  read(fields.ebnf, "ebnf", by_grammar_text);
  if (given.empty()) return std::nullopt;
  require(is_supported, "grammar is not supported");
  require(given.size() == 1, "`{}` and `{}` both say what the answer has to be: give one of them",
          given[0].name, given.size() > 1 ? given[1].name : "");
  return given.front().guide;
}

}  // namespace tgi::http
