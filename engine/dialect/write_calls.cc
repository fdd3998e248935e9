#include "engine/dialect/write_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "engine/dialect/element_values.h"

namespace tgi::dialect {
namespace {

// As Python writes JSON, which is what models were trained on: ", " and ": ".
void write_json(const OrderedJson& value, bool python_words, std::string& out) {
  if (value.is_object() || value.is_array()) {
    out += value.is_object() ? '{' : '[';
    bool is_first = true;
    for (const auto& item : value.items()) {
      if (!is_first) out += ", ";
      is_first = false;
      if (value.is_object()) out += OrderedJson(item.key()).dump() + ": ";
      write_json(item.value(), python_words, out);
    }
    out += value.is_object() ? '}' : ']';
  } else if (python_words && value.is_boolean()) {
    out += value.get<bool>() ? "True" : "False";
  } else if (python_words && value.is_null()) {
    out += "None";
  } else {
    out += value.dump();
  }
}

std::string json_text(const OrderedJson& value, bool python_words = false) {
  std::string out;
  write_json(value, python_words, out);
  return out;
}

std::string object_text(const CallPart& part, const PastCall& call, size_t index) {
  OrderedJson out = OrderedJson::object();
  if (!part.id_key.empty()) out[std::string(part.id_key)] = std::to_string(index);
  out[std::string(part.name_key)] = call.name;
  out[std::string(part.arguments_key)] = call.arguments;
  return json_text(out);
}

std::string_view type_word(const OrderedJson& value) {
  for (const TypeWord& type : kTypeWords) {
    if (type.bit == type_bit(value)) return type.word;
  }
  return "";
}

std::string parameters_text(const CallPart& part, const PastCall& call) {
  const std::string_view line_end = part.on_lines ? "\n" : "";
  std::string out = "\n";
  for (const auto& item : call.arguments.items()) {
    out += part.open;
    out += item.key();
    const bool is_text = item.value().is_string();
    out += is_text || part.middle_of_json.empty() ? part.middle : part.middle_of_json;
    if (!part.type_close.empty()) {
      out += type_word(item.value());
      out += part.type_close;
    }
    if (!part.value_open.empty()) out += '\n';
    out += part.value_open;
    out += line_end;
    const std::string value = is_text ? item.value().get<std::string>() : json_text(item.value());
    const bool has_section =
        is_text && !part.section_open.empty() && value.find_first_of("<&\n") != std::string::npos;
    if (has_section) out += part.section_open;
    out += value;
    if (has_section) out += part.section_close;
    out += line_end;
    out += part.close;
    out += '\n';
  }
  return out;
}

std::string keywords_text(const CallPart& part, const PastCall& call) {
  std::string out;
  for (const auto& item : call.arguments.items()) {
    if (!out.empty()) out += ", ";
    out += item.key() + "=" + json_text(item.value(), part.has_python_words);
  }
  return out;
}

std::string entries_text(const OrderedJson& object, std::string_view quote);

std::string entry_text(const OrderedJson& value, std::string_view quote) {
  if (value.is_object()) return "{" + entries_text(value, quote) + "}";
  if (value.is_string()) return fmt::format("{0}{1}{0}", quote, value.get<std::string>());
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const OrderedJson& item : value) items.push_back(entry_text(item, quote));
  return fmt::format("[{}]", fmt::join(items, ","));
}

// Names in the order in which templates sort them.
std::string entries_text(const OrderedJson& object, std::string_view quote) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& item : object.items()) {
    entries.emplace_back(ascii_lower(item.key()),
                         item.key() + ":" + entry_text(item.value(), quote));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> texts;
  for (auto& [name, text] : entries) texts.push_back(std::move(text));
  return fmt::format("{}", fmt::join(texts, ","));
}

std::string elements_text(const OrderedJson& value, std::string_view mark) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object() && !value.is_array()) return value.dump();
  std::string out;
  for (const auto& item : value.items()) {
    if (item.value().is_null()) continue;
    const std::string name = value.is_array() ? std::string(kItemElement) : item.key();
    out += fmt::format("{0}<{1}>{2}{0}</{1}>", mark, name, elements_text(item.value(), mark));
  }
  return out;
}

void write_parts(const CallParts& parts, const PastCall& call, size_t index, std::string& out) {
  for (const CallPart& part : parts) {
    switch (part.kind) {
      case CallPart::Kind::kMark:
        if (!part.may_miss) out += part.text;
        break;
      case CallPart::Kind::kId:
        if (part.text.empty()) out += "call" + std::to_string(index);
        break;
      case CallPart::Kind::kGap:
        out += '\n';
        break;
      case CallPart::Kind::kName:
        out += call.name;
        break;
      case CallPart::Kind::kNumber:
        out += std::to_string(index + static_cast<size_t>(part.first));
        break;
      case CallPart::Kind::kArguments:
        out += json_text(call.arguments);
        break;
      case CallPart::Kind::kObject:
        out += object_text(part, call, index);
        break;
      case CallPart::Kind::kParameters:
        out += parameters_text(part, call);
        break;
      case CallPart::Kind::kKeywords:
        out += keywords_text(part, call);
        break;
      case CallPart::Kind::kEntries:
        out += entries_text(call.arguments, part.close);
        break;
      case CallPart::Kind::kElements:
        out += elements_text(call.arguments, part.open);
        break;
      case CallPart::Kind::kNone:
        return;
    }
  }
}

}  // namespace

std::string write_calls(const CallSyntax& syntax, const std::vector<PastCall>& calls) {
  std::string out;
  if (calls.empty()) return out;
  write_parts(syntax.begin, calls.front(), 0, out);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) write_parts(syntax.separator, calls[i], i, out);
    write_parts(syntax.call, calls[i], i, out);
  }
  write_parts(syntax.end, calls.back(), 0, out);
  return out;
}

}  // namespace tgi::dialect
