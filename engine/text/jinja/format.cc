#include "engine/text/jinja/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "base/utf8.h"
#include "engine/text/jinja/format_field.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

// --- "..." % values ---

class PercentFormatter {
 public:
  PercentFormatter(const Value& values, Budget& budget) : values_(values), budget_(budget) {}

  std::string run(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      if (text[at] != '%') {
        out += text[at++];
        continue;
      }
      if (++at >= text.size()) fail("incomplete format");
      if (text[at] == '%') {
        out += '%';
        ++at;
        continue;
      }
      out += convert(text, at);
      budget_.charge_text(out.size());
    }
    const bool is_tuple = values_.is(Type::kTuple);
    const size_t given = is_tuple ? values_.items().size() : 1;
    // Python lets a value that could be subscripted by %(name)s go unused.
    const bool may_be_left = values_.is(Type::kDict) || values_.is(Type::kList) ||
                             values_.is(Type::kRange) || values_.is_undefined();
    if (next_ < given && !(may_be_left && !is_tuple)) {
      fail("not all arguments converted during string formatting");
    }
    return out;
  }

 private:
  Value next_value() {
    const bool is_tuple = values_.is(Type::kTuple);
    if (next_ >= (is_tuple ? values_.items().size() : 1)) {
      fail("not enough arguments for format string");
    }
    return is_tuple ? values_.items()[next_++] : (++next_, values_);
  }

  size_t width_or_star(std::string_view text, size_t& at, bool& is_left) {
    if (at >= text.size() || text[at] != '*') return read_number(text, at);
    ++at;
    const Value width = next_value();
    if (!width.is_integral()) fail("* wants an integer");
    is_left = is_left || width.as_int() < 0;
    const Int size = width.as_int() < 0 ? -width.as_int() : width.as_int();
    return static_cast<size_t>(std::min<Int>(size, Int{1} << 40));
  }

  std::string convert(std::string_view text, size_t& at) {
    std::optional<Value> value;
    if (text[at] == '(') {
      const size_t close = text.find(')', at);
      if (close == std::string_view::npos) fail("incomplete format key");
      if (!values_.is(Type::kDict)) fail("format requires a mapping");
      const std::string_view key = text.substr(at + 1, close - at - 1);
      const Value* found = values_.dict().find(key);
      if (found == nullptr) fail(fmt::format("no value for the key '{}'", key));
      value = *found;
      at = close + 1;
    }
    FieldStyle style;
    bool is_left = false;
    bool has_zero = false;
    for (; at < text.size() && std::string_view("-+ #0").find(text[at]) != std::string_view::npos;
         ++at) {
      is_left = is_left || text[at] == '-';
      has_zero = has_zero || text[at] == '0';
      style.alternate = style.alternate || text[at] == '#';
      if (text[at] == '+' || (text[at] == ' ' && style.sign != '+')) style.sign = text[at];
    }
    style.width = width_or_star(text, at, is_left);
    if (at < text.size() && text[at] == '.') {
      bool ignored = false;
      style.precision = width_or_star(text, ++at, ignored);
      check_precision(style);
    }
    while (at < text.size() && std::string_view("hlL").find(text[at]) != std::string_view::npos)
      ++at;
    if (at >= text.size()) fail("incomplete format");
    style.type = text[at++];
    style.align = is_left ? '<' : has_zero ? '=' : '>';
    if (has_zero && !is_left) style.fill = "0";
    return finish(value ? *value : next_value(), style);
  }

  std::string finish(const Value& value, FieldStyle style) {
    const char type = style.type;
    if (type == 's' || type == 'r' || type == 'a') {
      style.fill = " ";
      if (style.align == '=') style.align = '>';
      std::string text = type == 's' ? to_text(value, budget_) : to_repr(value, budget_);
      return format_text(std::move(text), style, '>', budget_);
    }
    if (type == 'c') return character(value, style);
    if (std::string_view("diuxXo").find(type) != std::string_view::npos) {
      require_number(value, type);
      const bool is_decimal_type = type == 'd' || type == 'i' || type == 'u';
      if (!value.is_integral() && (!is_decimal_type || !std::isfinite(value.as_float()) ||
                                   std::fabs(value.as_float()) > 1e37)) {
        fail(fmt::format("%{} format: an integer is required, not {}", type, type_name(value)));
      }
      const Int number = value.is_integral() ? value.as_int() : static_cast<Int>(value.as_float());
      return format_integer(number, style, budget_);
    }
    if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
      require_number(value, type);
      return format_float(value.as_double(), style, budget_);
    }
    fail(fmt::format("unsupported format character '{}'", type));
  }

  static void require_number(const Value& value, char type) {
    require_defined(value);
    if (!value.is_number()) {
      fail(fmt::format("%{} format: a real number is required, not {}", type, type_name(value)));
    }
  }

  std::string character(const Value& value, FieldStyle style) {
    std::string text;
    if (value.is_integral() && value.as_int() >= 0 && value.as_int() <= 0x10FFFF &&
        (value.as_int() < 0xD800 || value.as_int() > 0xDFFF)) {
      append_utf8(static_cast<char32_t>(value.as_int()), text);
    } else if (value.is_string() && count_characters(value.text()) == 1) {
      text = value.text();
    } else {
      fail("%c requires an integer or a character");
    }
    style.fill = " ";
    style.precision.reset();
    if (style.align == '=') style.align = '>';
    return format_text(std::move(text), style, '>', budget_);
  }

  const Value& values_;
  Budget& budget_;
  size_t next_ = 0;
};

// --- format specifications of "{}" ---

FieldStyle parse_specification(std::string_view text) {
  constexpr std::string_view kAligns = "<>=^";
  FieldStyle style;
  size_t at = 0;
  if (!text.empty()) {
    const size_t first = character_size(text, 0);
    if (first < text.size() && kAligns.find(text[first]) != std::string_view::npos) {
      style.fill = std::string(text.substr(0, first));
      style.align = text[first];
      at = first + 1;
    } else if (kAligns.find(text[0]) != std::string_view::npos) {
      style.align = text[0];
      at = 1;
    }
  }
  const auto take = [&](std::string_view accepted) {
    if (at >= text.size() || accepted.find(text[at]) == std::string_view::npos) return '\0';
    return text[at++];
  };
  if (const char sign = take("+- "); sign != '\0') style.sign = sign;
  style.alternate = take("#") != '\0';
  if (take("0") != '\0' && style.align == '\0') {
    style.fill = "0";
    style.align = '=';
  }
  style.width = read_number(text, at);
  style.grouping = take(",_");
  if (take(".") != '\0') {
    const size_t before = at;
    style.precision = read_number(text, at);
    if (at == before) fail("format specifier is missing its precision");
    check_precision(style);
  }
  style.type = take("sdbcoxXeEfFgGn%");
  if (at != text.size()) fail(fmt::format("invalid format specifier '{}'", text));
  return style;
}

}  // namespace

std::string format_percent(const Value& text, const Value& values, Budget& budget) {
  return PercentFormatter(values, budget).run(text.text());
}

std::string format_value(const Value& value, std::string_view specification, Budget& budget) {
  if (specification.empty()) return to_text(value, budget);
  const FieldStyle style = parse_specification(specification);
  constexpr std::string_view kIntegerTypes = "dboxXn";
  constexpr std::string_view kFloatTypes = "eEfFgG%n";
  const bool is_text = value.is_string() && (style.type == '\0' || style.type == 's');
  if (is_text && style.align != '=' && style.sign == '-' && style.grouping == '\0') {
    return format_text(value.text(), style, '<', budget);
  }
  const bool is_number = value.is(Type::kInt) || value.is(Type::kBool);
  if (is_number &&
      (style.type == '\0' || kIntegerTypes.find(style.type) != std::string_view::npos)) {
    if (style.precision) fail("precision not allowed in integer format specifier");
    return format_integer(value.as_int(), style, budget);
  }
  if (value.is_number() &&
      (style.type == '\0' || kFloatTypes.find(style.type) != std::string_view::npos)) {
    return format_float(value.as_double(), style, budget);
  }
  fail(fmt::format("format specifier '{}' does not fit an object of type '{}'", specification,
                   type_name(value)));
}

std::string format_braces(std::string_view text, const FieldLookup& lookup, Budget& budget) {
  std::string out;
  size_t next_field = 0;
  const auto numbered = [&](std::string_view field) {
    const bool needs_number = field.empty() || field[0] == '.' || field[0] == '[';
    return needs_number ? std::to_string(next_field++) + std::string(field) : std::string(field);
  };
  for (size_t at = 0; at < text.size();) {
    const char character = text[at++];
    if (character != '{' && character != '}') {
      out += character;
      continue;
    }
    if (at < text.size() && text[at] == character) {
      out += character;
      ++at;
      continue;
    }
    const size_t close = text.find('}', at);
    if (character == '}' || close == std::string_view::npos) {
      fail(fmt::format("single '{}' encountered in format string", character));
    }
    std::string_view field = text.substr(at, close - at);
    at = close + 1;
    if (field.find('{') != std::string_view::npos) {
      fail_unsupported("replacement fields inside replacement fields are not supported");
    }
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view specification = field.substr(std::min(colon + 1, field.size()));
    field = field.substr(0, colon);
    const size_t mark = std::min(field.find('!'), field.size());
    const std::string_view conversion = field.substr(mark);
    Value value = lookup(numbered(field.substr(0, mark)));
    if (conversion == "!r") {
      value = Value::string(to_repr(value, budget));
    } else if (conversion == "!s") {
      value = Value::string(to_text(value, budget));
    } else if (!conversion.empty()) {
      fail(fmt::format("unknown conversion '{}' in a format string", conversion));
    }
    out += format_value(value, specification, budget);
    budget.charge_text(out.size());
  }
  return out;
}

}  // namespace tgi::jinja
