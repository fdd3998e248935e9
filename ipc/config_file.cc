#include "ipc/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/files/regular_file.h"
#include "base/manual/usage.h"

namespace tgi::ipc {
namespace {

constexpr std::array<std::string_view, 3> kSections = {kDaemonSection, kServeSection,
                                                       kTerminalSection};

[[noreturn]] void fail(const std::string& path, size_t line, const std::string& what) {
  throw Error(Code::kInvalidArgument, fmt::format("{}:{}: {}", path, line, what));
}

// Where a value stands in the text; lines from 1.
struct Place {
  size_t first_line = 0;
  size_t last_line = 0;
};

Place place_of(const toml::node& node) {
  return {.first_line = node.source().begin.line, .last_line = node.source().end.line};
}

toml::table parse_text(const std::string& text, const std::string& path) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    fail(path, error.source().begin.line, what);
  }
}

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* is_on = node.as_boolean()) return is_on->get() ? "true" : "false";
  return std::nullopt;
}

ConfigEntry read_entry(std::string section,
                       std::string name,
                       const toml::node& node,
                       const std::string& path) {
  ConfigEntry entry{.section = std::move(section),
                    .name = std::move(name),
                    .values = {},
                    .is_list = node.is_array(),
                    .line = static_cast<int>(node.source().begin.line)};
  const auto take = [&](const toml::node& value) {
    const std::optional<std::string> text = scalar_text(value);
    if (!text) {
      fail(path, place_of(value).first_line,
           fmt::format("{}.{}: expected a text, a number, true or false, or a list of them",
                       entry.section, entry.name));
    }
    entry.values.push_back(*text);
  };
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& value : *list) take(value);
  } else {
    take(node);
  }
  return entry;
}

std::vector<ConfigEntry> read_entries(const std::string& text, const std::string& path) {
  std::vector<ConfigEntry> out;
  const std::string sections = fmt::format("[{}]", fmt::join(kSections, "], ["));
  for (const auto& [key, node] : parse_text(text, path)) {
    const std::string name(key.str());
    const bool is_known = std::ranges::find(kSections, name) != kSections.end();
    const toml::table* const section = node.as_table();
    if (!is_known && section != nullptr) {
      fail(path, node.source().begin.line,
           fmt::format("[{}]: no such section; expected {}", name, sections));
    }
    if (section == nullptr) {
      fail(path, node.source().begin.line,
           fmt::format("{}: expected settings below one of {}", name, sections));
    }
    for (const auto& [setting, value] : *section) {
      out.push_back(read_entry(name, std::string(setting.str()), value, path));
    }
  }
  std::ranges::stable_sort(out, {}, &ConfigEntry::line);
  return out;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

template <typename T>
bool is_whole(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// A number only where reading it back gives the same text.
bool is_plain_number(const std::string& text) {
  if (is_whole<int64_t>(text)) return fmt::format("{}", std::stoll(text)) == text;
  const bool has_digits = text.find_first_not_of("0123456789.") == std::string::npos;
  if (!has_digits || text.find('.') == std::string::npos || text.front() == '.') return false;
  return text.back() != '.' && is_whole<double>(text) && fmt::format("{}", std::stod(text)) == text;
}

std::string literal(const std::string& text) {
  if (text == "true" || text == "false" || is_plain_number(text)) return text;
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string literal_of(const std::vector<std::string>& values, bool is_list) {
  if (!is_list) return literal(values.front());
  std::vector<std::string> each;
  for (const std::string& value : values) each.push_back(literal(value));
  return fmt::format("[{}]", fmt::join(each, ", "));
}

// The byte at which a column of the line begins; columns count characters, from 1.
size_t byte_of_column(const std::string& line, size_t column) {
  size_t at = 0;
  for (size_t seen = 1; seen < column && at < line.size(); ++seen) {
    do {
      ++at;
    } while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80);
  }
  return at;
}

// ~/FOLDER and NAME=~/FOLDER: a shell has not done it.
void expand_home(std::string& value, const std::string& home) {
  const size_t equals = value.find('=');
  const bool has_name = equals != std::string::npos && equals < value.find('/');
  const size_t at = has_name ? equals + 1 : 0;
  if (std::string_view(value).substr(at).starts_with("~/")) value.replace(at, 1, home);
}

// What was meant to change did, and nothing else.
void check_edit(const std::string& before,
                const std::string& after,
                std::string_view section,
                std::string_view name,
                const std::vector<std::string>* values) {
  const auto others = [&](const std::string& text) {
    std::vector<std::pair<std::string, std::vector<std::string>>> out;
    for (const ConfigEntry& entry : read_entries(text, "")) {
      if (entry.section == section && entry.name == name) continue;
      out.emplace_back(entry.section + "." + entry.name, entry.values);
    }
    std::ranges::sort(out);
    return out;
  };
  bool is_right = false;
  try {
    const ConfigFile file{.path = "", .entries = read_entries(after, "")};
    const ConfigEntry* const entry = file.find(section, name);
    is_right = values == nullptr ? entry == nullptr : entry != nullptr && entry->values == *values;
    is_right = is_right && others(before) == others(after);
  } catch (const Error&) {
    is_right = false;
  }
  if (is_right) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}.{} is written in a way that can't be changed by line; edit the file "
                          "by hand",
                          section, name));
}

}  // namespace

const ConfigEntry* ConfigFile::find(std::string_view section, std::string_view name) const {
  const auto found = std::ranges::find_if(entries, [&](const ConfigEntry& entry) {
    return entry.section == section && entry.name == name;
  });
  return found == entries.end() ? nullptr : &*found;
}

std::string ConfigFile::place(const ConfigEntry& entry) const {
  return fmt::format("{}:{}: {}.{}", path, entry.line, entry.section, entry.name);
}

ConfigFile read_config(const std::string& path) {
  ConfigFile file{.path = path, .entries = {}};
  if (path == "/dev/null") return file;
  std::string text;
  try {
    text = read_regular_file(path);
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound) return file;
    throw error.in("the file of settings");
  }
  file.entries = read_entries(text, path);
  const char* const home = std::getenv("HOME");
  if (home == nullptr) return file;
  for (ConfigEntry& entry : file.entries) {
    for (std::string& value : entry.values) expand_home(value, home);
  }
  return file;
}

void check_config_names(const ConfigFile& file,
                        std::string_view section,
                        std::span<const std::string> names) {
  for (const ConfigEntry& entry : file.entries) {
    if (entry.section != section || std::ranges::find(names, entry.name) != names.end()) continue;
    const std::string_view meant = nearest_word(entry.name, names);
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: no such setting; {}", file.place(entry),
                            meant.empty() ? "`tgi config list` shows all"
                                          : fmt::format("did you mean {}?", meant)));
  }
}

void check_config_entry(const ConfigFile& file,
                        const ConfigEntry& entry,
                        const SettingFacts& row,
                        bool may_be_list) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", file.place(entry), what));
  };
  if (entry.is_list && !may_be_list) refuse("expected one value, got a list");
  for (const std::string& value : entry.values) {
    if (row.is_file && !value.empty() && value.front() != '/') {
      refuse(fmt::format("expected a path that begins with / or ~/, got \"{}\"", value));
    }
  }
}

std::string with_setting(const std::string& text,
                         std::string_view section,
                         std::string_view name,
                         const std::vector<std::string>& values,
                         bool is_list) {
  std::vector<std::string> lines = split_lines(text);
  const std::string written = literal_of(values, is_list);
  const std::string line = fmt::format("{} = {}", name, written);
  const toml::table root = parse_text(text, "");
  const toml::table* const table = root[section].as_table();
  const toml::node* const node = table == nullptr ? nullptr : table->get(name);
  if (node != nullptr) {
    const toml::source_region where = node->source();
    std::string& first = lines.at(where.begin.line - 1);
    const std::string& last = lines.at(where.end.line - 1);
    const std::string rest = last.substr(byte_of_column(last, where.end.column));
    first = first.substr(0, byte_of_column(first, where.begin.column)) + written + rest;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(where.begin.line),
                lines.begin() + static_cast<std::ptrdiff_t>(where.end.line));
  } else if (table != nullptr) {
    size_t after = table->source().begin.line;
    for (const auto& [key, value] : *table) after = std::max(after, place_of(value).last_line);
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(after), line);
  } else {
    if (!lines.empty()) lines.emplace_back();
    lines.push_back(fmt::format("[{}]", section));
    lines.push_back(line);
  }
  std::string out = join_lines(lines);
  check_edit(text, out, section, name, &values);
  return out;
}

std::string without_setting(const std::string& text,
                            std::string_view section,
                            std::string_view name) {
  const toml::table root = parse_text(text, "");
  const toml::node* const node = root[section][name].node();
  if (node == nullptr) return text;
  const Place place = place_of(*node);
  std::vector<std::string> lines = split_lines(text);
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(place.first_line - 1),
              lines.begin() + static_cast<std::ptrdiff_t>(place.last_line));
  std::string out = join_lines(lines);
  check_edit(text, out, section, name, nullptr);
  return out;
}

}  // namespace tgi::ipc
