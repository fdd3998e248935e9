// The bodies of the routes that llama.cpp's server has beside OpenAI's (tools/server/README.md of
// llama.cpp), and how they become requests to the daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/body_table.h"
#include "cmd/http/llama_sampling.h"
#include "cmd/http/service.h"

namespace tgi::http {

struct LlamaCppBody : LlamaSampling {
  OrderedJson prompt;
  std::optional<std::string> model;
  std::optional<int64_t> n_predict;
  std::optional<int64_t> max_tokens;  // the same, as its newer versions have it
  std::optional<uint32_t> n_probs;
  std::optional<std::string> grammar;
  std::optional<OrderedJson> json_schema;
  std::optional<OrderedJson> logit_bias;
  std::optional<std::vector<std::string>> samplers;
  std::optional<std::vector<std::string>> response_fields;
  bool stream = false;
  bool ignore_eos = false;
  bool cache_prompt = true;
  bool return_tokens = false;
  bool timings_per_token = false;
};

struct LlamaCppTokenizeBody {
  std::string content;
  bool add_special = false;
  bool with_pieces = false;
};

// llama.cpp's and vLLM's.
struct DetokenizeBody {
  std::vector<int32_t> tokens;
};

// vLLM's /tokenize of a text; that of a conversation has the members of a chat.
struct VllmTokenizeBody {
  std::optional<std::string> model;
  std::string prompt;
  bool add_special_tokens = true;
  bool return_token_strings = false;
};

template <>
std::span<const BodyField<LlamaCppBody>> body_fields<LlamaCppBody>();
template <>
std::span<const BodyField<LlamaCppTokenizeBody>> body_fields<LlamaCppTokenizeBody>();
template <>
std::span<const BodyField<DetokenizeBody>> body_fields<DetokenizeBody>();
template <>
std::span<const BodyField<VllmTokenizeBody>> body_fields<VllmTokenizeBody>();
template <>
std::span<const ExtraField> extra_fields<LlamaCppBody>();
template <>
std::span<const ExtraField> extra_fields<LlamaCppTokenizeBody>();
template <>
std::span<const ExtraField> extra_fields<DetokenizeBody>();

// The ids of a text. Throws ApiError.
using Tokenize = std::function<std::vector<int32_t>(const std::string& text, bool add_special)>;

// The prompts of a body, each a text or a list of ids; what is mixed becomes ids.
OrderedJson llama_cpp_prompts(const OrderedJson& prompt, const Tokenize& tokenize);

// The members that say how an answer is made, in OpenAI's terms; `prompts` as above. Throws
// ApiError for the first rule that is broken.
CompletionBody to_completion(const LlamaCppBody& body,
                             OrderedJson prompts,
                             const ApiOptions& options,
                             const Tokenize& tokenize);

// What the route calls the words of our messages (Scope::set_terms).
std::span<const Term> llama_cpp_terms();

// What llama.cpp tells as `generation_settings`: what holds for this answer.
OrderedJson generation_settings(const LlamaCppBody& body, const CompletionBody& asked);

}  // namespace tgi::http
