// What the handlers of one gateway share, and what they keep about one request. No route is known
// here.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/api_error.h"
#include "cmd/http/message.h"
#include "cmd/http/metrics.h"
#include "cmd/http/otlp_exporter.h"
#include "cmd/http/request_log.h"
#include "cmd/http/request_record.h"
#include "ipc/client.h"
#include "ipc/protocol.h"

namespace tgi::http {

// Limits of this gateway and facts it tells. A request sees the same from its first line to its
// last.
struct ApiOptions {
  std::string model_id;  // told by /info and /v1/models; clients may name it
  // By which the daemon is asked for the model; "": it is its default one.
  std::string daemon_model{};
  std::string phase = "ready";  // as the daemon last told: "ready", "not loaded" and so on
  ipc::ModelStay stay{};        // likewise
  // It was loaded once, so that what follows is known; else it is to be loaded first.
  bool is_known = true;
  std::vector<std::string> model_ids{};          // of all that are served; CurrentOptions sets them
  std::string compute_type;                      // the x-compute-type header
  std::string pipeline_tag = "text-generation";  // what the hub calls the model's task
  int64_t max_concurrent_requests = 128;
  int64_t max_best_of = 2;
  int64_t max_choices = 16;  // `n` of the OpenAI routes: what the daemon allows
  int64_t max_stop_sequences = 4;
  int64_t max_top_n_tokens = 5;
  int64_t max_top_logprobs = 20;  // of the OpenAI routes
  int64_t max_input_tokens = 0;
  int64_t max_total_tokens = 0;
  int64_t max_client_batch_size = 4;  // prompts of one completions request
  int64_t validation_workers = 2;
  bool enable_prefill_logprobs = false;
  bool supports_grammars = true;
  bool any_model = false;  // a name that is neither the model's nor an adapter's means the model
  bool has_chat_template = true;
  bool has_reasoning = true;         // the model's reasoning is known from its answer
  bool allows_lora_updates = false;  // clients may have adapters loaded and unloaded (lora_api.h)
};

// The right to `max` things at once; never waited for. Thread-safe.
class Permits {
 public:
  explicit Permits(int64_t max) : max_(max) {}

  [[nodiscard]] bool try_take(int64_t count) {
    if (taken_.fetch_add(count) + count <= max_) return true;
    taken_.fetch_sub(count);
    return false;
  }
  void give_back(int64_t count) { taken_.fetch_sub(count); }
  int64_t num_taken() const { return taken_.load(); }

 private:
  const int64_t max_;
  std::atomic<int64_t> taken_{0};
};

// What holds for requests that come now: the daemon may be given other models at any time.
// Thread-safe.
class CurrentOptions {
 public:
  using All = std::vector<std::shared_ptr<const ApiOptions>>;

  CurrentOptions(ApiOptions options) { set({std::move(options)}); }
  CurrentOptions(std::vector<ApiOptions> options) { set(std::move(options)); }

  // Of the default model.
  std::shared_ptr<const ApiOptions> get() const { return all()->front(); }
  // Of the model that clients name so; null: there is none.
  std::shared_ptr<const ApiOptions> find(std::string_view model_id) const;
  // The default model's first.
  std::shared_ptr<const All> all() const {
    const std::lock_guard lock(mutex_);
    return options_;
  }
  // REQUIRES: one for each model that is served, the default one's first.
  void set(std::vector<ApiOptions> options);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const All> options_;  // guarded by mutex_
};

class StreamPumps;
class Adapters;
class ResponseStore;
class BackgroundRuns;
struct AdapterAsk;

// Gets how many bytes of a download are there, of how many. False: it is not wanted any more.
using PullProgress = std::function<bool(int64_t done, int64_t total)>;

struct Service {
  CurrentOptions options;
  const ipc::ClientOptions daemon;  // cancel_fd: readable when running work must end
  Permits permits;
  Metrics& metrics;
  RequestLog& log;
  StreamPumps* pumps = nullptr;
  OtlpExporter* exporter = nullptr;      // (optional)
  Adapters* adapters = nullptr;          // (optional)
  ResponseStore* responses = nullptr;    // (optional) null: no answer is kept
  BackgroundRuns* background = nullptr;  // (optional) null: nothing goes on without its client
  std::atomic<bool> draining{false};     // no new work
  // Requests to generate whose last byte is not written yet; their permits are back before that.
  std::atomic<int64_t> num_unanswered{0};
  // Why the daemon is not there, in words; "" when it is, or when nobody knows. (optional)
  std::function<std::string()> daemon_trouble{};
  // Downloads a model of the hub and has the daemon load it when requests ask for its name. Throws
  // Error, kCancelled where `tell`, the client's leaving (its connection is `peer_fd`) or the end
  // of the gateway ended it. (optional: clients may not)
  std::function<void(const std::string& name, int peer_fd, const PullProgress& tell)> pull{};
  // Asks the daemon which models it has, and sets `options` if they are others. Never throws; where
  // the daemon does not answer, all stays. (optional)
  std::function<void()> look_again{};
};

// One HTTP request from its handler's first line until its last byte was written. Shared by the
// handler and the stream that goes on after it; used by one thread at a time.
class Scope {
 public:
  Scope(Service& service, const Request& request, std::string route);
  // Of the same request, for what goes on when it is answered: `peer_fd` stands for its client.
  Scope(const Scope& other, int peer_fd);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  Service& service() const { return service_; }
  // Of the model that the request is for, the default one until choose_model. What it gave stays
  // valid.
  const ApiOptions& options() const { return *options_.back(); }
  void choose_model(std::shared_ptr<const ApiOptions> options);
  // For requests to the daemon.
  std::optional<std::string> daemon_model() const;
  int peer_fd() const { return peer_fd_; }
  // What the API of the request calls the words of our messages; none until a handler says so.
  // REQUIRES: they stay.
  void set_terms(std::span<const Term> terms) { terms_ = terms; }
  std::span<const Term> terms() const { return terms_; }
  RequestRecord& record() { return record_; }
  const RequestRecord& record() const { return record_; }

  double elapsed_s() const;  // since the request's first byte

  // The request is one to generate. Throws the error that TGI gives when there is no permit left.
  void begin_generation(int64_t num_sequences);

  // From now on this is the request that generates, and not the other, which it was.
  void take_generation_of(Scope& other);

  // The daemon is done with the request, or never had it. Called before the last bytes are written:
  // a client that asks again as soon as it has them must find its place free. May be called again.
  void give_back_permits();

  // A token of sequence `choice` went out to the client.
  void token_written(size_t choice);

  void failed(const ApiError& error);
  void client_left();

  // The last byte was written or could not be: counts, logs, exports.
  void end(int status, bool was_sent);

 private:
  Service& service_;
  std::vector<std::shared_ptr<const ApiOptions>> options_;
  std::span<const Term> terms_;
  const int peer_fd_;
  const std::chrono::steady_clock::time_point arrived_at_;
  int64_t num_permits_ = 0;
  std::vector<std::chrono::steady_clock::time_point> last_token_at_;  // of each choice
  RequestRecord record_;
};

// One short question to the daemon. Throws Error, kUnavailable when it takes too long.
ipc::OrderedJson ask_daemon(const Service& service,
                            std::string_view method,
                            const ipc::OrderedJson& params);

// Sets the adapter that is asked for, and notes it in the scope's record. Throws as
// Adapters::choose.
void choose_adapter(Scope& scope, const AdapterAsk& ask, ipc::GenerateRequest& request);

// The x-* headers of TGI's whole answers, from what the record knows by now.
std::vector<Header> timing_headers(const Scope& scope, int64_t num_prompt_characters);

}  // namespace tgi::http
