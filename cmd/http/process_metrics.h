// This process as Prometheus' client libraries name it: memory, processor time, descriptors.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace tgi::http {

// Reads /proc/self; a figure that can't be read is left out.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace tgi::http
