// The fields of OpenAI's bodies of chat and completions, in tables: openai_body.h.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "cmd/http/openai_body.h"

namespace tgi::http {
namespace {

constexpr Range penalty(std::string_view rule) {
  return {.low = -2, .high = 2, .rule = rule};
}

template <typename B>
constexpr std::array<BodyField<B>, 34> shared_rows() {
  using P = OpenAiParameters;
  return {{
      inherited_field<B, &P::model>(
          "model", {"the name of the model, or of a LoRA adapter to answer by; absent, \"\" or "
                    "\"tgi\": whatever is served"}),
      inherited_field<B, &P::adapter_source>(
          "adapter_source", {"as LoRAX: where an adapter that `model` names is: hub, local or s3"}),
      inherited_field<B, &P::api_token>("api_token",
                                        {"as LoRAX: to the hub, for a private adapter"}),
      inherited_field<B, &P::temperature>(
          "temperature", {.description = "0: always the most likely token; default 1",
                          .range = {.low = 0, .rule = "`temperature` must be >= 0.0"}}),
      inherited_field<B, &P::repetition_penalty>(
          "repetition_penalty",
          {.description = "1 is off; once per distinct token of prompt and output",
           .range = positive("`repetition_penalty` must be strictly positive")}),
      inherited_field<B, &P::frequency_penalty>(
          "frequency_penalty",
          {.description = "subtracted for each occurrence in the output",
           .range = penalty("`frequency_penalty` must be >= -2.0 and <= 2.0")}),
      inherited_field<B, &P::presence_penalty>(
          "presence_penalty", {.description = "subtracted once for a token of the output",
                               .range = penalty("`presence_penalty` must be >= -2.0 and <= 2.0")}),
      inherited_field<B, &P::top_p>("top_p",
                                    {.description = "nucleus sampling; 1 is off",
                                     .range = {.low = 0,
                                               .high = 1,
                                               .above_low = true,
                                               .rule = "`top_p` must be > 0.0 and <= 1.0"}}),
      inherited_field<B, &P::typical_p>(
          "typical_p", {.description = "typical decoding mass; 1 is off",
                        .range = {.low = 0,
                                  .high = 1,
                                  .above_low = true,
                                  .rule = "`typical_p` must be > 0.0 and <= 1.0"}}),
      inherited_field<B, &P::min_p>(
          "min_p", {.description = "as a share of the most likely token",
                    .range = {.low = 0, .high = 1, .rule = "`min_p` must be >= 0.0 and <= 1.0"}}),
      inherited_field<B, &P::top_k>("top_k",
                                    {.description = "the k most likely tokens; 0 and -1: all",
                                     .range = {.low = -1, .rule = "`top_k` must be >= -1"}}),
      inherited_field<B, &P::n>("n", {.description = "answers to sample",
                                      .range = positive("`n` must be strictly positive")}),
      inherited_field<B, &P::seed>("seed", {"of the draws"}),
      inherited_field<B, &P::stop>("stop",
                                   {"a text or a list of texts that end the answer; cut off"}),
      inherited_field<B, &P::logit_bias>("logit_bias", {"{\"token id\": bias}, from -100 to 100"}),
      inherited_field<B, &P::stream_options>("stream_options", {"{\"include_usage\": true}"}),
      inherited_field<B, &P::usage>(
          "usage", {"as OpenRouter: {\"include\": true}: as `stream_options.include_usage`"}),
      inherited_field<B, &P::provider>(
          "provider", {"as OpenRouter: which provider shall answer; there is one, so that wishes "
                       "are taken and what only another one could do is refused"}),
      inherited_field<B, &P::models>("models", {"as OpenRouter: what else may answer where `model` "
                                                "fails; nothing does, the failure is told"}),
      inherited_field<B, &P::response_format>(
          "response_format", {"{\"type\": \"json_object\"}, or {\"type\": \"json_schema\", "
                              "\"json_schema\": {\"schema\": "
                              "...}}: the answer is such JSON; TGI's types json and regex too"}),
      inherited_field<B, &P::grammar>("grammar",
                                      {"TGI's {type, value}, or a grammar in GBNF or Lark"}),
      inherited_field<B, &P::json_schema>("json_schema",
                                          {"as llama.cpp: a JSON schema for the answer"}),
      inherited_field<B, &P::guided_json>("guided_json", {"as vLLM: a JSON schema for the answer"}),
      inherited_field<B, &P::guided_regex>("guided_regex",
                                           {"as vLLM: a pattern for the whole answer"}),
      inherited_field<B, &P::guided_choice>("guided_choice",
                                            {"as vLLM: the texts that may be the answer"}),
      inherited_field<B, &P::guided_grammar>(
          "guided_grammar", {"as vLLM: a grammar for the answer, in GBNF or Lark"}),
      inherited_field<B, &P::structured_outputs>(
          "structured_outputs",
          {"as vLLM: an object with one of json, json_object, regex, choice and grammar"}),
      inherited_field<B, &P::regex>("regex", {"as SGLang: a pattern for the whole answer"}),
      inherited_field<B, &P::ebnf>("ebnf",
                                   {"as SGLang: a grammar for the answer, in GBNF or Lark"}),
      inherited_field<B, &P::stream>("stream", {"answer with server-sent events"}),
      inherited_field<B, &P::ignore_eos>("ignore_eos", {"go on after the end of the text"}),
      inherited_field<B, &P::min_tokens>(
          "min_tokens", {"as vLLM: the text does not end before so many tokens, unless by `stop`"}),
      inherited_field<B, &P::speculate>(
          "speculate", {"tokens to be drafted at most for a step, up to the server's --speculate, "
                        "which is the default; the answer is the same"}),
      inherited_field<B, &P::keep_alive>("keep_alive", {kKeepAliveHelp}),
  }};
}

template <typename B, size_t kNumOwn>
constexpr auto with_shared(const std::array<BodyField<B>, kNumOwn>& own) {
  constexpr auto kShared = shared_rows<B>();
  std::array<BodyField<B>, kNumOwn + kShared.size()> out{};
  std::copy(kShared.begin(), kShared.end(), out.begin());
  std::copy(own.begin(), own.end(), out.begin() + kShared.size());
  return out;
}

}  // namespace

template <>
std::span<const BodyField<ChatBody>> body_fields<ChatBody>() {
  using C = ChatBody;
  static constexpr auto kFields = with_shared<C>(std::array<BodyField<C>, 18>{{
      inherited_field<C, &OpenAiParameters::max_tokens>(
          "max_tokens", {.description = "of the answer; default: all that fits",
                         .range = positive("`max_tokens` must be strictly positive")}),
      body_field<&C::messages>("messages", {.description = "the conversation", .required = true}),
      body_field<&C::max_completion_tokens>(
          "max_completion_tokens",
          {.description = "the new name of max_tokens",
           .range = positive("`max_completion_tokens` must be strictly positive")}),
      body_field<&C::logprobs>("logprobs", {"list the tokens with their log-probabilities"}),
      body_field<&C::top_logprobs>("top_logprobs", {"alternatives to list for each token"}),
      inherited_field<C, &ToolFields::tools>(
          "tools", {"[{\"type\": \"function\", \"function\": {name, description, parameters, "
                    "strict}}]: what the answer may call"}),
      inherited_field<C, &ToolFields::tool_choice>(
          "tool_choice",
          {"auto, none, required, a name, {\"type\": \"function\", ...} or {\"type\": "
           "\"allowed_tools\", ...}"}),
      inherited_field<C, &ToolFields::parallel_tool_calls>("parallel_tool_calls",
                                                           {"several calls in one answer"}),
      inherited_field<C, &ToolFields::tool_prompt>(
          "tool_prompt", {"as TGI: what to tell the model about calling, after the conversation"}),
      inherited_field<C, &ReasoningFields::reasoning_effort>(
          "reasoning_effort", {"none, minimal, low, medium, high, xhigh or max: for the template"}),
      inherited_field<C, &ReasoningFields::reasoning>(
          "reasoning", {"as OpenRouter: {effort, max_tokens, exclude, enabled}"}),
      inherited_field<C, &ReasoningFields::thinking_token_budget>(
          "thinking_token_budget",
          {"as vLLM: tokens after which the reasoning is ended; -1: no limit"}),
      inherited_field<C, &ReasoningFields::include_reasoning>(
          "include_reasoning", {"as vLLM: false leaves the reasoning out of the answer"}),
      body_field<&C::chat_template_kwargs>(
          "chat_template_kwargs",
          {"{name: value}: variables of the chat template, such as enable_thinking"}),
      body_field<&C::add_generation_prompt>(
          "add_generation_prompt", {"as vLLM: false only where `continue_final_message` is true"}),
      body_field<&C::continue_final_message>(
          "continue_final_message", {"as vLLM: the answer goes on with the assistant's turn that "
                                     "the messages end with; default: where they do"}),
      body_field<&C::verbosity>("verbosity", {"low, medium or high: for the template"}),
      body_field<&C::prompt_cache_options>(
          "prompt_cache_options", {"{mode, ttl}: hints; every prompt is looked up in the cache"}),
  }});
  return kFields;
}

template <>
std::span<const BodyField<CompletionBody>> body_fields<CompletionBody>() {
  using C = CompletionBody;
  static constexpr auto kFields = with_shared<C>(std::array<BodyField<C>, 6>{{
      inherited_field<C, &OpenAiParameters::max_tokens>(
          "max_tokens", {"of the answer; default: all that fits; 0 with `echo` and `logprobs`: the "
                         "prompt's log-probabilities alone"}),
      body_field<&C::prompt>("prompt",
                             {.description = "a text, a list of texts, token ids, or lists of them",
                              .required = true}),
      body_field<&C::suffix>("suffix", {"not supported: put it into the prompt"}),
      body_field<&C::echo>("echo", {"put the prompt before the answer"}),
      body_field<&C::logprobs>("logprobs", {"alternatives to list for each token"}),
      body_field<&C::best_of>("best_of", {.description = "sequences to choose the n best from",
                                          .range = positive("`best_of` must be > 0")}),
  }});
  return kFields;
}

std::span<const Term> chat_terms(const ChatBody& body) {
  constexpr auto terms_of = [](std::string_view max_tokens) {
    return std::array<Term, 3>{{
        {"max_new_tokens", max_tokens},
        {"min_new_tokens", "min_tokens"},
        {"`inputs`", "`messages`"},
    }};
  };
  static constexpr auto kOlder = terms_of("max_tokens");
  static constexpr auto kNewer = terms_of("max_completion_tokens");
  // By the name that the client gave it; a client that gave none knows OpenAI's present one.
  return body.max_tokens ? kOlder : kNewer;
}

std::span<const Term> completion_terms() {
  static constexpr std::array<Term, 4> kTerms = {{
      {"max_new_tokens", "max_tokens"},
      {"min_new_tokens", "min_tokens"},
      {"prompt_ids", "prompt"},
      {"`inputs`", "`prompt`"},
  }};
  return kTerms;
}

}  // namespace tgi::http
