#include "cmd/http/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cmd/http/adapters.h"
#include "cmd/http/log_text.h"

namespace tgi::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAskTimeoutMs = 2000;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::vector<std::string> all_of(const Request& request, std::string_view name) {
  std::vector<std::string> out;
  for (const Header& header : request.headers) {
    Request one;
    one.headers = {header};
    if (const auto value = one.header(name); !value.empty()) out.emplace_back(value);
  }
  return out;
}

}  // namespace

std::shared_ptr<const ApiOptions> CurrentOptions::find(std::string_view model_id) const {
  const std::shared_ptr<const All> all = this->all();
  const auto it = std::ranges::find(
      *all, model_id, [](const auto& each) -> const std::string& { return each->model_id; });
  return it == all->end() ? nullptr : *it;
}

void CurrentOptions::set(std::vector<ApiOptions> options) {
  TGI_CHECK(!options.empty());
  std::vector<std::string> names;
  for (const ApiOptions& each : options) names.push_back(each.model_id);
  auto next = std::make_shared<All>();
  for (ApiOptions& each : options) {
    each.model_ids = names;
    next->push_back(std::make_shared<const ApiOptions>(std::move(each)));
  }
  const std::lock_guard lock(mutex_);
  options_ = std::move(next);
}

Scope::Scope(Service& service, const Request& request, std::string route)
    : service_(service),
      options_{service.options.get()},
      peer_fd_(request.peer_fd),
      arrived_at_(request.arrived_at) {
  record_.method = request.method;
  record_.route = std::move(route);
  record_.path = request.path;
  record_.model = options().model_id;
  record_.started_at = request.arrived_at_system;
  record_.trace_in =
      read_trace_context(all_of(request, "traceparent"), all_of(request, "tracestate"));
  record_.trace = child_of(record_.trace_in);
  record_.request_id = record_.trace.span_id;  // the gateway takes the client's when it is one
}

Scope::Scope(const Scope& other, int peer_fd)
    : service_(other.service_),
      options_(other.options_),
      terms_(other.terms_),
      peer_fd_(peer_fd),
      arrived_at_(other.arrived_at_),
      record_(other.record_) {
  record_.is_generation = false;
}

Scope::~Scope() {
  give_back_permits();
  if (record_.is_generation) --service_.num_unanswered;
}

void Scope::choose_model(std::shared_ptr<const ApiOptions> options) {
  record_.model = options->model_id;
  options_.push_back(std::move(options));
}

std::optional<std::string> Scope::daemon_model() const {
  if (options().daemon_model.empty()) return std::nullopt;
  return options().daemon_model;
}

void Scope::take_generation_of(Scope& other) {
  record_.is_generation = std::exchange(other.record_.is_generation, false);
  num_permits_ += std::exchange(other.num_permits_, 0);
}

void Scope::give_back_permits() {
  service_.permits.give_back(std::exchange(num_permits_, 0));
}

double Scope::elapsed_s() const {
  return seconds_between(arrived_at_, Clock::now());
}

void Scope::begin_generation(int64_t num_sequences) {
  if (!record_.is_generation) {
    record_.is_generation = true;
    ++service_.num_unanswered;
    service_.metrics.request_started();
  }
  if (service_.draining) {
    throw ApiError(503, "shutting_down", "the server is shutting down and takes no new work");
  }
  if (!service_.permits.try_take(num_sequences)) throw overloaded_error();
  num_permits_ += num_sequences;
}

void Scope::token_written(size_t choice) {
  const auto now = Clock::now();
  if (!record_.time_to_first_token_s) {
    record_.time_to_first_token_s = seconds_between(arrived_at_, now);
    service_.metrics.first_token(*record_.time_to_first_token_s);
  }
  if (choice >= last_token_at_.size()) last_token_at_.resize(choice + 1);
  Clock::time_point& last = last_token_at_[choice];
  if (last.time_since_epoch().count() != 0) {
    service_.metrics.token_gap(seconds_between(last, now));
  }
  last = now;
}

void Scope::failed(const ApiError& error) {
  record_.error_type = error.type();
  record_.failure = failure_of(error);
  const bool is_told = !record_.adapter_failure.empty();
  if (error.code() == kAdapterFailed && !is_told) record_.adapter_failure = "load_adapter";
}

void Scope::client_left() {
  record_.failure = Failure::kDropped;
  // Before the first token the gateway can't tell waiting from computing, and of a whole answer it
  // sees no token: the daemon's own metric tells.
  if (record_.stream) {
    record_.cancelled_phase = record_.time_to_first_token_s ? "decode" : "prefill";
  }
}

void Scope::end(int status, bool was_sent) {
  record_.status = status;
  if (!was_sent && record_.is_generation && record_.failure == Failure::kNone) client_left();
  record_.total_s = elapsed_s();
  service_.metrics.observe(record_);
  service_.log.write(record_);
  if (service_.exporter != nullptr && record_.is_generation) service_.exporter->add(record_);
}

std::vector<Header> timing_headers(const Scope& scope, int64_t num_prompt_characters) {
  const RequestRecord& record = scope.record();
  const double total_s = scope.elapsed_s();
  const auto millis = [](double seconds) {
    return std::to_string(static_cast<int64_t>(std::max(seconds, 0.0) * 1000));
  };
  const int64_t num_generated = record.num_generated_tokens.value_or(0);
  const double inference_s = record.inference_s.value_or(0);
  std::vector<Header> out = {
      {"x-compute-type", scope.options().compute_type},
      {"x-compute-time", fmt::format("{:.6f}", total_s)},
      {"x-compute-characters", std::to_string(num_prompt_characters)},
      {"x-total-time", millis(total_s)},
      {"x-validation-time", millis(record.validation_s.value_or(0))},
      {"x-queue-time", millis(record.queue_s.value_or(0))},
      {"x-inference-time", millis(inference_s)},
      {"x-time-per-token",
       millis(inference_s / static_cast<double>(std::max<int64_t>(num_generated, 1)))},
      {"x-prompt-tokens", std::to_string(record.num_prompt_tokens.value_or(0))},
      {"x-generated-tokens", std::to_string(num_generated)}};
  // LoRAX's.
  out.push_back(
      {"x-total-tokens", std::to_string(record.num_prompt_tokens.value_or(0) + num_generated)});
  if (record.prefill_s) {
    out.push_back(
        {"x-time-to-first-token",
         millis(record.validation_s.value_or(0) + record.queue_s.value_or(0) + *record.prefill_s)});
  }
  if (record.decode_s) {
    out.push_back(
        {"x-time-per-output-token",
         millis(*record.decode_s / static_cast<double>(std::max<int64_t>(num_generated - 1, 1)))});
  }
  if (record.num_skipped_tokens.value_or(0) > 0) {
    out.push_back({"x-skipped-tokens", std::to_string(*record.num_skipped_tokens)});
  }
  if (!record.adapter.empty()) {
    out.push_back({"x-adapter-id", printable(record.adapter)});
    out.push_back({"x-adapter-source", record.adapter_source});
    out.push_back({"x-model-id", printable(scope.options().model_id)});
  }
  return out;
}

ipc::OrderedJson ask_daemon(const Service& service,
                            std::string_view method,
                            const ipc::OrderedJson& params) {
  ipc::ClientOptions options = service.daemon;
  options.cancel_fd = -1;
  options.hello_timeout_ms = kAskTimeoutMs;
  ipc::Exchange exchange(options, method, params);
  std::optional<ipc::Reply> reply = exchange.next(kAskTimeoutMs);
  if (!reply || !reply->result) {
    throw Error(Code::kUnavailable, "the daemon did not answer in time");
  }
  return std::move(*reply->result);
}

void choose_adapter(Scope& scope, const AdapterAsk& ask, ipc::GenerateRequest& request) {
  if (scope.service().adapters == nullptr) return;
  // The one that is given to requests that name none is of the default model.
  if (scope.daemon_model() && !ask.id && !ask.merged) return;
  try {
    scope.service().adapters->choose(ask, scope.options().model_id, request);
  } catch (const ApiError& error) {
    if (error.code() == kAdapterFailed) scope.record().adapter_failure = "download_adapter";
    throw;
  }
  scope.record().adapter = request.merged_adapters
                               ? fmt::format("{}", fmt::join(request.merged_adapters->ids, ","))
                               : request.adapter.value_or("");
  scope.record().adapter_source = scope.service().adapters->source_of(ask);
}

}  // namespace tgi::http
