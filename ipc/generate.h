// What the method `generate` of ipc/protocol.h takes, and what it gives. Plain values without
// threads; every from_json throws Error{kInvalidArgument} naming the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/ordered_json.h"

namespace tgi::ipc {

inline constexpr size_t kMaxLogitBiases = 1024;
inline constexpr size_t kMaxAdapterName = 1024;   // bytes
inline constexpr size_t kMaxMergedAdapters = 32;  // into one
inline constexpr int64_t kAllTokens = INT32_MAX;  // as top_k: off, whatever the defaults say

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
  std::optional<int64_t> min_new_tokens{};  // before them no end token is drawn
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

OrderedJson to_json(const GuideParams& guide);
OrderedJson to_json(const GenerateParams& params);
GenerateParams generate_params_from_json(const OrderedJson& params);
OrderedJson to_json(const GenerateRequest& request);
GenerateRequest generate_request_from_json(const OrderedJson& params);
OrderedJson to_json(const AcceptedEvent& event);
OrderedJson to_json(const TokenInfo& token);
OrderedJson to_json(const SequenceResult& sequence);
OrderedJson to_json(const TokenEvent& event);
OrderedJson to_json(const DoneEvent& event);  // the fields of `best` beside the others
DoneEvent done_event_from_json(const OrderedJson& json);

}  // namespace tgi::ipc
