// The three HTTP interfaces that tgi bench can ask, as data: where, with which body, and what an
// event of the answer means. Knows nothing of HTTP itself. Plain functions without threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ipc/protocol.h"

namespace tgi::bench {

enum class Api { kTgi, kOpenAiChat, kOpenAiCompletions };

// "tgi", "openai-chat", "openai-completions"; throws kInvalidArgument for another name.
Api api_from_name(std::string_view name);
std::string_view api_name(Api api);

// Below the server's address: "/generate_stream"; for an answer in one piece "/generate".
std::string_view api_path(Api api, bool stream);

struct BodyOptions {
  std::string model;        // "": left out
  bool ignore_eos = false;  // a field that vLLM, SGLang, llama-server and tgi know
  ipc::OrderedJson sampling = ipc::OrderedJson::object();  // by the names of ipc::GenerateParams
};

std::string request_body(Api api,
                         const BodyOptions& options,
                         std::string_view prompt,
                         int64_t num_output_tokens,
                         bool stream);

// What one event (or a whole answer in one piece) says.
struct AnswerEvent {
  bool has_output = false;  // text or a token of the answer
  bool is_end = false;      // finish reason, TGI's last event or [DONE]
  std::optional<int64_t> num_prompt_tokens;
  std::optional<int64_t> num_output_tokens;
  std::optional<int64_t> num_cached_tokens;
  std::string error;       // message; not empty: the answer failed
  std::string error_kind;  // error_type, type or code, as the server calls it; may be ""
};

// Throws kInvalidArgument when `data` is not the JSON of an object (or [DONE]).
AnswerEvent read_event(std::string_view data);

}  // namespace tgi::bench
