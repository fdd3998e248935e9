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
// at most kMaxJsonValues values, of which no object has more than kMaxJsonObjectMembers, nor all of
// them together so many that finding each by its name takes kMaxJsonNameSearches. Unknown fields of
// a request are refused by name, so that a misspelt parameter is never ignored. Fields only get
// added within one kProtocolVersion, so a client passes over unknown fields of a reply. Null counts
// as absent. Plain values without threads; every from_json throws Error{kInvalidArgument} naming
// the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "base/version.h"
#include "ipc/generate.h"
#include "ipc/model_settings.h"
#include "ipc/status.h"

namespace tgi::ipc {

inline constexpr int kProtocolVersion = 1;
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonObjectMembers = 4096;
inline constexpr size_t kMaxJsonNameSearches = size_t{2} << 30;  // halves of members squared
inline constexpr size_t kMaxJsonValues = size_t{4} << 20;

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
  bool on_demand = false;  // with a name: loaded when a request asks for it
  // With on_demand: where the name is another model's, it gets NAME-2, NAME-3 and so on.
  bool next_name = false;
  // The name means the default model, by what that was loaded from: that is the one to be replaced,
  // and with next_name the name is not given.
  bool names_default = false;
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
OrderedJson to_json(const TokenizeParams& params);
TokenizeParams tokenize_params_from_json(const OrderedJson& params);
OrderedJson to_json(const TokenizeResult& result);
TokenizeResult tokenize_result_from_json(const OrderedJson& json);
OrderedJson to_json(const ProgressEvent& event);

}  // namespace tgi::ipc
