#include "cmd/bench/serving_stats.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace tgi::bench {
namespace {

struct TargetRow {
  std::string_view name;
  std::optional<double> GoodputTarget::*limit;
};

constexpr TargetRow kTargets[] = {{"ttft", &GoodputTarget::ttft},
                                  {"itl", &GoodputTarget::itl},
                                  {"tpot", &GoodputTarget::tpot},
                                  {"e2e", &GoodputTarget::e2e}};

[[noreturn]] void fail_goodput(std::string_view part) {
  throw Error(
      Code::kInvalidArgument,
      fmt::format("--goodput: expected NAME:MS with commas between and the names ttft, itl, "
                  "tpot, e2e, got \"{}\"",
                  part));
}

bool within(const std::optional<double>& value, const std::optional<double>& limit) {
  return !limit || !value || *value <= *limit;
}

void add(std::optional<int64_t>& sum, const std::optional<int64_t>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

// Latencies of all requests, in seconds or ms as latency_of() has them.
struct Samples {
  std::vector<double> ttft;
  std::vector<double> itl_s;
  std::vector<double> tpot;
  std::vector<double> e2e;
  std::vector<double> late_s;
};

void take(Samples& samples, const RequestRecord& record) {
  samples.late_s.push_back(record.start_s - record.planned_s);
  const auto latency = latency_of(record);
  if (!latency || !record.error_kind.empty()) return;
  samples.ttft.push_back(latency->ttft);
  for (size_t i = 1; i < record.output_s.size(); ++i) {
    samples.itl_s.push_back(record.output_s[i] - record.output_s[i - 1]);
  }
  if (!record.finished) return;
  if (latency->tpot) samples.tpot.push_back(*latency->tpot);
  samples.e2e.push_back(latency->e2e);
}

}  // namespace

GoodputTarget parse_goodput(std::string_view text) {
  GoodputTarget out;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos) fail_goodput(part);
    const std::string_view value = part.substr(colon + 1);
    double ms = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), ms);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == value.data() + value.size();
    if (!is_number || !(ms > 0) || !std::isfinite(ms)) fail_goodput(part);
    bool known = false;
    for (const TargetRow& row : kTargets) {
      if (row.name != part.substr(0, colon)) continue;
      out.*row.limit = ms;
      known = true;
    }
    if (!known) fail_goodput(part);
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

std::optional<RequestLatency> latency_of(const RequestRecord& record) {
  if (record.output_s.empty()) return std::nullopt;
  const double first = record.output_s.front();
  const double decode_ms = 1000 * (record.output_s.back() - first);
  RequestLatency out;
  out.ttft = 1000 * (first - record.start_s);
  out.e2e = 1000 * ((record.finished ? record.end_s : record.output_s.back()) - record.start_s);
  const auto num_events = static_cast<int64_t>(record.output_s.size());
  const int64_t num_tokens = num_output_tokens(record);
  if (num_events > 1) out.itl = decode_ms / static_cast<double>(num_events - 1);
  if (num_events > 1 && num_tokens > 1) out.tpot = decode_ms / static_cast<double>(num_tokens - 1);
  return out;
}

int64_t num_output_tokens(const RequestRecord& record) {
  return record.num_output_tokens.value_or(static_cast<int64_t>(record.output_s.size()));
}

bool is_good(const RequestRecord& record, const GoodputTarget& target) {
  if (!record.ok()) return false;
  const auto latency = latency_of(record);
  return latency && within(latency->ttft, target.ttft) && within(latency->itl, target.itl) &&
         within(latency->tpot, target.tpot) && within(latency->e2e, target.e2e);
}

std::string_view describe(TokenCount count) {
  switch (count) {
    case TokenCount::kUsage:
      return "the server's own count";
    case TokenCount::kEvents:
      return "events of the stream, as the server gives no count";
    case TokenCount::kMixed:
      return "the server's own count where it gives one, else events of the stream";
  }
  return "";
}

ServingStats compute_stats(const LoadResult& load, const std::optional<GoodputTarget>& target) {
  ServingStats out;
  Samples samples;
  size_t num_by_usage = 0;
  size_t num_by_events = 0;
  size_t num_good = 0;
  out.wall_s = load.wall_s;
  for (const RequestRecord& record : load.records) {
    ++out.num_started;
    take(samples, record);
    out.num_events += static_cast<int64_t>(record.output_s.size());
    if (!record.finished) ++out.num_unfinished;
    if (!record.error_kind.empty()) {
      ++out.num_failed;
      ErrorGroup& group = out.errors[record.error_kind];
      if (++group.count == 1) group.example = record.error;
      continue;
    }
    if (record.finished) ++out.num_ok;
    if (!record.output_s.empty()) ++(record.num_output_tokens ? num_by_usage : num_by_events);
    out.num_output_tokens += num_output_tokens(record);
    out.num_wanted_prompt_tokens += record.num_wanted_prompt_tokens;
    add(out.num_prompt_tokens, record.num_prompt_tokens);
    add(out.num_cached_tokens, record.num_cached_tokens);
    if (target && is_good(record, *target)) ++num_good;
  }
  out.ttft = summarize(std::move(samples.ttft));
  out.itl = summarize(std::move(samples.itl_s), 1000);
  out.tpot = summarize(std::move(samples.tpot));
  out.e2e = summarize(std::move(samples.e2e));
  out.late = summarize(std::move(samples.late_s), 1000);
  out.counted_by = num_by_events == 0  ? TokenCount::kUsage
                   : num_by_usage == 0 ? TokenCount::kEvents
                                       : TokenCount::kMixed;
  if (target) out.num_good = num_good;
  if (load.wall_s > 0) {
    out.requests_per_s = static_cast<double>(out.num_ok) / load.wall_s;
    out.output_tokens_per_s = static_cast<double>(out.num_output_tokens) / load.wall_s;
    if (out.num_prompt_tokens) {
      out.prompt_tokens_per_s = static_cast<double>(*out.num_prompt_tokens) / load.wall_s;
    }
    out.client_cpu_share = load.cpu_s / load.wall_s;
  }
  if (out.num_events > 0) {
    out.client_us_per_event = 1e6 * load.cpu_s / static_cast<double>(out.num_events);
  }
  return out;
}

}  // namespace tgi::bench
