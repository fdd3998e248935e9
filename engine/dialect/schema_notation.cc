#include "engine/dialect/schema_notation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tgi::dialect {

using guide::Expr;
using guide::Rule;

namespace {

constexpr int kMaxSchemaDepth = 12;

const OrderedJson& list_of(const OrderedJson& schema, const char* word) {
  static const OrderedJson kEmpty = OrderedJson::array();
  const auto found = schema.find(word);
  return found != schema.end() && found->is_array() ? *found : kEmpty;
}

bool is_integer(const OrderedJson& schema) {
  const auto type = schema.find("type");
  if (type == schema.end()) return false;
  const auto has = [&](const char* word) {
    return std::find(type->begin(), type->end(), OrderedJson(word)) != type->end();
  };
  return *type == "integer" || (type->is_array() && has("integer") && !has("number"));
}

}  // namespace

void SchemaNotation::check_words(const OrderedJson& schema,
                                 const std::string& path,
                                 std::initializer_list<std::string_view> known) const {
  constexpr std::array<std::string_view, 12> kAnnotations = {
      "description", "title",    "default", "examples", "example",    "$schema",
      "$id",         "$comment", "$defs",   "nullable", "deprecated", "definitions"};
  if (!tool_.strict) return;
  for (const auto& item : schema.items()) {
    const auto is_it = [&](std::string_view word) { return word == item.key(); };
    if (std::any_of(known.begin(), known.end(), is_it)) continue;
    if (std::any_of(kAnnotations.begin(), kAnnotations.end(), is_it)) continue;
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
  std::vector<std::string> required;
  for (const OrderedJson& each : list_of(schema, "required")) {
    if (each.is_string()) required.push_back(each.get<std::string>());
  }
  std::vector<Member> known;
  const auto properties = schema.find("properties");
  const bool has_properties = properties != schema.end() && properties->is_object();
  if (has_properties) {
    for (const auto& item : properties->items()) {
      const std::string place = fmt::format("{}/properties/{}", path, item.key());
      if (!can_name(item.key())) {
        if (tool_.strict) refuse(place);
        continue;
      }
      const bool is_required =
          std::find(required.begin(), required.end(), item.key()) != required.end();
      known.push_back({.name = item.key(),
                       .value = value(item.value(), place, depth + 1),
                       .is_required = is_required});
    }
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
  if (schema != &given) return referred(*schema, path, depth);
  for (const char* const word : {"enum", "const"}) {
    if (!schema->contains(word)) continue;
    std::vector<Expr> forms;
    const bool is_list = word == std::string_view("enum");
    for (const OrderedJson& each :
         is_list ? list_of(*schema, word) : OrderedJson::array({(*schema)[word]})) {
      if (const std::optional<Expr> form = literal(each)) forms.push_back(*form);
    }
    return one_of(forms, fmt::format("{}/{}", path, word));
  }
  for (const char* const word : {"anyOf", "oneOf"}) {
    const OrderedJson& all = list_of(*schema, word);
    if (all.empty()) continue;
    check_words(*schema, path, {"type", word});
    std::vector<Expr> forms;
    for (const OrderedJson& each : all) {
      const bool is_null = types_of(each, tool_.parameters) == kNullBit;
      if (!is_null || null()) forms.push_back(value(each, path, depth + 1));
    }
    return one_of(forms, path);
  }
  return of_types(*schema, path, depth);
}

Expr SchemaNotation::of_types(const OrderedJson& schema, const std::string& path, int depth) {
  const uint8_t types = types_of(schema, tool_.parameters);
  if (types == kAllBits) {
    check_words(schema, path, {"type"});
    return any();
  }
  std::vector<Expr> forms;
  const bool is_text = (types & kStringBit) != 0;
  if (is_text) forms.push_back(text(path, schema));
  // What may be a text is written as one where nothing tells it from others.
  if (!is_text || tells_texts()) {
    if ((types & kNumberBit) != 0) forms.push_back(number(schema));
    if ((types & kBooleanBit) != 0) {
      forms.push_back(grammar_.either({grammar_.text("true"), grammar_.text("false")}));
    }
    if ((types & kNullBit) != 0 && null()) forms.push_back(*null());
  }
  if ((types & kArrayBit) != 0) forms.push_back(items(schema, path, depth));
  if ((types & kObjectBit) != 0) forms.push_back(object(members(schema, path, depth)));
  return one_of(forms, path);
}

// One rule for each schema that is referred to, which may be its own part.
Expr SchemaNotation::referred(const OrderedJson& schema, const std::string& path, int depth) {
  const auto found = referred_.find(&schema);
  if (found != referred_.end()) return grammar_.call(found->second);
  const Rule rule = grammar_.declare(path);
  referred_.emplace(&schema, rule);
  grammar_.define(rule, value(schema, path, depth + 1));
  return grammar_.call(rule);
}

Expr SchemaNotation::number(const OrderedJson& schema) {
  OrderedJson out = OrderedJson::object();
  out["type"] = is_integer(schema) ? "integer" : "number";
  for (const char* const word : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                                 "multipleOf", "ge", "gt", "le", "lt"}) {
    if (schema.contains(word)) out[word] = schema[word];
  }
  return json_value(grammar_, tool_, out);
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
  std::vector<Expr> forms;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i]) !=
        values.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    if (const std::optional<Expr> form = literal(values[i])) forms.push_back(*form);
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

std::optional<Expr> SchemaNotation::literal(const OrderedJson& value) {
  if (value.is_null()) return null();
  if (value.is_string()) return literal_text(value.get<std::string>());
  if (!value.is_array() && !value.is_object()) return grammar_.text(value.dump());
  std::vector<Expr> own;
  std::vector<Member> known;
  for (const auto& item : value.items()) {
    const std::optional<Expr> inner = literal(item.value());
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
