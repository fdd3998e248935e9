// Types, constants, and the limits of numbers and strings.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/guide/json/formats.h"
#include "engine/guide/json/schema_reader.h"

namespace tgi::guide {
namespace {

constexpr std::array<std::pair<std::string_view, JsonType>, 7> kTypeNames = {
    {{"null", JsonType::kNull},
     {"boolean", JsonType::kBoolean},
     {"number", JsonType::kNumber},
     {"integer", JsonType::kNumber},
     {"string", JsonType::kString},
     {"array", JsonType::kArray},
     {"object", JsonType::kObject}}};

// What Python, Gemini's API and others call types.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kTypesElsewhere = {
    {{"dict", "object"},
     {"map", "object"},
     {"struct", "object"},
     {"list", "array"},
     {"tuple", "array"},
     {"set", "array"},
     {"str", "string"},
     {"text", "string"},
     {"enum", "string"},
     {"int", "integer"},
     {"long", "integer"},
     {"float", "number"},
     {"double", "number"},
     {"decimal", "number"},
     {"bool", "boolean"},
     {"none", "null"},
     {"nonetype", "null"}}};

std::string type_meant(const OrderedJson& name) {
  if (!name.is_string()) return "";
  const std::string letters = bare_name(name.get<std::string>());
  if (letters == "any" || letters == "unknown") return "; take it out when any type will do";
  std::string_view meant;
  for (const auto& [type, _] : kTypeNames) {
    if (letters == type) meant = type;
  }
  for (const auto& [type, instead] : kTypesElsewhere) {
    if (letters == type) meant = instead;
  }
  return meant.empty() ? "" : "; write \"" + std::string(meant) + "\"";
}

Alternative* find_type(Alternatives& values, JsonType type) {
  for (Alternative& value : values) {
    if (value.type == type) return &value;
  }
  return nullptr;
}

void drop_type(Alternatives& values, JsonType type) {
  values.erase(std::remove_if(values.begin(), values.end(),
                              [&](const Alternative& value) { return value.type == type; }),
               values.end());
}

}  // namespace

Alternatives SchemaReader::types(const SchemaPlace& schema) {
  Alternatives values;
  const OrderedJson* types = member(schema, "type");
  const std::string at = schema.path + "/type";
  const auto add = [&](const OrderedJson& name) {
    const auto row = std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const auto& candidate) {
      return name.is_string() && name.get_ref<const std::string&>() == candidate.first;
    });
    if (row == kTypeNames.end()) {
      reject_schema(at, "expected null, boolean, number, integer, string, array or object, got " +
                            described_json(name) + type_meant(name));
    }
    Alternative* known = find_type(values, row->second);
    if (known == nullptr) {
      values.push_back(every_value(row->second));
      if (row->first == "integer") values.back().number = algebra_.numbers.integers();
    } else if (row->first == "number") {
      known->number = {};
    }
  };
  if (types == nullptr) {
    for (const JsonType type : kJsonTypes) values.push_back(every_value(type));
  } else if (types->is_array()) {
    for (const OrderedJson& name : *types) add(name);
  } else {
    add(*types);
  }
  if (const OrderedJson* nullable = member(schema, "nullable")) {
    if (!nullable->is_boolean()) {
      reject_schema(schema.path + "/nullable",
                    "expected true or false, got " + described_json(*nullable));
    }
    if (nullable->get<bool>() && find_type(values, JsonType::kNull) == nullptr) {
      values.push_back(every_value(JsonType::kNull));
    }
  }
  return values;
}

void SchemaReader::limit_numbers(const SchemaPlace& schema, Alternatives& values) {
  NumberSet limits;
  Numbers& numbers = algebra_.numbers;
  const auto number = [&](const char* keyword) -> const OrderedJson* {
    const OrderedJson* value = member(schema, keyword);
    if (value != nullptr && !value->is_number()) {
      reject_schema(schema.path + "/" + keyword,
                    "expected a number, got " + described_json(*value));
    }
    return value;
  };
  // As booleans in draft 4 and OpenAPI 3.0: they say how the other limit is meant.
  const auto is_flag = [&](const char* keyword) {
    const OrderedJson* value = member(schema, keyword);
    return value != nullptr && value->is_boolean();
  };
  const auto flag = [&](const char* keyword) {
    return is_flag(keyword) && member(schema, keyword)->get<bool>();
  };
  if (const OrderedJson* limit = number("minimum")) {
    limits = numbers.both(limits, numbers.at_least(Decimal::of(*limit), flag("exclusiveMinimum")));
  }
  if (const OrderedJson* limit = number("maximum")) {
    limits = numbers.both(limits, numbers.at_most(Decimal::of(*limit), flag("exclusiveMaximum")));
  }
  if (!is_flag("exclusiveMinimum")) {
    if (const OrderedJson* limit = number("exclusiveMinimum")) {
      limits = numbers.both(limits, numbers.at_least(Decimal::of(*limit), true));
    }
  }
  if (!is_flag("exclusiveMaximum")) {
    if (const OrderedJson* limit = number("exclusiveMaximum")) {
      limits = numbers.both(limits, numbers.at_most(Decimal::of(*limit), true));
    }
  }
  // Pydantic's words for the same, where it can't tell the type.
  const auto limit_of_any_type = [&](const char* keyword) -> const OrderedJson* {
    const OrderedJson* value = member(schema, keyword);
    if (value != nullptr && !value->is_number()) {
      refuse_schema(
          schema.path + "/" + keyword,
          "limits of other values than numbers cannot be enforced, got " + described_json(*value));
    }
    return value;
  };
  for (const bool excludes : {false, true}) {
    if (const OrderedJson* limit = limit_of_any_type(excludes ? "gt" : "ge"))
      limits = numbers.both(limits, numbers.at_least(Decimal::of(*limit), excludes));
    if (const OrderedJson* limit = limit_of_any_type(excludes ? "lt" : "le"))
      limits = numbers.both(limits, numbers.at_most(Decimal::of(*limit), excludes));
  }
  if (const OrderedJson* divisor = number("multipleOf")) {
    const std::string at = schema.path + "/multipleOf";
    const Decimal value = Decimal::of(*divisor);
    if (value.negative || value.is_zero()) {
      reject_schema(at, "expected a number above 0, got " + described_json(*divisor));
    }
    const std::optional<NumberSet> multiples = numbers.multiples(value);
    if (!multiples) {
      refuse_schema(at, "multiples of " + value.text() +
                            " cannot be enforced: but for tens it has to be at most 10000");
    }
    limits = numbers.both(limits, *multiples);
  }
  Alternative* value = find_type(values, JsonType::kNumber);
  if (value == nullptr || limits.every) return;
  value->number = numbers.both(value->number, limits);
  if (numbers.is_surely_empty(value->number)) drop_type(values, JsonType::kNumber);
}

void SchemaReader::limit_strings(const SchemaPlace& schema, Alternatives& values) {
  StringSet limits;
  limits.min_length = count(schema, "minLength").value_or(0);
  limits.max_length = count(schema, "maxLength").value_or(kUnbounded);
  if (const OrderedJson* text = member(schema, "pattern")) {
    const std::string at = schema.path + "/pattern";
    if (!text->is_string()) reject_schema(at, "expected a string, got " + described_json(*text));
    limits.language = pattern(text->get_ref<const std::string&>(), at);
  }
  Alternative* value = find_type(values, JsonType::kString);
  if (value != nullptr) value->string = algebra_.strings.both(value->string, limits);
  limit_format(schema, values);
  if (value != nullptr && algebra_.strings.is_empty(value->string)) {
    drop_type(values, JsonType::kString);
  }
}

void SchemaReader::limit_format(const SchemaPlace& schema, Alternatives& values) {
  const OrderedJson* name = member(schema, "format");
  if (name == nullptr) return;
  const std::string at = schema.path + "/format";
  if (!name->is_string()) reject_schema(at, "expected a string, got " + described_json(*name));
  const Format* format = find_format(name->get_ref<const std::string&>());
  if (format == nullptr) {
    const std::string meant = misspelt_format(name->get_ref<const std::string&>());
    if (meant.empty()) return;  // of somebody's own: by JSON Schema it describes
    refuse_schema(at, described_json(*name) + " is no format of JSON Schema, so it would change " +
                          "nothing; write \"" + meant + "\" if that is meant, or take it out");
  }
  Alternative* text = find_type(values, JsonType::kString);
  if (text != nullptr && !format->pattern.empty()) {
    const Regex language = parse_regex(pool_, format->pattern, RegexUse::kWhole);
    StringSet set = algebra_.strings.of(language);
    if (format->is_narrowed) {
      set.narrowed_at = at;
      algebra_.has_narrowed_strings = true;
    }
    text->string = algebra_.strings.both(text->string, set);
  }
  Alternative* number = find_type(values, JsonType::kNumber);
  if (number == nullptr || format->minimum.empty()) return;
  Numbers& numbers = algebra_.numbers;
  const NumberSet range = numbers.both(numbers.at_least(Decimal::parsed(format->minimum), false),
                                       numbers.at_most(Decimal::parsed(format->maximum), false));
  number->number = numbers.both(number->number, range);
}

// A value of the schema itself: digits beyond 64 bits were lost when its JSON was read, and others
// would be written.
void SchemaReader::check_digits(const OrderedJson& value, const std::string& at) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number > -kTwoTo63 && number < 2 * kTwoTo63) return;
    refuse_schema(at, "that " + described_json(value) +
                          " is written to its last digit, beyond 64 bits, cannot be enforced; make "
                          "it a string or a pattern");
  }
  if (!value.is_structured()) return;
  for (const auto& item : value.items()) {
    if (!item.value().is_number_float() && !item.value().is_structured()) continue;
    check_digits(item.value(), path_step(at, item.key()));
  }
}

Alternatives SchemaReader::constant(const OrderedJson& value) {
  Alternative result;
  switch (value.type()) {
    case OrderedJson::value_t::null:
      return {every_value(JsonType::kNull)};
    case OrderedJson::value_t::boolean:
      result = every_value(JsonType::kBoolean);
      result.can_be_true = value.get<bool>();
      result.can_be_false = !value.get<bool>();
      return {result};
    case OrderedJson::value_t::string:
      result = every_value(JsonType::kString);
      result.string = algebra_.strings.of({value.get<std::string>()});
      return {result};
    case OrderedJson::value_t::array: {
      ArraySet set;
      for (const OrderedJson& item : value) set.prefix.push_back(demands_.constant(item));
      set.rest = kNothing;
      set.min_items = set.max_items = static_cast<int64_t>(value.size());
      return {alternative_of(std::move(set))};
    }
    case OrderedJson::value_t::object: {
      ObjectSet set;
      for (auto item = value.begin(); item != value.end(); ++item) {
        set.add({item.key(), demands_.constant(item.value()), true});
      }
      set.classes = {{pool_.any_text(), kNothing}};
      return {alternative_of(std::move(set))};
    }
    default:
      result = every_value(JsonType::kNumber);
      result.number = algebra_.numbers.of({Decimal::of(value)});
      return {result};
  }
}

// Numbers together and strings together: lists may be long.
Alternatives SchemaReader::listed_values(const SchemaPlace& schema, const OrderedJson& list) {
  const std::string at = schema.path + "/enum";
  if (!list.is_array()) reject_schema(at, "expected an array, got " + described_json(list));
  check_digits(list, at);
  Alternatives result;
  std::vector<Decimal> numbers;
  std::vector<std::string> strings;
  for (const OrderedJson& value : list) {
    if (value.is_number()) {
      const Decimal number = Decimal::of(value);
      numbers.push_back(number);
    } else if (value.is_string()) {
      strings.push_back(value.get<std::string>());
    } else {
      algebra_.add(result, constant(value), at);
    }
  }
  if (!strings.empty()) {
    result.push_back(every_value(JsonType::kString));
    result.back().string = algebra_.strings.of(std::move(strings));
  }
  if (!numbers.empty()) {
    result.push_back(every_value(JsonType::kNumber));
    result.back().number = algebra_.numbers.of(std::move(numbers));
  }
  return result;
}

}  // namespace tgi::guide
