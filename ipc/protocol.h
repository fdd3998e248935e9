// The contract between tgi and tgid: newline-delimited JSON on a Unix socket. docs/protocol.md is
// this file as a page for readers; the two change together.
//
//   1. The daemon writes the hello line as soon as a client is accepted.
//   2. The client writes one request line: {"method": NAME, "params": {...}}.
//   3. The daemon answers with lines. `generate` gives (with `announce`) one accepted event, any
//      number of token events and then one done event; the other methods give one {"result":
//      {...}}, those that take long with progress events before it. An {"error": {"code",
//      "message"}} line is always the last one.
//   4. The daemon closes. One request per connection: a client that closes earlier cancels.
//
// A line is at most kMaxLineBytes long, is valid UTF-8, nests at most kMaxJsonDepth deep, and has
// at most kMaxJsonValues values, of which no object has more than kMaxJsonObjectMembers. Unknown
// fields of a request are refused by name, so that a misspelt parameter is never ignored. Fields
// only get added within one kProtocolVersion, so a client passes over unknown fields of a reply.
// Null counts as absent. Plain values without threads; every from_json throws
// Error{kInvalidArgument} naming the field.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/version.h"
#include "ipc/model_settings.h"

namespace tgi::ipc {

using OrderedJson = nlohmann::ordered_json;  // keeps the member order of messages and tools

inline constexpr int kProtocolVersion = 1;
using tgi::kVersion;  // "0.1.0", of the program
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonObjectMembers = 1024;
inline constexpr size_t kMaxJsonValues = size_t{4} << 20;
inline constexpr size_t kMaxLogitBiases = 1024;
inline constexpr size_t kMaxAdapterName = 1024;   // bytes
inline constexpr size_t kMaxMergedAdapters = 32;  // into one
inline constexpr int64_t kAllTokens = INT32_MAX;  // as top_k: off, whatever the defaults say

// Method names.
inline constexpr std::string_view kGenerate = "generate";
inline constexpr std::string_view kStatus = "status";
inline constexpr std::string_view kLoad = "load";
inline constexpr std::string_view kUnload = "unload";
inline constexpr std::string_view kStop = "stop";
inline constexpr std::string_view kTokenize = "tokenize";
inline constexpr std::string_view kMetrics = "metrics";
inline constexpr std::string_view kLoadAdapter = "load_adapter";
inline constexpr std::string_view kUnloadAdapter = "unload_adapter";
inline constexpr std::string_view kAdapters = "adapters";
inline constexpr std::string_view kMerge = "merge";
inline constexpr std::string_view kCheck = "check";  // of the model's logits against float32
inline constexpr std::string_view kKeep = "keep";    // loaded: a model that requests ask for

struct Hello {
  int protocol = kProtocolVersion;
  std::string version{kVersion};
};

// Added to the logit of one token before it is picked.
struct TokenBias {
  int32_t id = 0;
  double bias = 0;  // [-100, 100]
};

// What the text of an answer has to be: exactly one of the first six.
struct GuideParams {
  std::optional<OrderedJson> json_schema;  // JSON that satisfies the schema, an object
  bool json_object = false;                // any JSON object
  std::optional<std::string> regex;        // a text that the pattern matches as a whole
  std::vector<std::string> choice;         // one of these texts
  std::optional<std::string> gbnf;         // a text of the grammar, in the notation of llama.cpp
  std::optional<std::string> lark;         // ... in that of Lark
  bool flexible_whitespace = false;        // JSON may have blanks and line ends between its parts
};

// A grammar in whichever of the two notations it is: rules of GBNF are defined by `::=`, those of
// Lark by a colon.
void set_grammar(GuideParams& guide, std::string text);

// Which of the tools that a chat shows may be called.
struct ToolChoice {
  std::string mode = "auto";       // "auto", "required" (one at least), "none"
  std::vector<std::string> names;  // these alone; empty: any
};

// What holds where the request says nothing: of an API, below what the model's preset says.
struct SamplingDefaults {
  std::optional<double> temperature{};  // as in GenerateParams
  std::optional<int64_t> top_k{};
  std::optional<double> top_p{};
  std::optional<double> min_p{};
  std::optional<int64_t> max_new_tokens{};  // at most; fewer where they do not fit
};

// How to pick tokens. Absent optionals mean "off" or "the model's default".
struct GenerateParams {
  // absent: all that fits, max_total_tokens - prompt; 0: the prompt alone is computed
  std::optional<int64_t> max_new_tokens;
  // Sampling is on as well when any of the next five is given. False, and none of them: greedy,
  // whatever the model's preset says; absent: as that says.
  std::optional<bool> do_sample{};
  std::optional<double> temperature;  // > 0
  std::optional<int64_t> top_k;       // > 0
  std::optional<double> top_p;        // (0, 1]
  std::optional<double> typical_p;    // (0, 1]
  std::optional<double> min_p;        // [0, 1]: keeps p >= min_p * p_max
  std::optional<SamplingDefaults> sampling_defaults{};
  std::optional<double> repetition_penalty;  // > 0; 1 is off; over prompt and output
  std::optional<double> frequency_penalty;   // [-2, 2]; per occurrence in the output
  std::optional<double> presence_penalty;    // [-2, 2]; once per distinct token of the output
  std::vector<TokenBias> logit_bias;         // after the penalties; at most kMaxLogitBiases
  std::optional<uint64_t> seed;              // absent: random, reported back
  std::vector<std::string> stop;
  bool include_stop_text = true;  // the stop string stays at the end of the text, as in TGI
  int64_t best_of = 1;            // > 1 needs sampling
  int64_t top_n_tokens = 0;
  std::optional<int64_t> truncate;  // keep the last N tokens of the prompt
  // Limits of whoever asks, below those of the model: a request over them is refused.
  std::optional<int64_t> max_input_tokens;  // of the prompt
  std::optional<int64_t> max_total_tokens;  // prompt and output together
  bool ignore_eos = false;
  std::optional<GuideParams> guide;             // the answer, all of it but its reasoning
  std::optional<int64_t> max_reasoning_tokens;  // of parse_answer: then the reasoning is ended
  bool return_full_text = false;
  bool watermark = false;
  bool details = false;  // the done event lists every token
  // The done event lists the prompt's tokens; not from the prefix cache.
  bool prompt_logprobs = false;
  bool use_prefix_cache = true;
  // Tokens to be drafted at most for a step; absent: as the model was loaded (--speculate), which
  // is the most there may be; 0: none. The answer is the same.
  std::optional<int64_t> speculate;
};

// Adapters that together make the one by which the model answers (engine/lora/merge_adapters.h).
struct MergedAdapters {
  std::vector<std::string> ids;           // names; at least one, at most kMaxMergedAdapters
  std::vector<std::string> paths{};       // (optional) folders, one for each id; "": it is loaded
  std::vector<double> weights{};          // (optional: all 1) one for each id
  std::string merge_strategy = "linear";  // of kMergeStrategyNames
  std::optional<double> density{};        // above 0; of all strategies but linear
  std::string majority_sign_method = "total";  // of kMajoritySignNames
};

// Exactly one of prompt, prompt_ids, messages. On the wire the fields of `params` stand beside the
// others: {"prompt": "hi", "stream": true, "temperature": 0.7}.
struct GenerateRequest {
  std::optional<std::string> model{};  // by its name; absent: the default one
  // How long the model then stays without a request; below 0: for ever; absent: as before.
  std::optional<double> keep_alive_seconds{};
  std::optional<std::string> prompt;
  std::optional<std::vector<int32_t>> prompt_ids;
  // [{role, content, ...}]; rendered by the model's chat template.
  std::optional<OrderedJson> messages;
  // (optional) The adapter by which the model answers: the name that it was loaded under.
  std::optional<std::string> adapter{};
  // (optional) ... its folder: it is loaded under that name if it is not yet.
  std::optional<std::string> adapter_path{};
  // (optional) ... or several, merged; not with adapter.
  std::optional<MergedAdapters> merged_adapters{};
  // Chat only, as is all that follows. [{type: "function", function: {name, description,
  // parameters, strict}}]; what is called comes as tool_calls.
  std::optional<OrderedJson> tools;
  std::optional<ToolChoice> tool_choice{};
  std::optional<bool> parallel_tool_calls{};          // several calls in one answer; absent: true
  std::optional<std::string> tool_prompt{};           // how to call, for the model
  std::optional<std::string> reasoning_effort{};      // "none", "low", "medium", "high" ...
  std::optional<OrderedJson> chat_template_kwargs{};  // {name: value}, variables of the template
  // Reasoning is told apart from the text; so always with tools. Absent: false.
  std::optional<bool> parse_answer{};
  bool continue_final_message = false;
  bool announce = false;  // one accepted event first
  bool stream = false;    // token events; without it only the done event comes
  GenerateParams params;
};

enum class FinishReason { kLength, kEosToken, kStopSequence };
std::string_view finish_reason_name(FinishReason reason);  // "length", "eos_token", "stop_sequence"

struct TokenInfo {
  int32_t id = 0;
  std::string text;  // of this token alone, byte errors replaced
  // Natural log under the raw distribution; absent: none (first prompt token).
  std::optional<double> logprob;
  bool special = false;
  bool skipped = false;          // it was drafted: no step of the model was spent on it alone
  std::vector<uint8_t> bytes{};  // where they are not valid UTF-8, so that the text can't tell them
};

// The request has been checked and waits for its first step.
struct AcceptedEvent {
  int64_t num_prompt_tokens = 0;
  int64_t num_prompt_characters = 0;  // Unicode scalar values of the prompt or the rendered chat
  int64_t max_new_tokens = 0;         // as asked, or all that fits
};

// A call of a tool; in a token event what the token added to it.
struct ToolCall {
  int64_t index = 0;  // of the answer's calls
  std::string id;     // in the first part of a call alone, as the name
  std::string name;
  std::string arguments;  // JSON, an object
};

struct TokenEvent {
  int64_t index = 0;  // of the sequence, below best_of
  TokenInfo token;
  // Released to the reader by this token: whole UTF-8, "" while something is held back.
  std::string text;
  std::string reasoning{};                      // as `text`, of the model's reasoning
  std::vector<ToolCall> tool_calls{};           // what was added to them
  std::vector<TokenInfo> top_tokens{};          // by falling logprob
  std::optional<FinishReason> finish_reason{};  // the last token of its sequence
};

struct Timings {
  double queue_ms = 0;                // accepted until first scheduled
  double time_to_first_token_ms = 0;  // accepted until the first token was there
  double decode_ms = 0;               // first token until the last
  double total_ms = 0;
};

struct SequenceResult {
  int64_t index = 0;  // below best_of
  std::optional<uint64_t>
      draw_seed{};  // when sampling: as the seed of a request it gives this again
  std::string text;
  std::string reasoning{};
  std::vector<ToolCall> tool_calls{};
  FinishReason finish_reason = FinishReason::kLength;
  std::string stop_sequence;  // the one that matched, else ""
  int64_t num_generated_tokens = 0;
  int64_t num_reasoning_tokens = 0;  // of them
  int64_t num_skipped_tokens = 0;    // of them: TokenInfo.skipped
  double mean_logprob = 0;
  std::vector<TokenInfo> tokens;                   // with details
  std::vector<std::vector<TokenInfo>> top_tokens;  // with top_n_tokens; one list per token
};

// The sequence itself, and what the whole request cost.
struct DoneEvent {
  SequenceResult best;
  std::vector<SequenceResult> others;    // best_of - 1 of them
  std::vector<TokenInfo> prompt_tokens;  // with prompt_logprobs
  std::vector<std::vector<TokenInfo>>
      prompt_top_tokens{};       // and with top_n_tokens; a list per token, that of the first empty
  std::optional<uint64_t> seed;  // when sampling
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;     // of the prompt, taken from the prefix cache
  int64_t num_truncated_tokens = 0;  // dropped from the left on the client's wish
  Timings timings;
};

// How far a long method is.
struct ProgressEvent {
  std::string phase;  // in words
  int64_t done = 0;   // of total, in whatever the method counts
  int64_t total = 0;
  double seconds = 0;                    // so far
  std::optional<double> seconds_left{};  // where it can be told
};

// What methods about one model take that have nothing else to say.
struct ModelParams {
  std::optional<std::string> model{};  // by its name; absent: the default one
};

// Loads a model that is loaded on demand, and says how long it stays.
struct KeepParams {
  std::optional<std::string> model{};          // by its name; absent: the default one
  std::optional<double> keep_alive_seconds{};  // as in a GenerateRequest
  std::optional<bool> pinned{};  // as in LoadParams, which needs a manager of the daemon; absent:
                                 // as before
};

struct UnloadParams {
  std::optional<std::string> model{};  // by its name; absent: the default one
  bool keep_name = false;              // it is loaded again when a request asks for it
};

struct LoadParams {
  std::string model;  // a folder, or "demo"
  // (optional) It is served beside the others, by this name; absent: it takes the default's place.
  std::optional<std::string> name{};
  bool on_demand = false;                      // with a name: loaded when a request asks for it
  bool pinned = false;                         // it neither gives way to another nor expires
  std::optional<double> keep_alive_seconds{};  // as in a GenerateRequest; absent: as the daemon's
  GivenSettings settings{};
};

struct LoadAdapterParams {
  std::optional<std::string> model{};  // by its name; absent: the default one
  std::string name;
  std::string path;                 // a folder
  std::optional<bool> pinned = {};  // it stays on the device although no request wants it
};

struct UnloadAdapterParams {
  std::optional<std::string> model{};  // by its name; absent: the default one
  std::string name;
};

// Writes a model with an adapter merged into its weights.
struct MergeParams {
  std::string model;    // a folder
  std::string adapter;  // a folder
  std::string output;   // a folder that is not there yet
};

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
  int64_t head_dim = 0;
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
  std::string isa;      // "amx", "avx512bf16", "avx512vnni", "avx512", "avx2", "generic"
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

struct TokenizeParams {
  std::optional<std::string> model{};  // by its name; absent: the default one
  std::optional<std::string> prompt;
  std::optional<OrderedJson> messages;
  // Chat only, as in a GenerateRequest.
  std::optional<OrderedJson> tools{};
  std::optional<ToolChoice> tool_choice{};
  std::optional<std::string> tool_prompt{};
  std::optional<std::string> reasoning_effort{};
  std::optional<OrderedJson> chat_template_kwargs{};
  bool add_special = true;
  bool continue_final_message = false;  // chat only
};
// The slice of the text a token stands for, in Unicode scalar values; empty for tokens that were
// added.
struct TokenSpan {
  int64_t start = 0;
  int64_t stop = 0;
};
struct TokenizeResult {
  std::string text;  // what was tokenised: the prompt, or the rendered chat
  std::vector<TokenInfo> tokens;
  std::vector<TokenSpan> spans{};  // one per token
};

// --- codec: one JSON value each way, compact, without the newline

// A request line taken apart. `params` is {} when absent.
struct Request {
  std::string method;
  OrderedJson params;
};

// JSON from outside: throws kInvalidArgument for bad syntax (with the byte) and for more than the
// limits above allow.
OrderedJson parse_json(std::string_view text);

std::string encode_hello(const Hello& hello);
Hello decode_hello(std::string_view line);

std::string encode_request(std::string_view method, const OrderedJson& params);
Request decode_request(std::string_view line);

// Replies. Strings that are not valid UTF-8 are never put in (checked: kInternal).
std::string encode_result(const OrderedJson& result);
std::string encode_error(const Error& error);
std::string encode_accepted_event(const AcceptedEvent& event);
std::string encode_token_event(const TokenEvent& event);
std::string encode_done_event(const DoneEvent& event);
std::string encode_progress_event(const ProgressEvent& event);

// One reply line taken apart: exactly one of the members is set. An error line comes back as the
// Error it carries.
struct Reply {
  std::optional<AcceptedEvent> accepted;
  std::optional<TokenEvent> token;
  std::optional<DoneEvent> done;
  std::optional<ProgressEvent> progress;
  std::optional<OrderedJson> result;
  std::optional<Error> error;
};
Reply decode_reply(std::string_view line);

OrderedJson to_json(const GuideParams& guide);
OrderedJson to_json(const GenerateParams& params);
GenerateParams generate_params_from_json(const OrderedJson& params);
OrderedJson to_json(const GenerateRequest& request);
GenerateRequest generate_request_from_json(const OrderedJson& params);
OrderedJson to_json(const ModelParams& params);
ModelParams model_params_from_json(const OrderedJson& params);
OrderedJson to_json(const KeepParams& params);
KeepParams keep_params_from_json(const OrderedJson& params);
OrderedJson to_json(const UnloadParams& params);
UnloadParams unload_params_from_json(const OrderedJson& params);
OrderedJson to_json(const LoadParams& params);
LoadParams load_params_from_json(const OrderedJson& params);
OrderedJson to_json(const LoadAdapterParams& params);
LoadAdapterParams load_adapter_params_from_json(const OrderedJson& params);
OrderedJson to_json(const UnloadAdapterParams& params);
UnloadAdapterParams unload_adapter_params_from_json(const OrderedJson& params);
OrderedJson to_json(const MergeParams& params);
MergeParams merge_params_from_json(const OrderedJson& params);
OrderedJson to_json(const AdapterStatus& status);
OrderedJson to_json(const AdapterList& list);
AdapterList adapter_list_from_json(const OrderedJson& json);
OrderedJson to_json(const Status& status);
Status status_from_json(const OrderedJson& json);
OrderedJson to_json(const TokenizeParams& params);
TokenizeParams tokenize_params_from_json(const OrderedJson& params);
OrderedJson to_json(const TokenizeResult& result);
TokenizeResult tokenize_result_from_json(const OrderedJson& json);
OrderedJson to_json(const AcceptedEvent& event);
OrderedJson to_json(const ProgressEvent& event);
OrderedJson to_json(const std::vector<MetricFamily>& families);
std::vector<MetricFamily> metric_families_from_json(const OrderedJson& json);
OrderedJson to_json(const TokenInfo& token);
OrderedJson to_json(const SequenceResult& sequence);
OrderedJson to_json(const TokenEvent& event);
OrderedJson to_json(const DoneEvent& event);  // the fields of `best` beside the others
DoneEvent done_event_from_json(const OrderedJson& json);

}  // namespace tgi::ipc
