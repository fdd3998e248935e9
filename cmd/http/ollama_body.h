// The bodies of ollama's routes (ollama's page of its API, and the types of its Python client), and
// how they become those of the OpenAI routes, which have the same meaning in other words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cmd/http/body_table.h"
#include "cmd/http/llama_sampling.h"
#include "cmd/http/openai_body.h"
#include "cmd/http/service.h"
#include "cmd/http/vectors_body.h"

namespace tgi::http {

struct OllamaOptions : LlamaSampling {
  std::optional<int64_t> num_predict;
};

// What all bodies that name a model share.
struct OllamaModel {
  std::optional<std::string> model;
  std::optional<std::string> name;  // what `model` was called before
};

// ... and say how long it stays.
struct OllamaKept : OllamaModel {
  std::optional<OrderedJson> keep_alive;  // "5m", or seconds
};

struct OllamaAsk : OllamaKept {
  std::optional<bool> stream;
  std::optional<OrderedJson> format;  // "json" or a JSON schema
  std::optional<OllamaOptions> options;
  std::optional<OrderedJson> think;  // true, false, or a level
  bool logprobs = false;
  std::optional<uint32_t> top_logprobs;
};

struct OllamaChatBody : OllamaAsk {
  std::optional<OrderedJson> messages;
  std::optional<OrderedJson> tools;
};

struct OllamaGenerateBody : OllamaAsk {
  std::optional<std::string> prompt;
  std::optional<std::string> system;
  bool raw = false;
};

struct OllamaEmbedBody : OllamaKept {
  std::optional<OrderedJson> input;
  std::optional<bool> truncate;
  std::optional<int64_t> dimensions;
};

struct OllamaEmbeddingsBody : OllamaKept {
  std::optional<std::string> prompt;
};

// Of /api/create: a preset (base/files/preset.h).
struct OllamaCreateBody : OllamaModel {
  std::optional<bool> stream;
  std::optional<std::string> from;
  std::optional<std::string> system;
  std::optional<std::string> chat_template;  // "template"
  std::optional<OrderedJson> parameters;     // {name: value}
  std::optional<OrderedJson> messages;       // [{role, content}]
  std::optional<OrderedJson> license;        // a text or a list of them
};

// Of /api/show, /api/pull and /api/delete.
struct OllamaModelBody : OllamaModel {
  std::optional<bool> stream;
};

template <>
std::span<const BodyField<OllamaOptions>> body_fields<OllamaOptions>();
template <>
std::span<const BodyField<OllamaChatBody>> body_fields<OllamaChatBody>();
template <>
std::span<const BodyField<OllamaGenerateBody>> body_fields<OllamaGenerateBody>();
template <>
std::span<const BodyField<OllamaEmbedBody>> body_fields<OllamaEmbedBody>();
template <>
std::span<const BodyField<OllamaEmbeddingsBody>> body_fields<OllamaEmbeddingsBody>();
template <>
std::span<const BodyField<OllamaCreateBody>> body_fields<OllamaCreateBody>();
template <>
std::span<const BodyField<OllamaModelBody>> body_fields<OllamaModelBody>();
template <>
std::span<const ExtraField> extra_fields<OllamaOptions>();
template <>
std::span<const ExtraField> extra_fields<OllamaChatBody>();
template <>
std::span<const ExtraField> extra_fields<OllamaGenerateBody>();
template <>
std::span<const ExtraField> extra_fields<OllamaEmbedBody>();
template <>
std::span<const ExtraField> extra_fields<OllamaEmbeddingsBody>();
template <>
std::span<const ExtraField> extra_fields<OllamaCreateBody>();
template <>
std::span<const ExtraField> extra_fields<OllamaModelBody>();
template <>
struct SchemaName<OllamaOptions> {
  static constexpr std::string_view value = "OllamaOptions";
};

// What these routes call the words of our messages (Scope::set_terms).
std::span<const Term> ollama_chat_terms();
std::span<const Term> ollama_generate_terms();

// The model's name as the body has it. Throws 400 where there is none.
const std::string& ollama_name(const OllamaModel& body);

// The name without ollama's tag of those that have none, for the routes that know no tags: of
// "demo:latest" "demo".
std::string without_latest(const std::string& name);

// The same request in OpenAI's terms. `template` and what else the model could not be shown is
// refused. Throw ApiError for the first rule that is broken.
ChatBody to_chat(const OllamaChatBody& body, const ApiOptions& options);
// REQUIRES: body.prompt.
ChatBody to_chat(const OllamaGenerateBody& body, const ApiOptions& options);
CompletionBody to_completion(const OllamaGenerateBody& body, const ApiOptions& options);

// Whether the prompt goes to the model as it is: so it was asked, or there is no chat template.
bool is_raw(const OllamaGenerateBody& body, const ApiOptions& options);

}  // namespace tgi::http
