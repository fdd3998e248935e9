// The daemon's metric families, and histograms, in prometheus-cpp's terms.
#pragma once

#include <prometheus/metric_family.h>

#include <optional>

#include "base/histogram.h"
#include "ipc/protocol.h"

namespace tgi::http {

// Nothing when the family can't be shown: a name, label or type that Prometheus does not know, or
// a histogram whose bounds do not rise or whose counts do not match them.
std::optional<prometheus::MetricFamily> to_prometheus(const ipc::MetricFamily& family);

prometheus::ClientMetric::Histogram to_prometheus(const Histogram& histogram);

}  // namespace tgi::http
