// What `tgi serve` was told by its flags and environment, as plain values: the gateway works from
// this alone and never looks at flags. Made by resolve_serve_flags (serve_flags.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipc/model_name.h"
#include "ipc/protocol.h"

namespace tgi {

// A setting of tgid, by the name of its flag there: {"max-running", "32"}.
struct EngineSetting {
  std::string flag;
  std::string value;
  bool operator==(const EngineSetting&) const = default;
};

// A path under which a route answers too: {"/predict", "/vertex"}.
struct RouteAlias {
  std::string path;
  std::string route;
  bool operator==(const RouteAlias&) const = default;
};

struct ServeOptions {
  // A folder that exists, a name or an address of a model to download, or "demo"; empty: whatever
  // the daemon has.
  std::string model;
  std::string revision;    // of a model of the hub; empty: main, or the one in its name
  std::string cache_dir;   // empty: huggingface_hub's
  bool offline = false;    // nothing is downloaded
  std::string model_path;  // for the daemon; filled in by run_serve, which downloads
  // More models; run_serve makes paths of theirs too.
  std::vector<ipc::NamedModel> beside;
  std::vector<ipc::NamedModel> on_demand{};  // loaded when requests ask for them
  // How long those stay that come back with a new daemon, by their names; "": the default one.
  std::map<std::string, ipc::ModelStay> stays{};

  // --- where and for whom
  std::string host = "127.0.0.1";  // an address or a name, an IPv6 address without brackets
  uint16_t port = 3000;            // 0: a free one
  std::optional<std::string> api_key;
  std::vector<std::string> cors_allow_origin;  // empty: any
  std::vector<RouteAlias> route_aliases;
  bool allow_pull = false;  // clients may have models downloaded, by ollama's route
  bool any_model = false;   // a name that is not known means the model that is served

  // --- limits
  int64_t max_concurrent_requests = 128;
  int64_t max_best_of = 2;
  int64_t max_stop_sequences = 4;
  int64_t max_top_n_tokens = 5;
  int64_t max_client_batch_size = 4;        // prompts of one /v1/completions request
  int64_t payload_limit = 2'000'000;        // bytes of a body
  std::optional<int64_t> max_input_tokens;  // absent: max_total_tokens - 1
  std::optional<int64_t> max_total_tokens;  // absent: what the daemon says; is in `engine` too
  std::optional<bool> sharded;              // true: num-shard is in `engine`, above 1
  int64_t max_stored_responses = 1000;      // of /v1/responses; 0: none is kept
  int64_t max_stored_bytes = 100'000'000;   // of them together
  bool disable_grammar_support = false;     // a grammar gets "grammar is not supported"
  bool enable_prefill_logprobs = false;     // without it `prefill` of the details is empty
  std::optional<std::string> tokenizer_config_path;  // a file that exists

  // --- LoRA adapters
  // Given at the start: NAME=ADAPTER or ADAPTER alone, a folder or ORG/NAME[@REVISION] of the hub.
  std::vector<std::string> lora_adapters;
  std::vector<std::string> preloaded_adapters;  // likewise, and kept on the device
  std::string static_adapter;                   // of requests that name none; empty: none
  bool merge_adapter_weights = false;           // of static_adapter, into the model's
  std::string adapter_source = "hub";           // of those that clients name: hub, local, s3
  bool allow_lora_updates = false;              // vLLM's routes that load and unload answer

  // --- what is said about it
  int64_t validation_workers = 2;  // for /info; is in `engine` too when given
  std::string compute_type;        // of the header x-compute-type; empty: the gateway's own
  std::string log_level = "info";  // debug, info, warn, error, off
  bool json_output = false;        // log lines as JSON
  std::optional<std::string> otlp_endpoint;  // http://HOST:PORT or https://
  std::string otlp_service_name = "text-generation-inference.router";

  int64_t graceful_termination_timeout = 90;  // seconds

  // For the daemon, in no order, each flag once. Only what was given: the rest is tgid's to decide.
  std::vector<EngineSetting> engine;

  // Lines to print at start: what was set but has no use here, and addresses open to others.
  std::vector<std::string> warnings;

  bool operator==(const ServeOptions&) const = default;
};

// "http://127.0.0.1:3000", "http://[::1]:3000".
std::string http_url(const std::string& host, uint16_t port);

}  // namespace tgi
