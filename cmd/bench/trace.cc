#include "cmd/bench/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace tgi::bench {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr size_t kShownTraceBytes = 60;

std::string shown(std::string_view line) {
  std::string out;
  for (const char c : line.substr(0, kShownTraceBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte >= 0x20 && byte < 0x7F ? c : '?';
  }
  return line.size() > kShownTraceBytes ? out + "..." : out;
}

[[noreturn]] void fail(std::string_view expected, std::string_view got) {
  throw Error(Code::kInvalidArgument, fmt::format("expected {}, got \"{}\"", expected, shown(got)));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number out{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return out;
}

int64_t token_count(std::string_view text) {
  const auto count = whole_number<int64_t>(trimmed(text));
  if (!count || *count < 0 || *count > kMaxTokens) {
    fail(fmt::format("a number of tokens from 0 to {}", kMaxTokens), text);
  }
  return *count;
}

// "2023-11-16 18:15:46.6805900" as seconds since 1970; a T between date and time and a zone of
// +00:00 or Z are taken too.
double timestamp_s(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd dd:dd:dd";
  std::string_view rest = trimmed(text);
  if (rest.ends_with("+00:00")) rest.remove_suffix(6);
  if (rest.ends_with('Z')) rest.remove_suffix(1);
  bool fits = rest.size() >= kShape.size();
  for (size_t i = 0; fits && i < kShape.size(); ++i) {
    const bool is_digit = rest[i] >= '0' && rest[i] <= '9';
    fits = kShape[i] == 'd' ? is_digit : rest[i] == kShape[i] || (i == 10 && rest[i] == 'T');
  }
  if (!fits) fail("a time like 2023-11-16 18:15:46.68", text);
  const auto part = [&](size_t at, size_t size) {
    return *whole_number<int>(rest.substr(at, size));
  };
  const std::chrono::year_month_day date{std::chrono::year(part(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(part(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(part(8, 2)))};
  double fraction = 0;
  const std::string_view tail = rest.substr(kShape.size());
  if (!tail.empty()) {
    const auto value = tail.front() == '.' ? whole_number<double>(tail) : std::nullopt;
    if (!value || *value < 0 || *value >= 1) fail("a time like 2023-11-16 18:15:46.68", text);
    fraction = *value;
  }
  if (!date.ok() || part(11, 2) > 23 || part(14, 2) > 59 || part(17, 2) > 60) {
    fail("a time that exists", text);
  }
  const std::chrono::sys_days days(date);
  return static_cast<double>(days.time_since_epoch().count()) * 86400.0 + part(11, 2) * 3600.0 +
         part(14, 2) * 60.0 + part(17, 2) + fraction;
}

TraceRequest parse_csv_line(std::string_view line) {
  std::array<std::string_view, 3> cells;
  std::string_view rest = line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t comma = rest.find(',');
    const bool is_last = i + 1 == cells.size();
    if ((comma == std::string_view::npos) != is_last) {
      fail("three cells TIMESTAMP,ContextTokens,GeneratedTokens", line);
    }
    cells[i] = rest.substr(0, comma);
    rest.remove_prefix(is_last ? rest.size() : comma + 1);
  }
  return {.at_s = timestamp_s(cells[0]),
          .num_prompt_tokens = token_count(cells[1]),
          .num_output_tokens = token_count(cells[2]),
          .block_hashes = {}};
}

TraceRequest parse_json_line(std::string_view line) {
  const Json json = parse_json(line);
  const JsonReader reader(json, "");
  TraceRequest out;
  out.at_s = reader.number("timestamp") / 1000;
  out.num_prompt_tokens = reader.integer("input_length");
  out.num_output_tokens = reader.integer("output_length");
  for (const auto& [name, count] : {std::pair("input_length", out.num_prompt_tokens),
                                    std::pair("output_length", out.num_output_tokens)}) {
    if (count < 0 || count > kMaxTokens) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: expected a number of tokens from 0 to "
                                                      "{}, got {}",
                                                      name, kMaxTokens, count));
    }
  }
  if (!std::isfinite(out.at_s)) throw Error(Code::kInvalidArgument, "timestamp: not a number");
  if (!reader.has("hash_ids")) return out;
  const Json& hashes = json["hash_ids"];
  if (!hashes.is_array()) throw Error(Code::kInvalidArgument, "hash_ids: expected an array");
  for (const Json& hash : hashes) {
    if (!hash.is_number_integer()) {
      throw Error(Code::kInvalidArgument, "hash_ids: expected whole numbers");
    }
    out.block_hashes.push_back(hash.get<uint64_t>());
  }
  return out;
}

bool is_csv_head(std::string_view line) {
  return trimmed(line).starts_with("TIMESTAMP");
}

}  // namespace

std::vector<TraceRequest> parse_trace(std::string_view text,
                                      const std::string& name,
                                      std::optional<int64_t> max_requests) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  std::vector<TraceRequest> out;
  size_t line_number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    if (max_requests && static_cast<int64_t>(out.size()) >= *max_requests) break;
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line_number;
    if (line.empty() || (line_number == 1 && !is_json && is_csv_head(line))) continue;
    try {
      out.push_back(is_json ? parse_json_line(line) : parse_csv_line(line));
    } catch (const Error& error) {
      throw error.in(fmt::format("{}: line {}", name, line_number));
    }
  }
  if (out.empty()) throw Error(Code::kInvalidArgument, name + ": a trace without requests");
  std::ranges::stable_sort(out, {}, &TraceRequest::at_s);
  const double begin = out.front().at_s;
  for (TraceRequest& request : out) request.at_s -= begin;
  return out;
}

}  // namespace tgi::bench
