#include "engine/dialect/schema_notation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "engine/dialect/bare_values.h"
#include "engine/dialect/call_reader.h"
#include "engine/dialect/tool_schema.h"

namespace tgi::dialect {

using guide::Expr;
using guide::Regex;
using guide::Rule;

namespace {

constexpr int kMaxSchemaDepth = 12;
constexpr std::array<std::string_view, 12> kAnnotations = {
    "description", "title",    "default", "examples", "example",    "$schema",
    "$id",         "$comment", "$defs",   "nullable", "deprecated", "definitions"};
// What says nothing of arrays and objects.
constexpr std::array<std::string_view, 13> kOfScalars = {
    "minLength",        "maxLength",  "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "ge",      "gt",     "le",      "lt"};

const OrderedJson& list_of(const OrderedJson& schema, const char* word) {
  static const OrderedJson kEmpty = OrderedJson::array();
  const auto found = schema.find(word);
  return found != schema.end() && found->is_array() ? *found : kEmpty;
}

}  // namespace

void SchemaNotation::check_words(const OrderedJson& schema,
                                 const std::string& path,
                                 std::initializer_list<std::string_view> known) const {
  if (!tool_.strict) return;
  for (const auto& item : schema.items()) {
    const auto is_it = [&](std::string_view word) { return word == item.key(); };
    if (std::any_of(known.begin(), known.end(), is_it)) continue;
    if (std::any_of(kAnnotations.begin(), kAnnotations.end(), is_it)) continue;
    if (std::any_of(kOfScalars.begin(), kOfScalars.end(), is_it)) continue;
    refuse(fmt::format("{}/{}", path, item.key()));
  }
}

void SchemaNotation::refuse(const std::string& path) const {
  throw Error(Code::kUnsupported,
              fmt::format("tool {}: {}: can't be enforced in the notation of this model",
                          tool_.name, path));
}

Expr SchemaNotation::members(const OrderedJson& schema, const std::string& path, int depth) {
  check_words(schema, path, {"type", "properties", "required", "additionalProperties", "strict"});
  const std::vector<std::string> required = required_names(schema);
  std::vector<Member> known;
  const auto add = [&](const std::string& name, const OrderedJson& of, const std::string& place,
                       bool is_required) {
    if (!can_name(name)) refuse_name(tool_, place);
    known.push_back(
        {.name = name, .value = value(of, place, depth + 1), .is_required = is_required});
  };
  const auto properties = schema.find("properties");
  const bool has_properties = properties != schema.end() && properties->is_object();
  if (has_properties) {
    for (const auto& item : properties->items()) {
      add(item.key(), item.value(), fmt::format("{}/properties/{}", path, item.key()),
          std::find(required.begin(), required.end(), item.key()) != required.end());
    }
  }
  for (const std::string& name : required) {
    const auto is_it = [&](const Member& each) { return each.name == name; };
    if (std::any_of(known.begin(), known.end(), is_it)) continue;
    add(name, schema_of_unlisted(schema), path + "/required", true);
  }
  const auto others = schema.find("additionalProperties");
  std::optional<Expr> other;
  if (others != schema.end() && others->is_object()) {
    other = value(*others, path + "/additionalProperties", depth + 1);
  } else if (others != schema.end() ? *others == OrderedJson(true) : !has_properties) {
    other = any();
  }
  return written_members(std::move(known), other);
}

std::vector<std::string> SchemaNotation::names_of(const std::vector<Member>& members) {
  std::vector<std::string> out;
  for (const Member& member : members) out.push_back(member.name);
  return out;
}

Expr SchemaNotation::one_of(const std::vector<Expr>& forms, const std::string& path) {
  if (!forms.empty()) return grammar_.either(forms);
  if (tool_.strict) refuse(path);
  return any();
}

Expr SchemaNotation::value(const OrderedJson& given, const std::string& path, int depth) {
  const OrderedJson* const schema = behind_references(given, tool_.parameters);
  if (schema == nullptr || !schema->is_object() || depth > kMaxSchemaDepth) {
    if (tool_.strict && given != OrderedJson(true)) refuse(path);
    return any();
  }
  if (schema != &given) return referred(*schema, path, depth, /*is_structured=*/false);
  if (has_only(*schema, kAnnotations)) return any();
  std::vector<Expr> forms;
  add_scalars(*schema, path, forms);
  add_structured(*schema, path, depth, forms);
  return one_of(forms, path);
}

void SchemaNotation::add_scalars(const OrderedJson& schema,
                                 const std::string& path,
                                 std::vector<Expr>& to) {
  constexpr uint8_t kStructured = kObjectBit | kArrayBit;
  const uint8_t types = types_of(schema, tool_.parameters);
  uint8_t scalars = types & ~kStructured & ~kStringBit;
  if (!writes_null()) scalars &= ~kNullBit;
  if (scalars == 0 && (types & kStringBit) == 0) return;
  BareValues values(grammar_, tool_, schema);
  const std::optional<Regex> texts = values.texts(tells_texts(), text_end());
  if (texts) to.push_back(written_text(grammar_.terminal(*texts)));
  if (texts && !tells_texts()) scalars &= values.types_beside_texts();
  if (const std::optional<Expr> others = values.json(scalars)) to.push_back(*others);
  // Where it may be a text, an array or object without anything in it is read as the empty one;
  // of listed values none is written so.
  const bool is_listed = schema.contains("enum") || schema.contains("const");
  const bool may_be_both = (types & kStructured) != 0 && (types & kStringBit) != 0 && !is_listed;
  if (tool_.strict && !tells_texts() && may_be_both &&
      (!texts || !grammar_.regex().accepts_empty_text(*texts))) {
    refuse(path);
  }
}

void SchemaNotation::add_structured(const OrderedJson& given,
                                    const std::string& path,
                                    int depth,
                                    std::vector<Expr>& to) {
  const OrderedJson* const schema = behind_references(given, tool_.parameters);
  if (schema == nullptr || !schema->is_object() || depth > kMaxSchemaDepth) {
    if (tool_.strict) refuse(path);
    to.push_back(any());
    return;
  }
  const uint8_t types = types_of(*schema, tool_.parameters);
  if ((types & (kObjectBit | kArrayBit)) == 0) return;
  if (schema != &given) {
    to.push_back(referred(*schema, path, depth, /*is_structured=*/true));
    return;
  }
  for (const char* const word : {"enum", "const"}) {
    if (!schema->contains(word)) continue;
    check_words(*schema, path, {"type", word});
    const bool is_list = word == std::string_view("enum");
    for (const OrderedJson& each :
         is_list ? list_of(*schema, word) : OrderedJson::array({(*schema)[word]})) {
      if (!each.is_structured()) continue;
      if (const std::optional<Expr> form = literal(each, types)) to.push_back(*form);
    }
    return;
  }
  for (const char* const word : {"anyOf", "oneOf"}) {
    const OrderedJson& all = list_of(*schema, word);
    if (all.empty()) continue;
    check_words(*schema, path, {"type", word});
    for (const OrderedJson& each : all) add_structured(each, path, depth + 1, to);
    return;
  }
  if ((types & kArrayBit) != 0) to.push_back(items(*schema, path, depth));
  if ((types & kObjectBit) != 0) to.push_back(object(members(*schema, path, depth)));
}

// One rule for each schema that is referred to, which may be its own part.
Expr SchemaNotation::referred(const OrderedJson& schema,
                              const std::string& path,
                              int depth,
                              bool is_structured) {
  const auto [place, is_new] = referred_.try_emplace({&schema, is_structured}, Rule{});
  if (!is_new) return grammar_.call(place->second);
  const Rule rule = place->second = grammar_.declare(path);
  if (is_structured) {
    std::vector<Expr> forms;
    add_structured(schema, path, depth + 1, forms);
    grammar_.define(rule, grammar_.either(forms));
  } else {
    grammar_.define(rule, value(schema, path, depth + 1));
  }
  return grammar_.call(rule);
}

Expr SchemaNotation::items(const OrderedJson& schema, const std::string& path, int depth) {
  check_words(schema, path, {"type", "items", "minItems", "maxItems", "uniqueItems"});
  constexpr uint64_t kMost = 10000;
  const auto count = [&](const char* word, int32_t other) {
    const auto found = schema.find(word);
    return found != schema.end() && found->is_number_unsigned()
               ? static_cast<int32_t>(std::min(found->get<uint64_t>(), kMost))
               : other;
  };
  const int32_t least = count("minItems", 0);
  const int32_t most = count("maxItems", guide::kUnbounded);
  if (most == 0) return literal_array({});
  const auto of_each = schema.find("items");
  const bool differ = schema.contains("uniqueItems") && schema["uniqueItems"] == OrderedJson(true);
  if (differ && most != 1) {
    const std::vector<Expr> values =
        of_each != schema.end() ? listed(*of_each) : std::vector<Expr>();
    if (!values.empty()) return different_items(values, least, most, path);
    if (tool_.strict) refuse(path + "/uniqueItems");
  }
  const Expr one = of_each != schema.end() ? value(*of_each, path + "/items", depth + 1) : any();
  const Rule rule = grammar_.declare("item");
  grammar_.define(rule, one);
  return array(grammar_.call(rule), least, most);
}

// The values of a schema that has only these; empty: it may have others.
std::vector<Expr> SchemaNotation::listed(const OrderedJson& given) {
  const OrderedJson* const schema = behind_references(given, tool_.parameters);
  if (schema == nullptr || !schema->is_object()) return {};
  OrderedJson values = list_of(*schema, "enum");
  if (schema->contains("const")) values = OrderedJson::array({(*schema)["const"]});
  if (values.empty() && types_of(*schema, tool_.parameters) == kBooleanBit) values = {false, true};
  const uint8_t types = types_of(*schema, tool_.parameters);
  std::vector<Expr> forms;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i]) !=
        values.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    if (const std::optional<Expr> form = literal(values[i], types)) forms.push_back(*form);
  }
  return forms;
}

// Few in any order, with a rule for each set of them that is used up; more in the order of the
// list.
Expr SchemaNotation::different_items(const std::vector<Expr>& values,
                                     int32_t least,
                                     int32_t most,
                                     const std::string& path) {
  constexpr size_t kFew = 8;
  constexpr size_t kMost = 60;
  const size_t size = values.size();
  if (size > kMost || static_cast<size_t>(least) > size) refuse(path + "/uniqueItems");
  const auto room = most == guide::kUnbounded ? size : std::min(size, static_cast<size_t>(most));
  std::map<std::pair<uint64_t, size_t>, Rule> rules;  // by those that are used up, and their number
  std::vector<std::pair<uint64_t, size_t>> open;
  const bool has_any_order = size <= kFew;
  // How many there are counts up to here.
  const size_t counted = room < size ? size : std::max<size_t>(1, static_cast<size_t>(least));
  // In their order `used` are those that were passed by.
  const auto rule_of = [&](uint64_t used, size_t count) {
    const auto [place, is_new] = rules.try_emplace({used, count}, Rule{});
    if (is_new) {
      place->second = grammar_.declare("items");
      open.emplace_back(used, count);
    }
    return grammar_.call(place->second);
  };
  const Expr all = rule_of(0, 0);
  while (!open.empty()) {
    const auto [used, count] = open.back();
    open.pop_back();
    std::vector<Expr> choices;
    if (count >= static_cast<size_t>(least)) choices.push_back(grammar_.empty_text());
    for (size_t i = has_any_order ? 0 : used; count < room && i < size; ++i) {
      if (has_any_order && (used >> i & 1U) != 0) continue;
      const uint64_t next = has_any_order ? used | uint64_t{1} << i : i + 1;
      std::vector<Expr> parts;
      if (count > 0) parts.push_back(between_items());
      parts.insert(parts.end(),
                   {written_item(values[i]), rule_of(next, std::min(count + 1, counted))});
      choices.push_back(grammar_.sequence(parts));
    }
    grammar_.define(rules.at({used, count}), grammar_.either(choices));
  }
  return in_array(all);
}

std::optional<Expr> SchemaNotation::literal(const OrderedJson& value, uint8_t types) {
  if (value.is_null() && !writes_null()) return std::nullopt;
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const bool is_read_so = tells_texts() || json_of_parameter(text, types).starts_with('"');
    if (!is_read_so) return std::nullopt;
    return written_text(grammar_.text(text));
  }
  if (!value.is_structured()) return grammar_.text(value.dump());
  // Nothing between the marks of a text is the empty text.
  if (value.empty() && !tells_texts() && (types & kStringBit) != 0) return std::nullopt;
  std::vector<Expr> own;
  std::vector<Member> known;
  for (const auto& item : value.items()) {
    const std::optional<Expr> inner = literal(item.value(), kAllBits);
    if (!inner || (value.is_object() && !can_name(item.key()))) return std::nullopt;
    if (value.is_array()) own.push_back(*inner);
    if (value.is_object()) known.push_back({item.key(), *inner, /*is_required=*/true});
  }
  if (value.is_array()) return literal_array(own);
  return object(written_members(std::move(known), std::nullopt));
}

Expr SchemaNotation::any() {
  if (!any_) {
    any_ = grammar_.declare("value");
    grammar_.define(*any_, any_value(grammar_.call(*any_)));
  }
  return grammar_.call(*any_);
}

}  // namespace tgi::dialect
