#include "sample_record.h"

namespace tgi::http {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

ipc::MetricFamily values(const char* name,
                         const char* type,
                         const std::vector<std::pair<Labels, double>>& samples) {
  ipc::MetricFamily out{.name = name, .type = type, .help = "help", .samples = {}};
  for (const auto& [labels, value] : samples) {
    out.samples.push_back({.labels = labels, .value = value});
  }
  return out;
}

ipc::MetricFamily histogram(const char* name, const std::vector<Labels>& samples) {
  ipc::MetricFamily out{.name = name, .type = "histogram", .help = "help", .samples = {}};
  for (const Labels& labels : samples) {
    out.samples.push_back(
        {.labels = labels, .value = 0, .bounds = {0.5, 1}, .counts = {2, 3, 4}, .sum = 9.5});
  }
  return out;
}

}  // namespace

RequestRecord sample_record() {
  RequestRecord record;
  record.request_id = "req-1";
  record.method = "POST";
  record.route = "/generate_stream";
  record.model = "demo";
  record.status = 200;
  record.started_at =
      std::chrono::system_clock::time_point(std::chrono::milliseconds(1'767'323'045'500));
  record.total_s = 0.126;
  record.is_generation = true;
  record.stream = true;
  record.finish_reasons = {"length"};
  record.validation_s = 0.002;
  record.queue_s = 0.003;
  record.prefill_s = 0.02;
  record.decode_s = 0.1;
  record.inference_s = 0.12;
  record.time_to_first_token_s = 0.0255;
  record.num_prompt_tokens = 40;
  record.num_cached_tokens = 32;
  record.num_generated_tokens = 24;
  record.max_new_tokens = 24;
  record.seed = 7;
  record.trace.trace_id = "0af7651916cd43dd8448eb211c80319c";
  record.trace.span_id = "b7ad6b7169203331";
  return record;
}

EngineReport sample_report() {
  const std::vector<Labels> methods = {{{"method", "prefill"}}, {{"method", "decode"}}};
  const std::vector<std::pair<Labels, double>> by_method = {{methods[0], 5}, {methods[1], 50}};
  return {
      values("tgi_queue_size", "gauge", {{{}, 3}}),
      values("tgi_batch_current_size", "gauge", {{{}, 4}}),
      values("tgi_batch_current_max_tokens", "gauge", {{{}, 400}}),
      values("tgi_batch_max_total_tokens", "gauge", {{{}, 4096}}),
      histogram("tgi_batch_next_size", {{}}),
      values("tgi_batch_inference_count", "counter", by_method),
      values("tgi_batch_inference_success", "counter", by_method),
      values("tgi_batch_inference_failure", "counter", by_method),
      histogram("tgi_batch_inference_duration", methods),
      histogram("tgi_batch_forward_duration", methods),
      histogram("tgi_batch_decode_duration", methods),
      histogram("tgi_batch_masks_duration", {{}}),
      values("tgi_batch_concat", "counter", {{{{"reason", "chunking"}}, 6}}),
      values("tgi_kv_blocks", "gauge",
             {{{{"state", "used"}}, 10}, {{{"state", "cached"}}, 20}, {{{"state", "free"}}, 70}}),
      values("tgi_prefix_cache_hit_tokens", "counter", {{{}, 320}}),
      values("tgi_prefix_cache_hits", "counter", {{{}, 9}}),
      values("tgi_prompt_tokens", "counter", {{{}, 400}}),
      values("tgi_generated_tokens", "counter", {{{}, 240}}),
      values("tgi_drafted_tokens", "counter", {{{}, 30}}),
      values("tgi_skipped_tokens", "counter", {{{}, 20}}),
      values("tgi_preemptions", "counter", {{{}, 1}}),
      values("tgi_engine_cancelled", "counter",
             {{{{"phase", "queue"}}, 0}, {{{"phase", "prefill"}}, 1}, {{{"phase", "decode"}}, 2}}),
      values("tgi_engine_steps", "counter", {{{}, 55}}),
      values("tgi_engine_requests", "counter", {{{}, 12}}),
      values("tgi_engine_failed", "counter", {{{}, 0}}),
      values("tgi_guides", "counter", {{{{"kind", "compiled"}}, 3}, {{{"kind", "found"}}, 40}}),
      values("tgi_engine_not_finite", "counter", {{{}, 0}}),
      values("tgi_model_loaded", "gauge", {{{}, 1}}),
      values("tgi_model_uses", "gauge", {{{}, 2}}),
      values("tgi_model_idle_duration", "gauge", {{{}, 0.5}}),
  };
}

}  // namespace tgi::http
