#include "cmd/http/trace_context.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace tgi::http {
namespace {

constexpr size_t kTraceIdDigits = 32;
constexpr size_t kSpanIdDigits = 16;
constexpr size_t kTraceparentLength = 55;
constexpr size_t kMaxTraceStateEntries = 32;
constexpr size_t kMaxTraceStateLength = 512;  // what the standard wants handed on at least

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

int hex_value(char c) {
  return is_digit(c) ? c - '0' : c - 'a' + 10;
}

bool is_key_tail(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '*' || c == '/';
  });
}

// simple-key, or tenant-id "@" system-id.
bool is_key(std::string_view key) {
  if (key.empty() || key.size() > 256) return false;
  const size_t at = key.find('@');
  if (at == std::string_view::npos) return is_lower(key[0]) && is_key_tail(key.substr(1));
  const std::string_view tenant = key.substr(0, at);
  const std::string_view system = key.substr(at + 1);
  return !tenant.empty() && tenant.size() <= 241 && (is_lower(tenant[0]) || is_digit(tenant[0])) &&
         is_key_tail(tenant.substr(1)) && !system.empty() && system.size() <= 14 &&
         is_lower(system[0]) && is_key_tail(system.substr(1));
}

bool is_value(std::string_view value) {
  if (value.empty() || value.size() > 256 || value.back() == ' ') return false;
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string random_hex(size_t num_digits) {
  std::array<unsigned char, kTraceIdDigits / 2> bytes;
  const size_t num_bytes = num_digits / 2;
  std::string out;
  do {
    // Up to 256 bytes come whole, or not at all when a signal came first.
    while (::getrandom(bytes.data(), num_bytes, 0) < 0) {
      if (errno != EINTR)
        throw Error(Code::kInternal, std::string("getrandom: ") + std::strerror(errno));
    }
    out.clear();
    for (size_t i = 0; i < num_bytes; ++i) {
      out += "0123456789abcdef"[bytes[i] >> 4];
      out += "0123456789abcdef"[bytes[i] & 15];
    }
  } while (!is_id(out));
  return out;
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  if (header.size() < kTraceparentLength) return std::nullopt;
  const std::string_view version = header.substr(0, 2);
  const std::string_view trace_id = header.substr(3, kTraceIdDigits);
  const std::string_view span_id = header.substr(36, kSpanIdDigits);
  const std::string_view flags = header.substr(53, 2);
  if (header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  if (!is_hex(version) || version == "ff") return std::nullopt;
  if (!is_id(trace_id) || !is_id(span_id) || !is_hex(flags)) return std::nullopt;
  if (header.size() > kTraceparentLength) {
    if (version == "00" || header[kTraceparentLength] != '-') return std::nullopt;
  }
  return TraceContext{
      .trace_id = std::string(trace_id),
      .span_id = std::string(span_id),
      .sampled = (hex_value(flags[1]) & 1) != 0,
  };
}

std::optional<std::string> parse_tracestate(std::string_view header) {
  std::vector<std::string_view> keys;
  std::string out;
  bool full = false;
  for (size_t begin = 0; begin <= header.size();) {
    const size_t end = std::min(header.find(',', begin), header.size());
    const std::string_view entry = trim(header.substr(begin, end - begin));
    begin = end + 1;
    if (entry.empty()) continue;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = entry.substr(0, equals);
    if (!is_key(key) || !is_value(entry.substr(equals + 1))) return std::nullopt;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return std::nullopt;
    keys.push_back(key);
    if (keys.size() > kMaxTraceStateEntries) return std::nullopt;
    // The standard cuts from the right: once an entry is left out, so are those after it.
    full = full || out.size() + entry.size() + 1 > kMaxTraceStateLength;
    if (full) continue;
    if (!out.empty()) out += ',';
    out += entry;
  }
  return out;
}

std::optional<TraceContext> read_trace_context(std::span<const std::string> traceparents,
                                               std::span<const std::string> tracestates) {
  if (traceparents.size() != 1) return std::nullopt;
  std::optional<TraceContext> context = parse_traceparent(trim(traceparents[0]));
  if (!context) return std::nullopt;
  std::string joined;
  for (const std::string& header : tracestates) {
    if (!joined.empty()) joined += ',';
    joined += header;
  }
  context->trace_state = parse_tracestate(joined).value_or("");
  return context;
}

TraceContext child_of(const std::optional<TraceContext>& parent) {
  TraceContext child = parent.value_or(TraceContext{});
  if (!parent) child.trace_id = random_hex(kTraceIdDigits);
  child.span_id = random_span_id();
  return child;
}

std::string to_traceparent(const TraceContext& context) {
  return "00-" + context.trace_id + "-" + context.span_id + (context.sampled ? "-01" : "-00");
}

std::string random_span_id() {
  return random_hex(kSpanIdDigits);
}

}  // namespace tgi::http
