#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "engine/text/jinja/filters.h"
#include "engine/text/jinja/format.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/string_tools.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

template <std::string (*function)(std::string_view)>
Value mapped_text(Interpreter& in, const Value& value, const Bound&) {
  const std::string text = to_text(value, in.budget());
  in.budget().charge_text(2 * text.size());
  in.budget().charge(text.size() / 4);  // looks at each character
  return Value::string(function(text), value.is_markup());
}

// Unlike str.title, words begin only behind white space and opening brackets.
std::string title_words(std::string_view text) {
  constexpr std::string_view kBefore = "-({[<";
  std::string result;
  size_t start = 0;
  while (start < text.size()) {
    size_t at = start;
    const auto starts_word = [&](size_t position) {
      size_t next = position;
      const char32_t character = next_character(text, next);
      return is_space(character) ||
             (character < 0x80 &&
              kBefore.find(static_cast<char>(character)) != std::string_view::npos);
    };
    while (at < text.size() && starts_word(at)) at += character_size(text, at);
    result += text.substr(start, at - start);
    start = at;
    while (at < text.size() && !starts_word(at)) at += character_size(text, at);
    if (at == start) continue;
    const size_t first = character_size(text, start);
    result += to_upper(text.substr(start, first));
    result += to_lower(text.substr(start + first, at - start - first));
    start = at;
  }
  return result;
}

Value filter_trim(Interpreter& in, const Value& value, const Bound& arguments) {
  const std::string text = to_text(value, in.budget());
  if (arguments[0].is_none()) {
    return Value::string(std::string(strip(text, true, true)), value.is_markup());
  }
  const std::string& characters = arguments.text(0);
  if (characters.empty()) return Value::string(text, value.is_markup());
  return Value::string(std::string(strip(text, true, true, characters)), value.is_markup());
}

Value filter_replace(Interpreter& in, const Value& value, const Bound& arguments) {
  const std::string old_text = to_text(arguments[0], in.budget());
  const std::string new_text = to_text(arguments[1], in.budget());
  const Int count = arguments[2].is_none() ? -1 : arguments.integer(2);
  return Value::string(
      replace_all(to_text(value, in.budget()), old_text, new_text, count, in.budget()));
}

Value filter_center(Interpreter& in, const Value& value, const Bound& arguments) {
  return Value::string(pad_text(to_text(value, in.budget()), arguments.integer_or(0, 80), " ",
                                Padding::kBoth, in.budget()),
                       value.is_markup());
}

Value filter_indent(Interpreter& in, const Value& value, const Bound& arguments) {
  require_defined(value);
  if (!value.is_string()) fail(fmt::format("indent() wants a string, got {}", type_name(value)));
  std::string indent;
  if (arguments[0].is_string()) {
    indent = arguments[0].text();
  } else {
    const Int width = std::clamp<Int>(arguments.integer_or(0, 4), 0, Int{1} << 40);
    in.budget().charge_text(static_cast<size_t>(width));
    indent.assign(static_cast<size_t>(width), ' ');
  }
  const bool indents_first = arguments.flag_or(1, false);
  const bool indents_blank = arguments.flag_or(2, false);
  const std::string text = value.text() + "\n";
  std::string result;
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    if (!is_first) result += '\n';
    const bool indents = is_first ? indents_first : indents_blank || !line.empty();
    if (indents) result += indent;
    result += line;
    is_first = false;
    in.budget().charge(1 + (indent.size() + line.size()) / 16);
    if (result.size() > in.budget().max_text_bytes()) in.budget().charge_text(result.size());
  }
  return Value::string(std::move(result), value.is_markup());
}

Value filter_truncate(Interpreter& in, const Value& value, const Bound& arguments) {
  const Int length = arguments.integer_or(0, 255);
  const bool kills_words = arguments.flag_or(1, false);
  const std::string end = arguments.has(2) ? arguments.text(2) : "...";
  const Int leeway = arguments[3].is_none() ? 5 : arguments.integer(3);
  const auto end_length = static_cast<Int>(count_characters(end));
  if (length < end_length) fail("truncate(): the length is less than that of the end");
  if (leeway < 0) fail("truncate(): the leeway is negative");
  const std::optional<size_t> size = length_of(value);
  if (!size) fail(fmt::format("truncate() wants a string, got {}", type_name(value)));
  if (static_cast<Int>(*size) <= length + leeway) return value;
  if (!value.is_string()) fail(fmt::format("truncate() can't cut a {}", type_name(value)));
  const std::string& text = value.text();
  in.budget().charge_text(text.size());
  std::string_view kept = text;
  kept = kept.substr(0, byte_offset(text, static_cast<size_t>(length - end_length)));
  if (!kills_words) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return Value::string(std::string(kept) + end, value.is_markup());
}

Value filter_wordcount(Interpreter& in, const Value& value, const Bound&) {
  const std::string text = to_text(value, in.budget());
  Int words = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const bool continues = is_word_character(next_character(text, at));
    words += continues && !in_word ? 1 : 0;
    in_word = continues;
  }
  return Value::integer(words);
}

Value filter_format(Interpreter& in, const Value& value, const Bound& arguments) {
  const Value text = value.is_string() ? value : Value::string(to_text(value, in.budget()));
  if (arguments.all.named.empty()) {
    return Value::string(format_percent(text, Value::tuple(arguments.all.positional), in.budget()));
  }
  if (!arguments.all.positional.empty()) {
    fail("format() can't take positional and named arguments at the same time");
  }
  DictObject values;
  for (const auto& [name, argument] : arguments.all.named) {
    values.set(Value::string(name), argument, in.budget());
  }
  return Value::string(format_percent(text, Value::dict(std::move(values)), in.budget()));
}

std::string quote_url(std::string_view text, bool in_query) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~";
  std::string result;
  for (const char character : text) {
    if (kUnreserved.find(character) != std::string_view::npos || (character == '/' && !in_query)) {
      result += character;
    } else if (character == ' ' && in_query) {
      result += '+';
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(character));
    }
  }
  return result;
}

Value filter_urlencode(Interpreter& in, const Value& value, const Bound&) {
  if (value.is_string() || !is_iterable(value)) {
    const std::string text = to_text(value, in.budget());
    in.budget().charge_text(3 * text.size());
    return Value::string(quote_url(text, false));
  }
  const Value pairs =
      value.is(Type::kDict)
          ? Value::from(std::make_shared<DictViewObject>(DictViewKind::kItems, value))
          : value;
  std::string result;
  for (const Value& item : to_vector(pairs, in.budget())) {
    const std::vector<Value> pair = to_vector(item, in.budget());
    if (pair.size() != 2) fail("urlencode() wants pairs");
    if (!result.empty()) result += '&';
    result += quote_url(to_text(pair[0], in.budget()), true) + "=";
    result += quote_url(to_text(pair[1], in.budget()), true);
    in.budget().charge_text(result.size());
  }
  return Value::string(std::move(result));
}

constexpr std::array<Builtin, 12> kTextFilters = {{
    {.name = "upper", .call = &mapped_text<&to_upper>},
    {.name = "lower", .call = &mapped_text<&to_lower>},
    {.name = "capitalize", .call = &mapped_text<&capitalize>},
    {.name = "title", .call = &mapped_text<&title_words>},
    {.name = "trim", .call = &filter_trim, .parameters = {"chars"}},
    {.name = "replace",
     .call = &filter_replace,
     .num_required = 2,
     .parameters = {"old", "new", "count"}},
    {.name = "center", .call = &filter_center, .parameters = {"width"}},
    {.name = "indent", .call = &filter_indent, .parameters = {"width", "first", "blank"}},
    {.name = "truncate",
     .call = &filter_truncate,
     .parameters = {"length", "killwords", "end", "leeway"}},
    {.name = "wordcount", .call = &filter_wordcount},
    {.name = "format", .call = &filter_format, .is_variadic = true},
    {.name = "urlencode", .call = &filter_urlencode},
}};

}  // namespace

std::span<const Builtin> text_filters() {
  return kTextFilters;
}

}  // namespace tgi::jinja
