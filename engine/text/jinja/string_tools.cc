#include "engine/text/jinja/string_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

// Moves over the characters at the front (or the back) that are, or are not, white space.
size_t run_length(std::string_view text, bool from_right, bool of_space) {
  size_t length = 0;
  while (length < text.size()) {
    const size_t at = from_right ? character_begin(text, text.size() - length - 1) : length;
    size_t end = at;
    if (is_space(next_character(text, end)) != of_space) break;
    length += end - at;
  }
  return length;
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view text, Int max_splits, bool from_right) {
  std::vector<std::string_view> parts;
  while (true) {
    text = strip(text, !from_right, from_right);
    if (text.empty()) break;
    if (max_splits >= 0 && static_cast<Int>(parts.size()) == max_splits) {
      parts.push_back(text);  // with the white space at its far end
      break;
    }
    const size_t length = run_length(text, from_right, false);
    if (from_right) {
      parts.push_back(text.substr(text.size() - length));
      text.remove_suffix(length);
    } else {
      parts.push_back(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at(std::string_view text,
                                       std::string_view separator,
                                       Int max_splits,
                                       bool from_right) {
  std::vector<std::string_view> parts;
  while (max_splits < 0 || static_cast<Int>(parts.size()) < max_splits) {
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    if (from_right) {
      parts.push_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    } else {
      parts.push_back(text.substr(0, at));
      text = text.substr(at + separator.size());
    }
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

Value list_of_strings(const std::vector<std::string_view>& parts, bool are_markup, Budget& budget) {
  budget.charge_elements(parts.size());
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) {
    items.push_back(Value::string(std::string(part), are_markup));
  }
  return Value::list(std::move(items));
}

std::string replace_all(std::string_view text,
                        std::string_view old_text,
                        std::string_view new_text,
                        Int count,
                        Budget& budget) {
  budget.charge_text(text.size());
  std::string result;
  size_t done = 0;
  size_t at = text.find(old_text);
  while (at != std::string_view::npos && count != 0) {
    result.append(text, done, at - done);
    result += new_text;
    if (result.size() > budget.max_text_bytes()) budget.charge_text(result.size());
    budget.charge(1 + new_text.size() / 16);
    done = at + old_text.size();
    --count;
    if (!old_text.empty()) {
      at = text.find(old_text, done);
    } else {
      at = at < text.size() ? at + character_size(text, at) : std::string_view::npos;
    }
  }
  result.append(text, done, std::string_view::npos);
  budget.charge_text(result.size());
  return result;
}

std::string pad_text(
    std::string_view text, Int width, std::string_view fill, Padding padding, Budget& budget) {
  const auto length = static_cast<Int>(count_characters(text));
  budget.charge_text(text.size());
  if (width <= length) return std::string(text);
  const auto missing = static_cast<size_t>(std::min<Int>(width - length, Int{1} << 40));
  budget.charge_text(missing * fill.size());
  // As Python centers: the odd one goes to the left when the width is odd.
  size_t before = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  if (padding == Padding::kBefore) before = missing;
  if (padding == Padding::kAfter) before = 0;
  std::string result;
  for (size_t i = 0; i < before; ++i) result += fill;
  result += text;
  for (size_t i = before; i < missing; ++i) result += fill;
  return result;
}

Value look_up_field(Interpreter& in, std::string_view field, const Arguments& arguments) {
  const size_t end = std::min(field.find_first_of(".["), field.size());
  const std::string_view first = field.substr(0, end);
  field.remove_prefix(end);
  size_t index = 0;
  const auto parsed = std::from_chars(first.data(), first.data() + first.size(), index);
  Value value;
  if (!first.empty() && parsed.ptr == first.data() + first.size()) {
    if (index >= arguments.positional.size()) {
      fail(fmt::format("replacement index {} is out of range", index));
    }
    value = arguments.positional[index];
  } else {
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& argument) { return argument.first == first; });
    if (named == arguments.named.end()) fail(fmt::format("no value for the field '{}'", first));
    value = named->second;
  }
  while (!field.empty()) {
    const bool is_item = field[0] == '[';
    field.remove_prefix(1);
    const size_t stop = std::min(field.find_first_of(is_item ? "]" : ".["), field.size());
    const std::string key(field.substr(0, stop));
    if (key.empty()) fail("empty attribute in a format string");
    field.remove_prefix(std::min(is_item ? stop + 1 : stop, field.size()));
    if (!is_item) {
      value = in.attribute(value, key);
      continue;
    }
    const auto number = std::from_chars(key.data(), key.data() + key.size(), index);
    const bool is_number = number.ptr == key.data() + key.size();
    value =
        in.item(value, is_number ? Value::integer(static_cast<Int>(index)) : Value::string(key));
  }
  return value;
}

}  // namespace tgi::jinja
