#include "cmd/http/engine_families.h"

#include <prometheus/check_names.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

namespace tgi::http {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

std::optional<MetricType> type_from_name(const std::string& name) {
  if (name == "counter") return MetricType::Counter;
  if (name == "gauge") return MetricType::Gauge;
  if (name == "histogram") return MetricType::Histogram;
  return std::nullopt;
}

// prometheus-cpp escapes label values but not this.
std::string escaped_help(const std::string& help) {
  std::string out;
  for (const char c : help) {
    if (c == '\\') out += "\\\\";
    if (c == '\n') out += "\\n";
    if (c != '\\' && c != '\n') out += c;
  }
  return out;
}

// Nothing when the sample is not a valid histogram.
std::optional<Histogram> histogram_of(const ipc::MetricSample& sample) {
  if (sample.counts.size() != sample.bounds.size() + 1) return std::nullopt;
  // Strictly rising; a NaN is not less than anything.
  for (size_t i = 1; i < sample.bounds.size(); ++i) {
    if (!(sample.bounds[i - 1] < sample.bounds[i])) return std::nullopt;
  }
  for (const int64_t count : sample.counts) {
    if (count < 0) return std::nullopt;
  }
  return Histogram(sample.bounds, sample.counts, sample.sum);
}

bool fill_labels(const ipc::MetricSample& sample, bool is_histogram, ClientMetric& out) {
  for (const auto& [name, value] : sample.labels) {
    if (!prometheus::CheckLabelName(name) || (is_histogram && name == "le")) return false;
    out.label.push_back({.name = name, .value = value});
  }
  std::sort(out.label.begin(), out.label.end());
  return std::adjacent_find(out.label.begin(), out.label.end(), [](const auto& a, const auto& b) {
           return a.name == b.name;
         }) == out.label.end();
}

}  // namespace

ClientMetric::Histogram to_prometheus(const Histogram& histogram) {
  ClientMetric::Histogram out;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    out.sample_count += static_cast<uint64_t>(histogram.counts()[i]);
    const bool last = i == histogram.bounds().size();
    out.bucket.push_back(
        {.cumulative_count = out.sample_count,
         .upper_bound = last ? std::numeric_limits<double>::infinity() : histogram.bounds()[i]});
  }
  out.sample_sum = histogram.sum();
  return out;
}

std::optional<prometheus::MetricFamily> to_prometheus(const ipc::MetricFamily& family) {
  const std::optional<MetricType> type = type_from_name(family.type);
  if (!type || !prometheus::CheckMetricName(family.name)) return std::nullopt;
  prometheus::MetricFamily out{
      .name = family.name, .help = escaped_help(family.help), .type = *type, .metric = {}};
  const bool is_histogram = *type == MetricType::Histogram;
  for (const ipc::MetricSample& sample : family.samples) {
    ClientMetric metric;
    if (!fill_labels(sample, is_histogram, metric)) return std::nullopt;
    if (is_histogram) {
      const std::optional<Histogram> histogram = histogram_of(sample);
      if (!histogram) return std::nullopt;
      metric.histogram = to_prometheus(*histogram);
    }
    if (*type == MetricType::Counter) metric.counter.value = sample.value;
    if (*type == MetricType::Gauge) metric.gauge.value = sample.value;
    const bool twice = std::any_of(out.metric.begin(), out.metric.end(),
                                   [&](const auto& other) { return other.label == metric.label; });
    if (twice) return std::nullopt;
    out.metric.push_back(std::move(metric));
  }
  return out;
}

}  // namespace tgi::http
