// The fields of the body of /v1/responses, in tables: responses_body.h.
#include <array>
#include <span>
#include <string_view>

#include "cmd/http/responses_body.h"

namespace tgi::http {
namespace {

constexpr std::string_view kTextAlone = "answers are made of text alone";

}  // namespace

template <>
std::span<const BodyField<ResponsesBody>> body_fields<ResponsesBody>() {
  using B = ResponsesBody;
  using P = OpenAiParameters;
  static const std::array<BodyField<B>, 34> kFields = {{
      inherited_field<B, &P::model>(
          "model", {"the name of the model, or of a LoRA adapter to answer by; absent, \"\" or "
                    "\"tgi\": whatever is served"}),
      inherited_field<B, &P::adapter_source>(
          "adapter_source", {"as LoRAX: where an adapter that `model` names is: hub, local or s3"}),
      inherited_field<B, &P::api_token>("api_token",
                                        {"as LoRAX: to the hub, for a private adapter"}),
      body_field<&B::input>("input", {"a text, or a list of items: messages, calls of functions "
                                      "and their outputs, reasoning, references to items"}),
      body_field<&B::instructions>("instructions", {"the system's message"}),
      body_field<&B::previous_response_id>("previous_response_id",
                                           {"the answer whose conversation is gone on with"}),
      inherited_field<B, &ToolFields::tools>(
          "tools", {"[{\"type\": \"function\", name, description, parameters, strict}]: what the "
                    "answer may call; functions may stand in {\"type\": \"namespace\", name, "
                    "description, tools}"}),
      inherited_field<B, &ToolFields::tool_choice>(
          "tool_choice",
          {"auto, none, required, {\"type\": \"function\", name} or {\"type\": \"allowed_tools\", "
           "mode, tools}"}),
      inherited_field<B, &ToolFields::parallel_tool_calls>("parallel_tool_calls",
                                                           {"several calls in one answer"}),
      body_field<&B::truncation>("truncation",
                                 {"auto: the oldest turns are left out of a conversation that is "
                                  "too long; disabled, the default: it is refused"}),
      body_field<&B::text>("text", {"{format, verbosity}: the format is {\"type\": \"text\"}, "
                                    "{\"type\": \"json_object\"} or {\"type\": \"json_schema\", "
                                    "name, schema}; verbosity, low, medium or high, is for the "
                                    "template"}),
      body_field<&B::reasoning>(
          "reasoning", {"{effort}: none, minimal, low, medium, high, xhigh or max, for the "
                        "template; {max_tokens}, as OpenRouter: then it is ended"}),
      inherited_field<B, &P::max_tokens>(
          "max_output_tokens",
          {.description = "of the answer with its reasoning; default: all that fits",
           .range = positive("`max_output_tokens` must be strictly positive")}),
      inherited_field<B, &P::temperature>(
          "temperature", {.description = "0: always the most likely token; default 1",
                          .range = {.low = 0, .rule = "`temperature` must be >= 0.0"}}),
      inherited_field<B, &P::top_p>("top_p",
                                    {.description = "nucleus sampling; 1 is off",
                                     .range = {.low = 0,
                                               .high = 1,
                                               .above_low = true,
                                               .rule = "`top_p` must be > 0.0 and <= 1.0"}}),
      inherited_field<B, &P::top_k>("top_k",
                                    {.description = "as vLLM: the k most likely tokens; 0 and -1: "
                                                    "off",
                                     .range = {.low = -1, .rule = "`top_k` must be >= -1"}}),
      inherited_field<B, &P::min_p>(
          "min_p", {.description = "as vLLM: as a share of the most likely token",
                    .range = {.low = 0, .high = 1, .rule = "`min_p` must be >= 0.0 and <= 1.0"}}),
      inherited_field<B, &P::repetition_penalty>(
          "repetition_penalty",
          {.description = "as vLLM: once per distinct token of prompt and output",
           .range = positive("`repetition_penalty` must be strictly positive")}),
      inherited_field<B, &P::seed>("seed", {"as vLLM: of the draws"}),
      body_field<&B::top_logprobs>("top_logprobs", {"alternatives to list for each token"}),
      body_field<&B::include>("include",
                              {"message.output_text.logprobs: the tokens with their "
                               "log-probabilities; reasoning.encrypted_content: reasoning for "
                               "clients that keep nothing else of it"}),
      body_field<&B::metadata>("metadata", {"{name: text}: told with the answer"}),
      body_field<&B::store>("store", {"keep the answer for GET and previous_response_id; default "
                                      "true"}),
      body_field<&B::background>(
          "background", {"answer at once that it is queued, and make the answer then: GET tells "
                         "how far it is, /cancel ends it. With `stream` its events are told at "
                         "once, and again by GET with ?stream=true. Not without `store`"}),
      body_field<&B::user>("user", {"told with the answer"}),
      body_field<&B::safety_identifier>("safety_identifier", {"told with the answer"}),
      body_field<&B::prompt_cache_key>(
          "prompt_cache_key", {"told with the answer; every prompt is looked up in the cache"}),
      body_field<&B::prompt_cache_options>(
          "prompt_cache_options", {"{mode, ttl}: hints; every prompt is looked up in the cache"}),
      inherited_field<B, &P::stream_options>("stream_options", {"{\"include_obfuscation\": ...}"}),
      inherited_field<B, &P::stream>("stream", {"answer with server-sent events"}),
      inherited_field<B, &P::ignore_eos>("ignore_eos",
                                         {"as vLLM: go on after the end of the text"}),
      inherited_field<B, &P::min_tokens>("min_tokens",
                                         {"as vLLM: the text does not end before so many tokens"}),
      inherited_field<B, &P::keep_alive>("keep_alive", {kKeepAliveHelp}),
      body_field<&B::chat_template_kwargs>(
          "chat_template_kwargs",
          {"as vLLM: {name: value}: variables of the chat template, such as enable_thinking"}),
  }};
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<ResponsesBody>() {
  static constexpr std::array kFields = {
      ExtraField{"conversation", "[]", "use `previous_response_id`"},
      ExtraField{"prompt", "[]", "prompts are not kept here: give `input` and `instructions`"},
      ExtraField{"context_management", "[[]]", "conversations are never made shorter"},
      ExtraField{"client_metadata", kAnything, "labels of a client's sessions"},
      ExtraField{"max_tool_calls", kAnything, "a limit of tools that OpenAI runs"},
      ExtraField{"service_tier", kAnything, "there is one tier"},
      ExtraField{"prompt_cache_retention", kAnything,
                 "a hint; the cache keeps what it has room for"},
      ExtraField{"background_options", kAnything, "what is made in the background begins at once"},
      ExtraField{"moderation", "[]", "answers are not moderated"},
      ExtraField{"access_programs", "[]", "belongs to OpenAI's models"},
      ExtraField{"personality", "[]", "a style of OpenAI's models: say it in `instructions`"},
      ExtraField{"image", kAnything, kTextAlone},
      ExtraField{"stop", "[[]]", "OpenAI's API has none here: use /v1/chat/completions"},
      ExtraField{"n", "[1]", "OpenAI's API has none here: use /v1/chat/completions"},
  };
  return kFields;
}

std::span<const Term> responses_terms() {
  static constexpr std::array<Term, 8> kTerms = {{
      {"response_format.json_schema", "text.format"},
      {"response_format", "text.format"},
      {"`inputs`", "`input`"},
      {"max_new_tokens", "max_output_tokens"},
      {"min_new_tokens", "min_tokens"},
      {".function.parameters", ".parameters"},
      {".function.", "."},
      {"`logprobs`", "`include`"},
  }};
  return kTerms;
}

}  // namespace tgi::http
