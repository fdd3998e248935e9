// The bodies of the OpenAI routes and how they become requests to the daemon. Fields that only the
// model could refuse are left to the daemon.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/body_table.h"
#include "cmd/http/guide_body.h"
#include "cmd/http/service.h"
#include "cmd/http/tools_body.h"
#include "ipc/protocol.h"

namespace tgi::http {

// Any 64 bits: OpenAI's seeds may be negative, TGI's above the largest signed number.
struct Seed {
  uint64_t value = 0;
};

// What chat and completions share.
struct OpenAiParameters : GuideFields {
  std::optional<std::string> model;
  std::optional<std::string> adapter_source;
  std::optional<std::string> api_token;
  std::optional<uint32_t> max_tokens;
  std::optional<double> temperature;
  std::optional<double> repetition_penalty;
  std::optional<double> frequency_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> top_p;
  std::optional<double> typical_p;
  std::optional<double> min_p;
  std::optional<int32_t> top_k;
  std::optional<Seed> seed;
  std::optional<uint32_t> n;
  std::optional<OrderedJson> stop;        // a text or a list of them
  std::optional<OrderedJson> logit_bias;  // {"token id": bias}
  std::optional<OrderedJson> stream_options;
  std::optional<OrderedJson> usage;                // OpenRouter's {include}
  std::optional<OrderedJson> provider;             // OpenRouter's wishes about who answers
  std::optional<std::vector<std::string>> models;  // OpenRouter's, where `model` fails
  bool stream = false;
  bool ignore_eos = false;
  std::optional<uint32_t> min_tokens;
  std::optional<uint32_t> speculate;
  std::optional<OrderedJson> keep_alive;                     // ollama's: "5m", or seconds
  std::optional<ipc::SamplingDefaults> sampling_defaults{};  // of the API, no field of a body
};

struct ChatBody : OpenAiParameters, ToolFields, ReasoningFields {
  OrderedJson messages;
  std::optional<uint32_t> max_completion_tokens;
  bool logprobs = false;
  std::optional<uint32_t> top_logprobs;
  std::optional<OrderedJson> chat_template_kwargs;
  std::optional<bool> add_generation_prompt;
  std::optional<bool> continue_final_message;
  std::optional<std::string> verbosity;
  std::optional<OrderedJson> prompt_cache_options;
};

struct CompletionBody : OpenAiParameters {
  OrderedJson prompt;
  std::optional<OrderedJson> suffix;
  bool echo = false;
  std::optional<uint32_t> logprobs;
  std::optional<uint32_t> best_of;
};

inline void read_body_value(const OrderedJson& json, const std::string& path, Seed& out) {
  if (json.is_number_unsigned()) {
    out.value = json.get<uint64_t>();
  } else {
    int64_t value = 0;
    read_body_value(json, path, value);
    out.value = static_cast<uint64_t>(value);
  }
}
template <>
struct SchemaOf<Seed> {
  static OrderedJson get() { return SchemaOf<int64_t>::get(); }
};

template <>
std::span<const BodyField<ChatBody>> body_fields<ChatBody>();
template <>
std::span<const BodyField<CompletionBody>> body_fields<CompletionBody>();
template <>
std::span<const ExtraField> extra_fields<ChatBody>();
template <>
std::span<const ExtraField> extra_fields<CompletionBody>();
template <>
struct SchemaName<ChatBody> {
  static constexpr std::string_view value = "ChatRequest";
};
template <>
struct SchemaName<CompletionBody> {
  static constexpr std::string_view value = "CompletionRequest";
};

// Whether the model itself is meant; so where no name is given.
bool is_base_model(const std::optional<std::string>& model, const ApiOptions& options);

// For a name that is neither the model's nor an adapter's. `reason`: why it is no adapter.
ApiError model_not_found(const std::string& model,
                         const ApiOptions& options,
                         const std::string& reason = "");

// Sets the adapter that `model` names, where it names one, for all requests to the daemon of one
// body. Throws 404 for a name that is nobody's.
void choose_by_model(Scope& scope,
                     const OpenAiParameters& parameters,
                     std::span<ipc::GenerateRequest> requests);

// Whether each token is the most likely one: then all of `n` answers are the same.
bool is_greedy(const OpenAiParameters& parameters);

// The variables of a chat template that a body gives, and `verbosity`, of the member `path`, among
// them, which it may know as it may know the effort of reasoning. Throws for what is none.
std::optional<OrderedJson> template_variables(const std::optional<OrderedJson>& given,
                                              const std::optional<std::string>& verbosity,
                                              const std::string& path);

// Hints for OpenAI's cache; refuses by name what is more than a hint.
void check_prompt_cache_options(const std::optional<OrderedJson>& options);

// Throws for what a client of OpenRouter asks for that this server would not do.
void check_openrouter(const OpenAiParameters& parameters);
// Whether {"usage": {"include": true}}.
bool openrouter_wants_usage(const OpenAiParameters& parameters);

// Whether {"stream_options": {"include_usage": true}}, or OpenRouter's way to say so.
bool wants_usage(const OpenAiParameters& parameters);

// What these routes call the words of our messages (Scope::set_terms).
std::span<const Term> chat_terms(const ChatBody& body);
std::span<const Term> completion_terms();

// The way of drawing, the form of the answer and the limits, for the daemon. Throws.
void fill_sampling(const OpenAiParameters& parameters,
                   const ApiOptions& options,
                   ipc::GenerateParams& to);

inline constexpr std::string_view kKeepAliveHelp =
    "how long the model stays after this: \"5m\", \"1h30m\" or seconds; 0: no longer than its "
    "requests, below 0: for ever. A pinned model stays in any case";
// How long the model stays after the request, in seconds; below 0: for ever; nothing: as before.
// Throws ApiError for what is no time.
std::optional<double> keep_alive_of(const std::optional<OrderedJson>& keep_alive);

// All of these throw the first rule that is broken.
ipc::GenerateRequest to_daemon(const ChatBody& body, const ApiOptions& options);
// One per prompt.
std::vector<ipc::GenerateRequest> to_daemon(const CompletionBody& body, const ApiOptions& options);

// The messages for the daemon, which knows whether the template wants the parts of a content or its
// text. Throws for what can't be shown to a model.
OrderedJson checked_messages(const OrderedJson& messages);

// The same conversation, tools and variables for the template, to be tokenised only.
ipc::TokenizeParams to_tokenize(const ChatBody& body);

// A conversation that ends with the assistant's turn: the answer goes on with it, as in TGI.
bool ends_with_assistant(const OrderedJson& messages);

}  // namespace tgi::http
