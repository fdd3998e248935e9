#include "engine/text/jinja/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/utf8.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

void append_string_repr(const std::string& text, std::string& out) {
  const bool has_single = text.find('\'') != std::string::npos;
  const bool has_double = text.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = next_character(text, at);
    constexpr std::string_view kNamed = "\n\r\t\\";
    constexpr std::string_view kLetters = "nrt\\";
    const size_t named =
        character < 0x80 ? kNamed.find(static_cast<char>(character)) : std::string_view::npos;
    if (character == static_cast<unsigned char>(quote)) {
      out += '\\';
      out += quote;
    } else if (named != std::string_view::npos) {
      out += '\\';
      out += kLetters[named];
    } else if (is_printable(character)) {
      out.append(text, start, at - start);
    } else if (character < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(character));
    } else if (character < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(character));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(character));
    }
  }
  out += quote;
}

class ReprWriter {
 public:
  explicit ReprWriter(Budget& budget) : budget_(budget) {}

  std::string run(const Value& value) {
    write(value);
    budget_.charge_text(out_.size());
    return std::move(out_);
  }

 private:
  void write(const Value& value) {
    budget_.charge(2);
    if (out_.size() > budget_.max_text_bytes()) budget_.charge_text(out_.size());
    switch (value.type()) {
      case Type::kString:
        return write_string(value);
      case Type::kList:
      case Type::kTuple:
        return write_sequence(value);
      case Type::kDict:
        return write_dict(value.dict());
      case Type::kDictView:
        return write_view(value);
      case Type::kRange:
        return write_range(value.object<RangeObject>());
      case Type::kNamespace:
        return write_namespace(value.object<NamespaceObject>());
      default:
        out_ += simple_repr(value);
    }
  }

  static std::string simple_repr(const Value& value) {
    switch (value.type()) {
      case Type::kNone:
        return "None";
      case Type::kBool:
        return value.as_bool() ? "True" : "False";
      case Type::kInt:
        return print_integer(value.as_int());
      case Type::kFloat:
        return print_float(value.as_float());
      case Type::kUndefined:
        return "Undefined";
      case Type::kIterator:
        return fmt::format("<{}>", value.object<IteratorObject>().name);
      default:
        return describe_callable(value);
    }
  }

  void write_string(const Value& value) {
    budget_.charge(value.text().size() / 16);
    if (value.is_markup()) out_ += "Markup(";
    append_string_repr(value.text(), out_);
    if (value.is_markup()) out_ += ')';
  }

  void write_items(const std::vector<Value>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      write(items[i]);
    }
  }

  void write_sequence(const Value& value) {
    const bool is_list = value.is(Type::kList);
    out_ += is_list ? '[' : '(';
    write_items(value.items());
    out_ += is_list ? "]" : value.items().size() == 1 ? ",)" : ")";
  }

  void write_dict(const DictObject& dict) {
    out_ += '{';
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) out_ += ", ";
      write(dict.entries[i].key);
      out_ += ": ";
      write(dict.entries[i].value);
    }
    out_ += '}';
  }

  void write_view(const Value& value) {
    out_ += type_name(value);
    out_ += "([";
    write_items(to_vector(value, budget_));
    out_ += "])";
  }

  void write_range(const RangeObject& range) {
    out_ += fmt::format("range({}, {}", range.start, range.stop);
    out_ += range.step == 1 ? ")" : fmt::format(", {})", range.step);
  }

  // Namespaces are the one kind of value that can hold itself, or a chain of any length.
  void write_namespace(NamespaceObject& space) {
    constexpr int kMaxChain = 50;
    if (space.is_being_printed) {
      out_ += "<Namespace {...}>";
      return;
    }
    if (++namespaces_ > kMaxChain) fail(fmt::format("namespaces nest deeper than {}", kMaxChain));
    space.is_being_printed = true;
    out_ += "<Namespace {";
    for (size_t i = 0; i < space.attributes.size(); ++i) {
      if (i > 0) out_ += ", ";
      append_string_repr(space.attributes[i].first, out_);
      out_ += ": ";
      write(space.attributes[i].second);
    }
    out_ += "}>";
    space.is_being_printed = false;
    --namespaces_;
  }

  Budget& budget_;
  std::string out_;
  int namespaces_ = 0;
};

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

  std::string run(const Value& value) {
    write(value);
    budget_.charge_text(out_.size());
    return std::move(out_);
  }

 private:
  void write(const Value& value) {
    budget_.charge(2);
    if (out_.size() > budget_.max_text_bytes()) budget_.charge_text(out_.size());
    switch (value.type()) {
      case Type::kNone:
        out_ += "null";
        return;
      case Type::kBool:
        out_ += value.as_bool() ? "true" : "false";
        return;
      case Type::kInt:
        out_ += print_integer(value.as_int());
        return;
      case Type::kFloat:
        out_ += json_float(value.as_float());
        return;
      case Type::kString:
        write_string(value.text());
        return;
      case Type::kList:
      case Type::kTuple:
        write_items(value.items());
        return;
      case Type::kDict:
        write_dict(value.dict());
        return;
      default:
        fail(fmt::format("object of type {} is not JSON serializable", type_name(value)));
    }
  }

  static std::string json_float(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return print_float(value);
  }

  void new_line() {
    if (!style_.indent) return;
    budget_.charge(1 + style_.indent->size() * static_cast<size_t>(level_) / 16);
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  void write_items(const std::vector<Value>& items) {
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line();
      write(items[i]);
    }
    --level_;
    if (!items.empty()) new_line();
    out_ += ']';
  }

  void write_dict(const DictObject& dict) {
    std::vector<const DictObject::Entry*> entries;
    for (const DictObject::Entry& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* left, const auto* right) {
        return less(left->key, right->key, budget_);
      });
    }
    out_ += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line();
      write_key(entries[i]->key);
      out_ += style_.key_separator;
      write(entries[i]->value);
    }
    --level_;
    if (!entries.empty()) new_line();
    out_ += '}';
  }

  void write_key(const Value& key) {
    if (key.is_string()) return write_string(key.text());
    if (!key.is_none() && !key.is_number()) {
      fail(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
    out_ += '"';
    write(key);
    out_ += '"';
  }

  void write_string(const std::string& text) {
    budget_.charge(text.size() / 16);
    out_ += '"';
    for (size_t at = 0; at < text.size();) {
      const size_t start = at;
      const char32_t character = next_character(text, at);
      constexpr std::string_view kNamed = "\"\\\n\r\t\f\b";
      constexpr std::string_view kLetters = "\"\\nrtfb";
      const size_t named =
          character < 0x80 ? kNamed.find(static_cast<char>(character)) : std::string_view::npos;
      if (named != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[named];
      } else if (character < 0x20 || (style_.ensure_ascii && character > 0x7E)) {
        write_escape(character);
      } else {
        out_.append(text, start, at - start);
      }
    }
    out_ += '"';
  }

  void write_escape(char32_t character) {
    auto code = static_cast<uint32_t>(character);
    if (code >= 0x10000) {
      code -= 0x10000;
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
    } else {
      out_ += fmt::format("\\u{:04x}", code);
    }
  }

  const JsonStyle& style_;
  Budget& budget_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

std::string to_text(const Value& value, Budget& budget) {
  if (value.is_string()) {
    budget.charge_text(value.text().size());
    return value.text();
  }
  if (value.is_undefined()) return {};
  return to_repr(value, budget);
}

std::string to_repr(const Value& value, Budget& budget) {
  return ReprWriter(budget).run(value);
}

std::string print_integer(Int value, int base) {
  const bool is_negative = value < 0;
  std::string digits;
  do {
    const int digit = static_cast<int>(value % base);
    digits += "0123456789abcdef"[digit < 0 ? -digit : digit];
    value /= base;
  } while (value != 0);
  if (is_negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string print_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                     std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<size_t>(written.ptr - buffer.data()));
  const size_t e = text.find('e');
  int exponent = 0;
  const size_t sign = text[e + 1] == '+' ? 1 : 0;
  std::from_chars(text.data() + e + 1 + sign, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  std::string result(buffer.data(), static_cast<size_t>(fixed.ptr - buffer.data()));
  if (result.find('.') == std::string::npos) result += ".0";
  return result;
}

std::string to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  return JsonWriter(style, budget).run(value);
}

}  // namespace tgi::jinja
