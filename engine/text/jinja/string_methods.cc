// The methods of str (declared in methods.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "engine/text/jinja/format.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/methods.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/string_tools.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

// A string made from `self`, markup if that is.
Value like(const Value& self, std::string text) {
  return Value::string(std::move(text), self.is_markup());
}

template <std::string (*function)(std::string_view)>
Value mapped(Interpreter& in, const Value& self, const Bound&) {
  in.budget().charge_text(2 * self.text().size());
  in.budget().charge(self.text().size() / 4);  // looks at each character
  return like(self, function(self.text()));
}

template <bool (*test)(std::string_view)>
Value tested(Interpreter& in, const Value& self, const Bound&) {
  in.budget().charge(self.text().size() / 16);
  return Value::boolean(test(self.text()));
}

template <bool (*test)(char32_t)>
Value every(Interpreter& in, const Value& self, const Bound&) {
  in.budget().charge(self.text().size() / 16);
  return Value::boolean(all_characters(self.text(), test));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

bool is_all_printable(std::string_view text) {
  return text.empty() || all_characters(text, &is_printable);
}

template <bool left, bool right>
Value stripped(Interpreter& in, const Value& self, const Bound& arguments) {
  const bool has_set = !arguments[0].is_none();
  in.budget().charge_text(self.text().size());
  if (has_set && arguments.text(0).empty()) return self;
  const std::string_view set = has_set ? std::string_view(arguments.text(0)) : std::string_view();
  return like(self, std::string(strip(self.text(), left, right, set)));
}

template <bool from_right>
Value split(Interpreter& in, const Value& self, const Bound& arguments) {
  const Int max_splits = arguments.integer_or(1, -1);
  in.budget().charge_text(self.text().size());
  std::vector<std::string_view> parts;
  if (arguments[0].is_none()) {
    parts = split_words(self.text(), max_splits, from_right);
  } else {
    if (arguments.text(0).empty()) fail("split(): empty separator");
    parts = split_at(self.text(), arguments.text(0), max_splits, from_right);
  }
  return list_of_strings(parts, self.is_markup(), in.budget());
}

Value splitlines(Interpreter& in, const Value& self, const Bound& arguments) {
  in.budget().charge_text(self.text().size());
  return list_of_strings(split_lines(self.text(), arguments.flag_or(0, false)), self.is_markup(),
                         in.budget());
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::string& text = self.text();
  const std::string& separator = arguments.text(0);
  if (separator.empty()) fail("partition(): empty separator");
  in.budget().charge_text(text.size());
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  const auto part = [&](size_t start, size_t size) { return like(self, text.substr(start, size)); };
  if (at == std::string::npos) {
    if (from_right) return Value::tuple({like(self, ""), like(self, ""), self});
    return Value::tuple({self, like(self, ""), like(self, "")});
  }
  return Value::tuple(
      {part(0, at), part(at, separator.size()), part(at + separator.size(), std::string::npos)});
}

// The part of the text between the arguments `first` and `first + 1`, by characters, and where it
// starts. Nothing when the start is behind the end of the text, where not even "" is found.
struct Part {
  std::string_view text;
  size_t start;  // in characters
};

std::optional<Part> part_of(const Value& self,
                            const Bound& arguments,
                            size_t first,
                            Budget& budget) {
  const std::string_view text = self.text();
  budget.charge(text.size() / 16 + 1);
  if (arguments[first].is_none() && arguments[first + 1].is_none()) return Part{text, 0};
  const auto length = static_cast<Int>(count_characters(text));
  const auto bound = [&](size_t i, Int fallback) {
    const Int given = arguments[i].is_none() ? fallback : arguments.integer(i);
    return given < 0 ? std::max<Int>(given + length, 0) : given;
  };
  const Int start = bound(first, 0);
  const Int stop = std::min(bound(first + 1, length), length);
  if (start > length || start > stop) return std::nullopt;
  const size_t from = byte_offset(text, static_cast<size_t>(start));
  const size_t to = byte_offset(text, static_cast<size_t>(stop));
  return Part{text.substr(from, to - from), static_cast<size_t>(start)};
}

template <bool at_end>
Value has_affix(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::optional<Part> part = part_of(self, arguments, 1, in.budget());
  const auto matches = [&](const std::string& affix) {
    if (!part || affix.size() > part->text.size()) return false;
    const size_t at = at_end ? part->text.size() - affix.size() : 0;
    return part->text.substr(at, affix.size()) == affix;
  };
  if (!arguments[0].is(Type::kTuple)) return Value::boolean(matches(arguments.text(0)));
  for (const Value& affix : arguments[0].items()) {
    if (!affix.is_string()) fail(fmt::format("{}() wants strings", arguments.name));
    if (matches(affix.text())) return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <bool from_right, bool must_be_there>
Value find(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::string& wanted = arguments.text(0);
  const std::optional<Part> part = part_of(self, arguments, 1, in.budget());
  size_t at = std::string_view::npos;
  if (part) at = from_right ? part->text.rfind(wanted) : part->text.find(wanted);
  if (at != std::string_view::npos) {
    return Value::integer(
        static_cast<Int>(part->start + count_characters(part->text.substr(0, at))));
  }
  if (must_be_there) fail(fmt::format("{}(): substring not found", arguments.name));
  return Value::integer(-1);
}

Value count(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::string& wanted = arguments.text(0);
  const std::optional<Part> part = part_of(self, arguments, 1, in.budget());
  if (!part) return Value::integer(0);
  if (wanted.empty()) return Value::integer(static_cast<Int>(count_characters(part->text)) + 1);
  Int found = 0;
  for (size_t at = part->text.find(wanted); at != std::string_view::npos;
       at = part->text.find(wanted, at + wanted.size())) {
    ++found;
  }
  return Value::integer(found);
}

Value replace(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::string& old_text = arguments.text(0);
  const std::string& new_text = arguments.text(1);
  return like(
      self, replace_all(self.text(), old_text, new_text, arguments.integer_or(2, -1), in.budget()));
}

Value join(Interpreter& in, const Value& self, const Bound& arguments) {
  std::string text;
  bool is_first = true;
  for (const Value& item : to_vector(arguments[0], in.budget())) {
    if (!item.is_string()) {
      fail(fmt::format("join() wants strings, got {}", type_name(item)));
    }
    if (!is_first) text += self.text();
    is_first = false;
    text += item.text();
    in.budget().charge_text(text.size());
  }
  return like(self, std::move(text));
}

template <bool at_end>
Value remove_affix(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::string& affix = arguments.text(0);
  const std::string& text = self.text();
  in.budget().charge_text(text.size());
  if (affix.size() > text.size()) return self;
  const size_t at = at_end ? text.size() - affix.size() : 0;
  if (text.compare(at, affix.size(), affix) != 0) return self;
  return like(self, at_end ? text.substr(0, at) : text.substr(affix.size()));
}

template <Padding padding>
Value padded(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::string fill = arguments.has(1) ? arguments.text(1) : " ";
  if (count_characters(fill) != 1) fail("the fill character must be exactly one character long");
  return like(self, pad_text(self.text(), arguments.integer(0), fill, padding, in.budget()));
}

Value zfill(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::string& text = self.text();
  const bool has_sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  const Int width = arguments.integer(0) - (has_sign ? 1 : 0);
  return like(self, text.substr(0, has_sign ? 1 : 0) +
                        pad_text(std::string_view(text).substr(has_sign ? 1 : 0), width, "0",
                                 Padding::kBefore, in.budget()));
}

Value expand_tabs(Interpreter& in, const Value& self, const Bound& arguments) {
  const Int size = std::clamp<Int>(arguments.integer_or(0, 8), 0, Int{1} << 30);
  std::string text;
  size_t column = 0;
  for (const char character : self.text()) {
    if (character == '\t') {
      const size_t missing =
          size == 0 ? 0 : static_cast<size_t>(size) - column % static_cast<size_t>(size);
      in.budget().charge_text(text.size() + missing);
      text.append(missing, ' ');
      column += missing;
      continue;
    }
    text += character;
    column =
        character == '\n' || character == '\r' ? 0 : column + (starts_character(character) ? 1 : 0);
  }
  return like(self, std::move(text));
}

Value format(Interpreter& in, const Value& self, const Bound& arguments) {
  return Value::string(format_braces(
      self.text(), [&](std::string_view field) { return look_up_field(in, field, arguments.all); },
      in.budget()));
}

Value format_map(Interpreter& in, const Value& self, const Bound& arguments) {
  if (!arguments[0].is(Type::kDict)) fail("format_map() wants a dict");
  Arguments named;
  for (const DictObject::Entry& entry : arguments[0].dict().entries) {
    if (entry.key.is_string()) named.named.emplace_back(entry.key.text(), entry.value);
  }
  return Value::string(format_braces(
      self.text(), [&](std::string_view field) { return look_up_field(in, field, named); },
      in.budget()));
}

Value unsupported(Interpreter&, const Value&, const Bound& arguments) {
  fail_unsupported(fmt::format("the string method {}() is not supported", arguments.name));
}

constexpr std::array<Builtin, 47> kStringMethods = {{
    {.name = "strip", .call = &stripped<true, true>, .parameters = {"/chars"}},
    {.name = "lstrip", .call = &stripped<true, false>, .parameters = {"/chars"}},
    {.name = "rstrip", .call = &stripped<false, true>, .parameters = {"/chars"}},
    {.name = "split", .call = &split<false>, .parameters = {"sep", "maxsplit"}},
    {.name = "rsplit", .call = &split<true>, .parameters = {"sep", "maxsplit"}},
    {.name = "splitlines", .call = &splitlines, .parameters = {"keepends"}},
    {.name = "partition", .call = &partition<false>, .num_required = 1, .parameters = {"/sep"}},
    {.name = "rpartition", .call = &partition<true>, .num_required = 1, .parameters = {"/sep"}},
    {.name = "startswith",
     .call = &has_affix<false>,
     .num_required = 1,
     .parameters = {"/prefix", "/start", "/end"}},
    {.name = "endswith",
     .call = &has_affix<true>,
     .num_required = 1,
     .parameters = {"/suffix", "/start", "/end"}},
    {.name = "find",
     .call = &find<false, false>,
     .num_required = 1,
     .parameters = {"/sub", "/start", "/end"}},
    {.name = "rfind",
     .call = &find<true, false>,
     .num_required = 1,
     .parameters = {"/sub", "/start", "/end"}},
    {.name = "index",
     .call = &find<false, true>,
     .num_required = 1,
     .parameters = {"/sub", "/start", "/end"}},
    {.name = "rindex",
     .call = &find<true, true>,
     .num_required = 1,
     .parameters = {"/sub", "/start", "/end"}},
    {.name = "count", .call = &count, .num_required = 1, .parameters = {"/sub", "/start", "/end"}},
    {.name = "replace",
     .call = &replace,
     .num_required = 2,
     .parameters = {"/old", "/new", "/count"}},
    {.name = "join", .call = &join, .num_required = 1, .parameters = {"/iterable"}},
    {.name = "removeprefix",
     .call = &remove_affix<false>,
     .num_required = 1,
     .parameters = {"/prefix"}},
    {.name = "removesuffix",
     .call = &remove_affix<true>,
     .num_required = 1,
     .parameters = {"/suffix"}},
    {.name = "upper", .call = &mapped<&to_upper>},
    {.name = "lower", .call = &mapped<&to_lower>},
    {.name = "title", .call = &mapped<&to_title>},
    {.name = "capitalize", .call = &mapped<&capitalize>},
    {.name = "swapcase", .call = &mapped<&swap_case>},
    {.name = "casefold", .call = &mapped<&fold_case>},
    {.name = "center",
     .call = &padded<Padding::kBoth>,
     .num_required = 1,
     .parameters = {"/width", "/fill"}},
    {.name = "ljust",
     .call = &padded<Padding::kAfter>,
     .num_required = 1,
     .parameters = {"/width", "/fill"}},
    {.name = "rjust",
     .call = &padded<Padding::kBefore>,
     .num_required = 1,
     .parameters = {"/width", "/fill"}},
    {.name = "zfill", .call = &zfill, .num_required = 1, .parameters = {"/width"}},
    {.name = "expandtabs", .call = &expand_tabs, .parameters = {"tabsize"}},
    {.name = "format", .call = &format, .is_variadic = true},
    {.name = "format_map", .call = &format_map, .num_required = 1, .parameters = {"/mapping"}},
    {.name = "isalpha", .call = &every<&is_letter>},
    {.name = "isdigit", .call = &every<&is_digit>},
    {.name = "isdecimal", .call = &every<&is_decimal>},
    {.name = "isnumeric", .call = &every<&is_numeric>},
    {.name = "isalnum", .call = &every<&is_alphanumeric>},
    {.name = "isspace", .call = &every<&is_space>},
    {.name = "isascii", .call = &tested<&is_ascii>},
    {.name = "isprintable", .call = &tested<&is_all_printable>},
    {.name = "islower", .call = &tested<&is_lower>},
    {.name = "isupper", .call = &tested<&is_upper>},
    {.name = "istitle", .call = &tested<&is_title>},
    {.name = "isidentifier", .call = &tested<&is_identifier>},
    {.name = "encode", .call = &unsupported, .is_variadic = true},
    {.name = "translate", .call = &unsupported, .is_variadic = true},
    {.name = "maketrans", .call = &unsupported, .is_variadic = true},
}};

}  // namespace

const Builtin* find_string_method(std::string_view name) {
  return find_row(kStringMethods, name);
}

}  // namespace tgi::jinja
