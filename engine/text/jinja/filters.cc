#include "engine/text/jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

Value filter_default(Interpreter&, const Value& value, const Bound& arguments) {
  const bool is_missing = value.is_undefined() || (arguments.flag_or(1, false) && !is_true(value));
  if (!is_missing) return value;
  return arguments.has(0) ? arguments[0] : Value::string("");
}

Value filter_length(Interpreter&, const Value& value, const Bound&) {
  const std::optional<size_t> length = length_of(value);
  if (!length) fail(fmt::format("object of type '{}' has no length", type_name(value)));
  return Value::integer(static_cast<Int>(*length));
}

Value filter_attr(Interpreter& in, const Value& value, const Bound& arguments) {
  // Unlike the dot this never looks at the entries of a dict.
  const std::string& name = arguments.text(0);
  if (!value.is(Type::kDict)) return in.attribute(value, name);
  const Value empty_dict = Value::dict(DictObject());
  if (in.attribute(empty_dict, name).is_undefined()) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return in.attribute(value, name);
}

// --- numbers ---

// int(text, base). Nothing when it is not one.
std::optional<Int> parse_integer(std::string_view text, int base) {
  text = strip(text, true, true);
  const bool is_negative = !text.empty() && text[0] == '-';
  if (is_negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    const int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (base == marked || base == 0)) {
      base = marked;
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  }
  if (base == 0) base = 10;
  Int number = 0;
  bool wants_digit = true;
  for (const char character : text) {
    if (character == '_' && !wants_digit) {
      wants_digit = true;
      continue;
    }
    const char letter = static_cast<char>(character | 0x20);
    const int digit = character >= '0' && character <= '9' ? character - '0'
                      : letter >= 'a' && letter <= 'z'     ? letter - 'a' + 10
                                                           : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(number, Int{base}, &number) ||
        __builtin_add_overflow(number, Int{digit}, &number)) {
      fail("the text is a number too large for an integer");
    }
    wants_digit = false;
  }
  if (wants_digit) return std::nullopt;
  return is_negative ? -number : number;
}

// float(text). Nothing when it is not one.
std::optional<double> parse_float(std::string_view text) {
  text = strip(text, true, true);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit_at = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (text[i] != '_') {
      plain += static_cast<char>(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
    } else if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) {
      return std::nullopt;
    }
  }
  std::string_view body = plain;
  const bool has_sign = !body.empty() && (body[0] == '-' || body[0] == '+');
  if (has_sign) body.remove_prefix(1);
  const bool is_word = body == "inf" || body == "infinity" || body == "nan";
  const bool starts_well = !body.empty() && (body[0] == '.' || (body[0] >= '0' && body[0] <= '9'));
  // strtod would also read hexadecimal numbers, which Python does not.
  if (!is_word && (!starts_well || body.find('x') != std::string_view::npos)) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(plain.c_str(), &end);
  if (end != plain.c_str() + plain.size()) return std::nullopt;
  return number;
}

// Nothing for what int() can't take.
std::optional<Int> truncate_float(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::fabs(value) > 1e38) fail("the number is too large for an integer");
  return static_cast<Int>(value);
}

Value filter_int(Interpreter&, const Value& value, const Bound& arguments) {
  const Value fallback = arguments.has(0) ? arguments[0] : Value::integer(0);
  const Int base = arguments.integer_or(1, 10);
  require_defined(value);
  if (value.is_integral()) return Value::integer(value.as_int());
  if (value.is(Type::kFloat)) {
    if (std::isinf(value.as_float())) fail("cannot convert float infinity to integer");
    const std::optional<Int> whole = truncate_float(value.as_float());
    return whole ? Value::integer(*whole) : fallback;
  }
  if (!value.is_string()) return fallback;
  if (base != 0 && (base < 2 || base > 36)) return fallback;
  if (const std::optional<Int> whole = parse_integer(value.text(), static_cast<int>(base))) {
    return Value::integer(*whole);
  }
  const std::optional<double> real = parse_float(value.text());
  const std::optional<Int> whole = real ? truncate_float(*real) : std::nullopt;
  return whole ? Value::integer(*whole) : fallback;
}

Value filter_float(Interpreter&, const Value& value, const Bound& arguments) {
  require_defined(value);
  if (value.is_number()) return Value::real(value.as_double());
  if (value.is_string()) {
    if (const std::optional<double> real = parse_float(value.text())) return Value::real(*real);
  }
  return arguments.has(0) ? arguments[0] : Value::real(0.0);
}

Value filter_abs(Interpreter&, const Value& value, const Bound&) {
  if (!value.is_number()) fail(fmt::format("bad operand type for abs(): '{}'", type_name(value)));
  if (value.is(Type::kFloat)) return Value::real(std::fabs(value.as_float()));
  return value.as_int() < 0 ? negative(value) : positive(value);
}

Value round_integer(Int value, Int precision) {
  if (precision >= 0) return Value::integer(value);
  if (precision < -37) return Value::integer(0);
  Int unit = 1;
  for (Int i = precision; i < 0; ++i) unit *= 10;
  Int remainder = value % unit;
  if (remainder < 0) remainder += unit;
  const Int lower = value - remainder;
  const bool lower_is_even = (lower / unit) % 2 == 0;
  const bool goes_up = remainder * 2 > unit || (remainder * 2 == unit && !lower_is_even);
  return Value::integer(goes_up ? lower + unit : lower);
}

double round_float(double value, Int precision) {
  if (!std::isfinite(value) || precision > 400) return value;
  if (precision < -400) return std::copysign(0.0, value);
  if (precision < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(value / unit) * unit;
  }
  // Printing rounds the exact binary value correctly, ties to even.
  const std::string text = fmt::format("{:.{}f}", value, static_cast<int>(precision));
  return std::strtod(text.c_str(), nullptr);
}

Value filter_round(Interpreter&, const Value& value, const Bound& arguments) {
  const Int precision = arguments.integer_or(0, 0);
  const std::string method = arguments.has(1) ? arguments.text(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("round(): method must be common, ceil or floor");
  }
  require_defined(value);
  if (!value.is_number()) fail(fmt::format("round() wants a number, got {}", type_name(value)));
  if (method == "common") {
    return value.is_integral() ? round_integer(value.as_int(), precision)
                               : Value::real(round_float(value.as_float(), precision));
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.as_double() * unit;
  if (!std::isfinite(scaled)) fail("round(): the number is too large");
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

// --- conversions to text ---

Value filter_string(Interpreter& in, const Value& value, const Bound&) {
  return value.is_string() ? value : Value::string(to_text(value, in.budget()));
}

Value filter_safe(Interpreter& in, const Value& value, const Bound&) {
  return Value::string(to_text(value, in.budget()), true);
}

Value filter_escape(Interpreter& in, const Value& value, const Bound&) {
  return Value::string(escape_html(value, in.budget()), true);
}

Value filter_tojson(Interpreter& in, const Value& value, const Bound& arguments) {
  JsonStyle style;
  style.ensure_ascii = arguments.flag_or(0, false);
  const Value& indent = arguments[1];
  if (indent.is_string()) {
    style.indent = indent.text();
  } else if (!indent.is_none()) {
    const Int width = std::clamp<Int>(arguments.integer(1), 0, Int{1} << 40);
    in.budget().charge_text(static_cast<size_t>(width));
    style.indent = std::string(static_cast<size_t>(width), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (!arguments[2].is_none()) {
    const std::vector<Value> separators = to_vector(arguments[2], in.budget());
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      fail("tojson(): separators must be two strings");
    }
    style.item_separator = separators[0].text();
    style.key_separator = separators[1].text();
  }
  style.sort_keys = arguments.flag_or(3, false);
  return Value::string(to_json(value, style, in.budget()));
}

constexpr std::array<Builtin, 14> kValueFilters = {{
    {.name = "default", .call = &filter_default, .parameters = {"default_value", "boolean"}},
    {.name = "d", .call = &filter_default, .parameters = {"default_value", "boolean"}},
    {.name = "length", .call = &filter_length},
    {.name = "count", .call = &filter_length},
    {.name = "attr", .call = &filter_attr, .num_required = 1, .parameters = {"name"}},
    {.name = "int", .call = &filter_int, .parameters = {"default", "base"}},
    {.name = "float", .call = &filter_float, .parameters = {"default"}},
    {.name = "abs", .call = &filter_abs},
    {.name = "round", .call = &filter_round, .parameters = {"precision", "method"}},
    {.name = "string", .call = &filter_string},
    {.name = "safe", .call = &filter_safe},
    {.name = "escape", .call = &filter_escape},
    {.name = "e", .call = &filter_escape},
    {.name = "tojson",
     .call = &filter_tojson,
     .parameters = {"ensure_ascii", "indent", "separators", "sort_keys"}},
}};

// Filters of jinja2 for web pages and the like, which no chat template has a use for.
constexpr std::array<std::string_view, 9> kRefusedFilters = {
    "filesizeformat", "forceescape", "pprint",  "random", "striptags",
    "urlize",         "wordwrap",    "xmlattr", "unsafe"};

}  // namespace

std::span<const Builtin> value_filters() {
  return kValueFilters;
}

const Builtin* find_filter(std::string_view name) {
  for (const auto& table :
       {value_filters(), text_filters(), sequence_filters(), select_filters()}) {
    if (const Builtin* row = find_row(table, name); row != nullptr) return row;
  }
  return nullptr;
}

Error unknown_name_error(std::string_view kind, const std::string& name) {
  const bool is_refused =
      kind == "filter" &&
      std::find(kRefusedFilters.begin(), kRefusedFilters.end(), name) != kRefusedFilters.end();
  if (is_refused)
    return {Code::kUnsupported, fmt::format("the {} '{}' is not supported", kind, name)};
  return {Code::kInvalidArgument, fmt::format("no {} named '{}'", kind, name)};
}

AttributePath::AttributePath(const Value& attribute) {
  if (attribute.is_none()) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.text();
  while (true) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    int64_t number = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = all_characters(part, &is_digit) && parsed.ec == std::errc() &&
                           parsed.ptr == part.data() + part.size();
    parts_.push_back(is_number ? Value::integer(number) : Value::string(std::string(part)));
    if (dot == rest.size()) return;
    rest.remove_prefix(dot + 1);
  }
}

Value AttributePath::get(Interpreter& in, Value value, const Value& fallback) const {
  for (const Value& part : parts_) {
    value = in.item(value, part);
    if (value.is_undefined() && !fallback.is_none()) value = fallback;
  }
  return value;
}

}  // namespace tgi::jinja
