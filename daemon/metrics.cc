#include "daemon/metrics.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>

namespace tgi::daemon {
namespace {

using ipc::MetricFamily;
using ipc::MetricSample;

MetricSample value_of(int64_t value) {
  return {.value = static_cast<double>(value)};
}

MetricSample value_of(int64_t value, const std::string& label, const std::string& name) {
  return {.labels = {{label, name}}, .value = static_cast<double>(value)};
}

MetricSample buckets_of(const Histogram& histogram) {
  return {.bounds = histogram.bounds(), .counts = histogram.counts(), .sum = histogram.sum()};
}

// One family with a sample for each kind of step.
template <typename Get>
MetricFamily by_method(const StepMetrics& steps,
                       const std::string& name,
                       const std::string& type,
                       const std::string& help,
                       Get get) {
  MetricFamily family{.name = name, .type = type, .help = help, .samples = {}};
  for (const auto& [method, kind] :
       {std::pair<std::string, const StepKindMetrics&>{"prefill", steps.prefill},
        {"decode", steps.decode}}) {
    MetricSample sample = get(kind);
    sample.labels = {{"method", method}};
    family.samples.push_back(std::move(sample));
  }
  return family;
}

void add_step_families(const StepMetrics& steps, std::vector<MetricFamily>& out) {
  using Kind = StepKindMetrics;
  out.push_back(by_method(steps, "tgi_batch_inference_count", "counter",
                          "steps of the engine; prefill: those with prompt tokens",
                          [](const Kind& k) { return value_of(k.num_steps + k.num_failed); }));
  out.push_back(by_method(steps, "tgi_batch_inference_success", "counter", "steps that succeeded",
                          [](const Kind& k) { return value_of(k.num_steps); }));
  out.push_back(by_method(steps, "tgi_batch_inference_failure", "counter", "steps that failed",
                          [](const Kind& k) { return value_of(k.num_failed); }));
  out.push_back(by_method(steps, "tgi_batch_inference_duration", "histogram",
                          "seconds from building a step to handing out its tokens",
                          [](const Kind& k) { return buckets_of(k.inference_s); }));
  out.push_back(by_method(steps, "tgi_batch_forward_duration", "histogram",
                          "seconds a step takes on the device",
                          [](const Kind& k) { return buckets_of(k.forward_s); }));
  out.push_back(by_method(steps, "tgi_batch_decode_duration", "histogram",
                          "seconds to turn the tokens of a step into text and events",
                          [](const Kind& k) { return buckets_of(k.deliver_s); }));
  out.push_back({.name = "tgi_batch_next_size",
                 .type = "histogram",
                 .help = "sequences in a step with prompt tokens",
                 .samples = {buckets_of(steps.batch_size)}});
  out.push_back({.name = "tgi_batch_concat",
                 .type = "counter",
                 .help = "steps that mix prompt chunks with decoding sequences",
                 .samples = {value_of(steps.num_mixed_steps, "reason", "chunking")}});
  out.push_back({.name = "tgi_engine_cancelled",
                 .type = "counter",
                 .help = "requests whose client left, by what they were doing",
                 .samples = {value_of(steps.num_cancelled_queued, "phase", "queue"),
                             value_of(steps.num_cancelled_prefill, "phase", "prefill"),
                             value_of(steps.num_cancelled_decode, "phase", "decode")}});
  out.push_back({.name = "tgi_prefix_cache_hits",
                 .type = "counter",
                 .help = "finished requests that took some of their prompt from the prefix cache",
                 .samples = {value_of(steps.num_prefix_hits)}});
  out.push_back({.name = "tgi_batch_masks_duration",
                 .type = "histogram",
                 .help = "seconds to tell which tokens the guided sequences of a step may draw",
                 .samples = {buckets_of(steps.masks_s)}});
  out.push_back({.name = "tgi_engine_not_finite",
                 .type = "counter",
                 .help = "requests that ended because the model's logits were not finite",
                 .samples = {value_of(steps.num_not_finite)}});
}

std::vector<MetricFamily> families_of(ServedModel* model) {
  std::vector<MetricFamily> out;
  const EngineStats stats = model->engine().stats();
  const ipc::ModelStatus facts = model->status();
  const auto add = [&](const char* name, const char* type, const char* help, int64_t value) {
    out.push_back({.name = name, .type = type, .help = help, .samples = {value_of(value)}});
  };
  add("tgi_queue_size", "gauge", "sequences that wait", stats.num_waiting);
  add("tgi_batch_current_size", "gauge", "sequences that run", stats.num_running);
  add("tgi_batch_current_max_tokens", "gauge", "tokens for which running sequences hold KV blocks",
      stats.num_blocks_used / facts.kv_groups.num_groups() * facts.block_size);
  add("tgi_batch_max_total_tokens", "gauge", "tokens for which there are KV blocks",
      facts.num_blocks / facts.kv_groups.num_groups() * facts.block_size);
  out.push_back({.name = "tgi_kv_blocks",
                 .type = "gauge",
                 .help = "blocks of the KV cache; cached: held by the prefix cache alone",
                 .samples = {value_of(stats.num_blocks_used, "state", "used"),
                             value_of(stats.num_blocks_cached, "state", "cached"),
                             value_of(stats.num_blocks_free, "state", "free")}});
  const ipc::Counters& counters = stats.counters;
  add("tgi_prompt_tokens", "counter", "prompt tokens of accepted requests",
      counters.num_prompt_tokens);
  add("tgi_prefix_cache_hit_tokens", "counter", "prompt tokens taken from the prefix cache",
      counters.num_cached_tokens);
  add("tgi_generated_tokens", "counter", "tokens sampled", counters.num_generated_tokens);
  add("tgi_drafted_tokens", "counter", "tokens that were drafted and verified",
      counters.num_drafted_tokens);
  add("tgi_skipped_tokens", "counter", "generated tokens that were drafted: no step of their own",
      counters.num_skipped_tokens);
  add("tgi_preemptions", "counter", "sequences put back for want of KV blocks",
      counters.num_preemptions);
  add("tgi_engine_steps", "counter", "steps of the engine", counters.num_steps);
  add("tgi_engine_requests", "counter", "requests the engine took", counters.num_requests);
  add("tgi_engine_failed", "counter", "requests that ended by an error of the engine",
      counters.num_failed);
  const GuideCompiler::Counts guides = model->guides().counts();
  out.push_back(
      {.name = "tgi_guides",
       .type = "counter",
       .help = "schemas, patterns and grammars of requests; found: compiled for an earlier one",
       .samples = {value_of(guides.num_compiled, "kind", "compiled"),
                   value_of(guides.num_found, "kind", "found")}});
  add_step_families(stats.steps, out);
  return out;
}

// Of every model that is known, loaded or not.
std::vector<MetricFamily> standing_families(const ModelHost& models) {
  using Seconds = std::chrono::duration<double>;
  MetricFamily loaded{.name = "tgi_model_loaded",
                      .type = "gauge",
                      .help = "1: the model is loaded, 0: it is when a request asks for it",
                      .samples = {}};
  MetricFamily uses{.name = "tgi_model_uses",
                    .type = "gauge",
                    .help = "requests that have the model, so that it does not give way",
                    .samples = {}};
  MetricFamily idle{.name = "tgi_model_idle_duration",
                    .type = "gauge",
                    .help = "seconds since a request had the model last",
                    .samples = {}};
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [name, slot] : models.all()) {
    const SlotStanding standing = slot->standing();
    if (standing.phase == "no model") continue;
    const auto add = [&, &name = name](MetricFamily& family, double value) {
      MetricSample& sample = family.samples.emplace_back();
      sample.value = value;
      if (!name.empty()) sample.labels.emplace_back("model", name);
    };
    add(loaded, standing.model == nullptr ? 0 : 1);
    add(uses, static_cast<double>(standing.num_uses));
    const bool is_unused = standing.last_used && standing.num_uses == 0;
    add(idle, is_unused ? Seconds(now - *standing.last_used).count() : 0);
  }
  if (loaded.samples.empty()) return {};
  return {std::move(loaded), std::move(uses), std::move(idle)};
}

}  // namespace

std::vector<MetricFamily> collect_metrics(const ModelHost& models) {
  std::vector<MetricFamily> out;
  for (const auto& [name, slot] : models.all()) {
    const auto model = slot->current();
    if (model == nullptr) continue;
    std::vector<MetricFamily> families = families_of(model.get());
    for (MetricFamily& family : families) {
      for (MetricSample& sample : family.samples) {
        if (!name.empty()) sample.labels.emplace_back("model", name);
      }
    }
    // Those of every model are the same, in the same order.
    if (out.empty()) {
      out = std::move(families);
      continue;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      auto& samples = out[i].samples;
      std::ranges::move(families.at(i).samples, std::back_inserter(samples));
    }
  }
  std::ranges::move(standing_families(models), std::back_inserter(out));
  return out;
}

}  // namespace tgi::daemon
