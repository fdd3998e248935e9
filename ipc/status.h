// What the daemon says of itself, of its models and of their adapters: the results of `status`,
// `adapters` and `metrics` of ipc/protocol.h. Plain values without threads; every from_json throws
// Error{kInvalidArgument} naming the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "ipc/ordered_json.h"

namespace tgi::ipc {

using tgi::kVersion;  // "0.1.0", of the program

struct AdapterStatus {
  std::string name;
  std::string path;
  std::string base_model;  // that it was made for, as it says; "": it does not
  int64_t max_rank = 0;
  int64_t num_linears = 0;           // of the model that it changes
  std::vector<std::string> targets;  // the last parts of their names
  int64_t file_bytes = 0;
  int64_t device_bytes = 0;  // of the rank that needs most, while it is in use
  std::string state;         // "host": mapped, "loading": on its way to the device, "active"
  bool pinned = false;
  std::string pin_error{};   // why it is pinned no longer; "": nothing failed
  int64_t num_requests = 0;  // since it was loaded
  int64_t num_running = 0;   // requests
  int64_t num_waiting = 0;   // requests, until it is on the device
  double idle_seconds = 0;   // since the last request came
};

struct AdapterList {
  std::vector<AdapterStatus> adapters;
  int64_t max_bytes = 0;   // that those in use may take on the device of each rank
  int64_t used_bytes = 0;  // that they take
  int64_t max_active = 0;
};

struct MemoryPlan {  // bytes, of all ranks together
  int64_t weights = 0;
  int64_t kv_cache = 0;
  int64_t workspace = 0;
  int64_t adapters = 0;   // that those in use may take
  int64_t states = 0;     // of workspace: of layers that carry one, for all running sequences
  int64_t drafter = 0;    // what drafts: weights, KV cache and workspace of its own
  int64_t available = 0;  // what the plan had to fit into

  int64_t held() const { return weights + kv_cache + workspace + drafter; }
};

// Layers whose keys and values are of one size.
struct KvHeads {
  int64_t num_layers = 0;  // that have their own
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;   // of a key
  int64_t value_dim = 0;  // of a value; 0: the same
};

// Groups of layers with keys and values. A block of the KV cache belongs to one; a sequence has
// blocks of each, of those with a window only as many as the window needs.
struct KvGroupCounts {
  int64_t num_full = 1;
  int64_t num_windowed = 0;
  int64_t window = 0;      // tokens
  int64_t num_layers = 0;  // of a group
  // Where layers differ, or some read the keys and values of another.
  std::vector<KvHeads> heads{};
  int64_t num_shared = 0;  // layers that read another one's

  int64_t num_groups() const { return num_full + num_windowed; }
};

// An instruction set that the processor announces, but whose kernels failed when they were tried.
struct LeftOutKernels {
  std::string isa;     // "amx"
  std::string kernel;  // the first that failed, and with what
  std::string reason;  // what it did
};

struct ModelStatus {
  std::string name;           // what it was loaded from
  std::string served_name{};  // by which requests ask for it; "": it has none
  std::string architecture;
  std::string task = "generate";  // "embed", "classify", "classify-tokens"
  int64_t dimensions = 0;         // of a text's vector, or scores of a text
  std::string dtype;              // of the weights as they are in memory
  // "none"; of the layers' matrices that were rounded while loading "int8", "int4"; of a quantised
  // checkpoint its format: "compressed-tensors", "gptq", "awq", "fp8"
  std::string quantize;
  std::string
      quantize_held{};  // of a quantised checkpoint, in memory: "int4", "bf16", "int4, bf16"
  int64_t quantize_group_size = 0;  // columns that share a scale; 0: none do
  std::string kv_cache_dtype;
  std::string backend;  // "cpu"
  std::string isa;      // "amx", "avx512bf16", "avx512vnni", "avx512", "avxvnni", "avx2", "generic"
  std::string device;   // the hardware of the first rank, by its maker's name
  std::vector<LeftOutKernels> left_out{};  // better than `isa`, if they worked
  int64_t num_shard = 1;       // ranks that share the model; what follows is of all together
  std::string merge_adapter;   // a folder: merged into the weights; "": none
  bool deterministic = false;  // asked for; the cpu backend is so always
  int64_t num_threads = 0;
  int64_t num_params = 0;
  int64_t vocab_size = 0;
  int64_t max_total_tokens = 0;
  int64_t max_running = 0;       // sequences in a step
  int64_t max_batch_tokens = 0;  // token rows in a step
  int64_t speculate = 0;         // tokens that are drafted at most for a step of a sequence
  std::string drafter{};         // what drafts them: "n-gram", "medusa"; "": nothing does
  std::string
      speculation_off{};  // why none are, though it was asked for; "": they are, or it was not
  int64_t max_best_of = 0;
  int64_t max_stop_sequences = 0;
  int64_t max_top_n_tokens = 0;
  int64_t block_size = 0;  // tokens
  KvGroupCounts kv_groups{};
  int64_t num_blocks = 0;
  int64_t num_blocks_used = 0;    // leased to sequences
  int64_t num_blocks_cached = 0;  // held by the prefix cache alone
  int64_t num_blocks_free = 0;
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_adapters = 0;              // that are loaded
  int64_t num_active_adapters = 0;       // of them and of merges: on the device
  int64_t adapter_bytes_used = 0;        // that those take, of each rank
  std::vector<int64_t> captured_rows{};  // numbers of decode rows that a GPU has captured steps for
  int64_t kv_bytes_per_token = 0;        // in all groups
  int64_t weight_bytes_per_token = 0;    // streamed from memory for one decoded token
  bool has_chat_template = false;
  std::string tool_parser{};       // by which calls of tools are read; "": none
  std::string reasoning_parser{};  // ... and reasoning
  double load_seconds = 0;
  MemoryPlan memory;
};

struct Counters {  // since the daemon started
  int64_t num_requests = 0;
  int64_t num_failed = 0;
  int64_t num_cancelled = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_generated_tokens = 0;
  int64_t num_drafted_tokens = 0;  // that steps verified
  int64_t num_skipped_tokens = 0;  // of them: drawn as they were drafted
  int64_t num_preemptions = 0;
  int64_t num_steps = 0;
};

// Who uses a model, and how long it stays.
struct ModelStay {
  bool pinned = false;
  double keep_alive_seconds = -1;              // without a request; below 0: for ever
  int64_t num_uses = 0;                        // requests that have it
  int64_t num_uses_before = 0;                 // requests that still have the one that it replaced
  int64_t num_waiting = 0;                     // requests that wait until it is loaded
  std::optional<double> idle_seconds{};        // since a request had it last
  std::optional<double> expires_in_seconds{};  // when it is unused until then

  bool operator==(const ModelStay&) const = default;
};

// A model beside the default one.
struct OtherModelStatus {
  std::string name;
  std::string phase;  // as in Status
  std::string phase_detail;
  std::string path{};  // as in Status
  std::optional<ModelStatus> model{};
  std::optional<ModelStatus> last_model{};  // as in Status
  ModelStay stay{};
  Counters counters{};

  // What is known of it, loaded or not; null: nothing.
  const ModelStatus* known() const { return model ? &*model : last_model ? &*last_model : nullptr; }
};

struct Status {
  std::string version{kVersion};
  int64_t pid = 0;
  double uptime_seconds = 0;
  // "no model", "not loaded" (it is when a request asks), "loading", "ready", "draining", "failed"
  std::string phase;
  std::string phase_detail;  // what is being loaded, or why it failed
  std::string path{};        // what it was or will be loaded from, in every phase but "no model"
  std::string socket;
  int64_t rss_bytes = 0;
  std::optional<ModelStatus> model;         // the default one
  std::optional<ModelStatus> last_model{};  // what it was when it was loaded; only while it is not
  ModelStay stay{};                         // of it
  int64_t max_models = 0;                   // loaded at once; 0: as many as fit
  Counters counters;
  std::vector<OtherModelStatus> others{};

  const ModelStatus* known() const { return model ? &*model : last_model ? &*last_model : nullptr; }
};

// Whether a model was given that name; and that model. find_model throws kNotFound with the names
// that there are.
bool has_model(const Status& status, const std::string& name);
OtherModelStatus find_model(const Status& status, const std::string& name);

// One time series of a metric family: a value, or the buckets of a histogram.
struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels{};
  double value = 0;
  std::vector<double> bounds{};   // upper, rising
  std::vector<int64_t> counts{};  // one more than bounds; each bucket alone, not cumulated
  double sum = 0;                 // of the observations
};

// In Prometheus' terms; names carry their unit as TGI's do (seconds when none is told).
struct MetricFamily {
  std::string name;
  std::string type;  // "counter", "gauge", "histogram"
  std::string help;
  std::vector<MetricSample> samples;
};

OrderedJson to_json(const AdapterStatus& status);
OrderedJson to_json(const AdapterList& list);
AdapterList adapter_list_from_json(const OrderedJson& json);
OrderedJson to_json(const Status& status);
Status status_from_json(const OrderedJson& json);
OrderedJson to_json(const std::vector<MetricFamily>& families);
std::vector<MetricFamily> metric_families_from_json(const OrderedJson& json);

}  // namespace tgi::ipc
