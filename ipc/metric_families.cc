// The codec of what the metrics method answers.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ipc/field_table.h"

namespace tgi::ipc {
namespace {

OrderedJson sample_to_json(const MetricFamily& family, const MetricSample& sample) {
  OrderedJson labels = OrderedJson::object();
  for (const auto& [name, value] : sample.labels) labels[name] = value;
  OrderedJson out = {{"labels", std::move(labels)}};
  if (family.type != "histogram") {
    out["value"] = sample.value;
    return out;
  }
  out["bounds"] = sample.bounds;
  out["counts"] = sample.counts;
  out["sum"] = sample.sum;
  return out;
}

void read_member(const OrderedJson& json, const char* name, const std::string& path, auto& out) {
  const auto it = json.find(name);
  if (it == json.end() || it->is_null()) fail_field(path + "." + name, "missing");
  read_value(*it, path + "." + name, Rules{}, out);
}

MetricSample sample_from_json(const MetricFamily& family,
                              const OrderedJson& json,
                              const std::string& path) {
  require_object(json, path);
  MetricSample out;
  if (const auto labels = json.find("labels"); labels != json.end()) {
    require_object(*labels, path + ".labels");
    for (const auto& item : labels->items()) {
      std::string value;
      read_value(item.value(), path + ".labels." + item.key(), Rules{}, value);
      out.labels.emplace_back(item.key(), std::move(value));
    }
  }
  if (family.type != "histogram") {
    read_member(json, "value", path, out.value);
    return out;
  }
  read_member(json, "bounds", path, out.bounds);
  read_member(json, "counts", path, out.counts);
  read_member(json, "sum", path, out.sum);
  if (out.counts.size() != out.bounds.size() + 1) {
    fail_field(path, fmt::format("expected {} counts for {} bounds, got {}", out.bounds.size() + 1,
                                 out.bounds.size(), out.counts.size()));
  }
  return out;
}

}  // namespace

OrderedJson to_json(const std::vector<MetricFamily>& families) {
  OrderedJson list = OrderedJson::array();
  for (const MetricFamily& family : families) {
    OrderedJson samples = OrderedJson::array();
    for (const MetricSample& sample : family.samples) {
      samples.push_back(sample_to_json(family, sample));
    }
    list.push_back({{"name", family.name},
                    {"type", family.type},
                    {"help", family.help},
                    {"samples", std::move(samples)}});
  }
  return {{"families", std::move(list)}};
}

std::vector<MetricFamily> metric_families_from_json(const OrderedJson& json) {
  require_object(json, "result");
  const auto list = json.find("families");
  if (list == json.end() || !list->is_array()) fail_field("families", "expected an array");
  std::vector<MetricFamily> out;
  for (size_t i = 0; i < list->size(); ++i) {
    const OrderedJson& item = (*list)[i];
    const std::string path = fmt::format("families.{}", i);
    require_object(item, path);
    MetricFamily& family = out.emplace_back();
    read_member(item, "name", path, family.name);
    read_member(item, "type", path, family.type);
    read_member(item, "help", path, family.help);
    const auto samples = item.find("samples");
    if (samples == item.end() || !samples->is_array()) {
      fail_field(path + ".samples", "expected an array");
    }
    for (size_t k = 0; k < samples->size(); ++k) {
      family.samples.push_back(
          sample_from_json(family, (*samples)[k], fmt::format("{}.samples.{}", path, k)));
    }
  }
  return out;
}

}  // namespace tgi::ipc
