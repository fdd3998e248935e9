#include "base/files/preset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/files/modelfile.h"
#include "base/json.h"

namespace tgi {
namespace {

using P = PresetParameters;

constexpr std::array kParameters = {
    PresetParameter{.name = "temperature", .real = &P::temperature, .low = 0},
    PresetParameter{.name = "top_k", .whole = &P::top_k, .low = 0},
    PresetParameter{.name = "top_p", .real = &P::top_p, .low = 0, .high = 1, .above_low = true},
    PresetParameter{.name = "min_p", .real = &P::min_p, .low = 0, .high = 1},
    PresetParameter{
        .name = "typical_p", .real = &P::typical_p, .low = 0, .high = 1, .above_low = true},
    PresetParameter{
        .name = "repeat_penalty", .real = &P::repeat_penalty, .low = 0, .above_low = true},
    PresetParameter{.name = "presence_penalty", .real = &P::presence_penalty, .low = -2, .high = 2},
    PresetParameter{
        .name = "frequency_penalty", .real = &P::frequency_penalty, .low = -2, .high = 2},
    PresetParameter{.name = "seed", .whole = &P::seed, .low = -1},
    PresetParameter{.name = "num_predict", .whole = &P::num_predict, .low = -2},
    PresetParameter{.name = "num_ctx", .whole = &P::num_ctx, .low = 2, .high = 2147483647},
    PresetParameter{.name = "speculate", .whole = &P::speculate, .low = 0, .high = 64},
    PresetParameter{.name = "stop", .texts = &P::stop},
};

[[noreturn]] void fail_value(const PresetParameter& row, const std::string& got) {
  std::string range;
  if (std::isfinite(row.low)) {
    range += fmt::format(" {} {:g}", row.above_low ? "above" : "of at least", row.low);
  }
  if (std::isfinite(row.high))
    range += fmt::format("{} at most {:.0f}", range.empty() ? "" : " and", row.high);
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected a {}number{}, got \"{}\"", row.name,
                          row.whole != nullptr ? "whole " : "", range, got.substr(0, 100)));
}

// The number that the whole text is; nothing: it is none.
template <typename T>
std::optional<T> whole_text_number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 2 of "2.0".
std::optional<int64_t> whole_number(const std::string& text) {
  constexpr double kExact = 9007199254740992;  // 2^53: beyond, a double is no count any more
  if (const auto whole = whole_text_number<int64_t>(text)) return whole;
  const auto real = whole_text_number<double>(text);
  if (!real || std::trunc(*real) != *real || std::abs(*real) > kExact) return std::nullopt;
  return static_cast<int64_t>(*real);
}

template <typename T>
T checked(const PresetParameter& row, const std::string& text, const std::optional<T>& number) {
  if (!number) fail_value(row, text);
  const T value = *number;
  const auto real = static_cast<double>(value);
  const bool is_in =
      std::isfinite(real) && (row.above_low ? real > row.low : real >= row.low) && real <= row.high;
  if (!is_in) fail_value(row, text);
  return value;
}

// What Go's templates have between braces and Jinja's do not: names that begin with a dot or a
// dollar, and Go's keywords.
bool is_in_go(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kWords = {
      "if", "else", "end", "range", "with", "define", "and", "or", "eq", "ne"};
  for (size_t at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at)) {
    at += 2;
    if (at < text.size() && text[at] == '-') ++at;
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string_view::npos) return false;
    if (text[at] == '.' || text[at] == '$') return true;
    const std::string_view rest = text.substr(at);
    const size_t length =
        std::min(rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), rest.size());
    if (std::ranges::find(kWords, rest.substr(0, length)) != kWords.end()) return true;
  }
  return false;
}

constexpr std::array<std::string_view, 3> kRoles = {"system", "user", "assistant"};

struct Instruction {
  std::string_view name;
  bool repeats = false;
  void (*take)(const ModelfileLine& line, Preset& to);
};

constexpr std::array kInstructions = {
    Instruction{"FROM", false, [](const ModelfileLine& line, Preset& to) { to.from = line.value; }},
    Instruction{"PARAMETER", true,
                [](const ModelfileLine& line, Preset& to) {
                  set_parameter(to.parameters, line.argument, line.value);
                }},
    Instruction{"SYSTEM", false,
                [](const ModelfileLine& line, Preset& to) { to.system = line.value; }},
    Instruction{"TEMPLATE", false,
                [](const ModelfileLine& line, Preset& to) {
                  check_template(line.value);
                  to.chat_template = line.value;
                }},
    Instruction{"ADAPTER", false,
                [](const ModelfileLine& line, Preset& to) { to.adapter = line.value; }},
    Instruction{"MESSAGE", true,
                [](const ModelfileLine& line, Preset& to) {
                  check_message_role(line.argument);
                  to.messages.push_back({line.argument, line.value});
                }},
    Instruction{"LICENSE", true,
                [](const ModelfileLine& line, Preset& to) { to.licenses.push_back(line.value); }},
    Instruction{"SCHEMA", false,
                [](const ModelfileLine& line, Preset& to) {
                  check_schema(line.value);
                  to.schema = line.value;
                }},
    Instruction{"SPECULATOR", false,
                [](const ModelfileLine& line, Preset& to) { to.speculator = line.value; }},
    Instruction{"DRAFT", false,
                [](const ModelfileLine& line, Preset& to) { to.draft_model = line.value; }},
};

const Instruction& instruction_of(const ModelfileLine& line) {
  std::vector<std::string_view> names;
  for (const Instruction& each : kInstructions) {
    if (each.name == line.instruction) return each;
    names.push_back(each.name);
  }
  fail_modelfile(line.at, fmt::format("expected one of {}, got {}", fmt::join(names, ", "),
                                      line.instruction.substr(0, 100)));
}

// Both instructions and parameters, of which only `stop` may be given twice.
void refuse_repeated(const ModelfileLine& line, std::span<const ModelfileLine> before) {
  const bool is_parameter = line.instruction == "PARAMETER" && line.argument != "stop";
  if (instruction_of(line).repeats && !is_parameter) return;
  for (const ModelfileLine& other : before) {
    if (other.instruction != line.instruction || other.argument != line.argument) continue;
    fail_modelfile(line.at,
                   fmt::format("{}{}{} is given again, first in line {}", line.instruction,
                               line.argument.empty() ? "" : " ", line.argument, other.at.line));
  }
}

// Those that stand where others belong have a place of their own.
TextPlace place_of_failure(const ModelfileLine& line, bool is_about_argument) {
  return is_about_argument ? line.argument_at : line.value_at;
}

bool is_known_argument(const ModelfileLine& line) {
  if (line.instruction == "MESSAGE")
    return std::ranges::find(kRoles, line.argument) != kRoles.end();
  if (line.instruction != "PARAMETER") return true;
  return std::ranges::any_of(kParameters,
                             [&](const PresetParameter& row) { return row.name == line.argument; });
}

}  // namespace

std::span<const PresetParameter> preset_parameters() {
  return kParameters;
}

void set_parameter(PresetParameters& to, std::string_view name, const std::string& value) {
  std::vector<std::string_view> names;
  for (const PresetParameter& row : kParameters) {
    names.push_back(row.name);
    if (row.name != name) continue;
    if (row.real != nullptr) to.*row.real = checked(row, value, whole_text_number<double>(value));
    if (row.whole != nullptr) to.*row.whole = checked(row, value, whole_number(value));
    if (row.texts != nullptr) (to.*row.texts).push_back(value);
    return;
  }
  throw Error(
      Code::kInvalidArgument,
      fmt::format("expected one of the parameters {}, got {}; leave it out", fmt::join(names, ", "),
                  name.empty() ? "none" : std::string(name.substr(0, 100))));
}

std::vector<ParameterLine> parameter_lines(const PresetParameters& parameters) {
  std::vector<ParameterLine> out;
  for (const PresetParameter& row : kParameters) {
    if (row.real != nullptr && parameters.*row.real) {
      out.push_back({row.name, fmt::format("{}", *(parameters.*row.real))});
    } else if (row.whole != nullptr && parameters.*row.whole) {
      out.push_back({row.name, std::to_string(*(parameters.*row.whole))});
    } else if (row.texts != nullptr) {
      for (const std::string& text : parameters.*row.texts) out.push_back({row.name, text});
    }
  }
  return out;
}

void check_message_role(std::string_view role) {
  if (std::ranges::find(kRoles, role) != kRoles.end()) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("expected a role: {}, got {}", fmt::join(kRoles, ", "),
                          role.empty() ? "none" : std::string(role.substr(0, 100))));
}

void check_template(std::string_view text) {
  if (!is_in_go(text)) return;
  throw Error(Code::kUnsupported,
              "a template in Go's notation, which tgi does not read; leave TEMPLATE out, and the "
              "model's own chat template is used, or write one in Jinja");
}

void check_schema(std::string_view text) {
  const bool is_object = [&] {
    try {
      return parse_json(text).is_object();
    } catch (const Error& error) {
      throw error.in("a JSON schema");
    }
  }();
  if (is_object) return;
  throw Error(Code::kInvalidArgument, "a JSON schema: expected an object, as {\"type\": ...}");
}

Preset parse_preset(std::string_view text) {
  return preset_of_lines(parse_modelfile(text));
}

Preset preset_of_lines(std::span<const ModelfileLine> lines) {
  Preset out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const ModelfileLine& line = lines[i];
    const Instruction& instruction = instruction_of(line);
    refuse_repeated(line, lines.first(i));
    const bool knows_argument = is_known_argument(line);
    const bool may_be_empty = line.instruction == "SYSTEM" || line.instruction == "MESSAGE";
    if (knows_argument && line.value.empty() && !may_be_empty) {
      fail_modelfile(line.value_at,
                     fmt::format("expected a value of {}{}{}, got none", line.instruction,
                                 line.argument.empty() ? "" : " ", line.argument));
    }
    try {
      instruction.take(line, out);
    } catch (const Error& error) {
      const TextPlace at = place_of_failure(line, !knows_argument);
      throw error.in(fmt::format("line {}, column {}", at.line, at.column));
    }
  }
  if (out.from.empty()) {
    throw Error(Code::kInvalidArgument, "expected a line \"FROM MODEL\", there is none");
  }
  if (!out.speculator.empty() && !out.draft_model.empty()) {
    throw Error(Code::kInvalidArgument,
                "SPECULATOR and DRAFT: one of them drafts, not both; leave one out");
  }
  return out;
}

std::string to_modelfile(const Preset& preset) {
  std::string out = modelfile_line("FROM", preset.from);
  if (!preset.adapter.empty()) out += modelfile_line("ADAPTER", preset.adapter);
  if (!preset.speculator.empty()) out += modelfile_line("SPECULATOR", preset.speculator);
  if (!preset.draft_model.empty()) out += modelfile_line("DRAFT", preset.draft_model);
  for (const ParameterLine& line : parameter_lines(preset.parameters)) {
    out += modelfile_line(fmt::format("PARAMETER {}", line.name), line.value);
  }
  if (preset.chat_template) out += modelfile_line("TEMPLATE", *preset.chat_template);
  if (preset.schema) out += modelfile_line("SCHEMA", *preset.schema);
  if (preset.system) out += modelfile_line("SYSTEM", *preset.system);
  for (const PresetMessage& message : preset.messages) {
    out += modelfile_line(fmt::format("MESSAGE {}", message.role), message.content);
  }
  for (const std::string& license : preset.licenses) out += modelfile_line("LICENSE", license);
  return out;
}

Preset over(Preset base, Preset preset) {
  Preset out = std::move(base);
  for (const PresetParameter& row : kParameters) {
    const PresetParameters& from = preset.parameters;
    if (row.real != nullptr && from.*row.real) out.parameters.*row.real = from.*row.real;
    if (row.whole != nullptr && from.*row.whole) out.parameters.*row.whole = from.*row.whole;
    if (row.texts != nullptr && !(from.*row.texts).empty()) {
      out.parameters.*row.texts = from.*row.texts;
    }
  }
  if (preset.system) out.system = std::move(preset.system);
  if (preset.chat_template) out.chat_template = std::move(preset.chat_template);
  if (!preset.adapter.empty()) out.adapter = std::move(preset.adapter);
  if (preset.schema) out.schema = std::move(preset.schema);
  if (!preset.speculator.empty() || !preset.draft_model.empty()) {
    out.speculator = std::move(preset.speculator);
    out.draft_model = std::move(preset.draft_model);
  }
  if (!preset.messages.empty()) out.messages = std::move(preset.messages);
  if (!preset.licenses.empty()) out.licenses = std::move(preset.licenses);
  return out;
}

}  // namespace tgi
