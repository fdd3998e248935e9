// Members of bodies that nothing here reads: what clients of OpenAI, vLLM, TGI and LoRAX send. A
// harmless one is taken, any other is refused by its name, so that nobody waits for what is not
// done.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "cmd/http/llama_cpp_fields.h"
#include "cmd/http/native_body.h"
#include "cmd/http/openai_body.h"

namespace tgi::http {
namespace {

constexpr std::string_view kNotYet = "not supported by this server yet";

// OpenAI's own, of both routes.
constexpr std::array kOpenAi = {
    ExtraField{"user", kAnything, "an end user's name, for OpenAI's abuse checks"},
    ExtraField{"metadata", kAnything, "labels of stored answers; none is stored"},
    ExtraField{"store", kAnything, "answers are never stored"},
    ExtraField{"service_tier", kAnything, "there is one tier"},
    ExtraField{"safety_identifier", kAnything, "for OpenAI's abuse checks"},
    ExtraField{"prompt_cache_key", kAnything, "a hint; every prompt is looked up in the cache"},
    ExtraField{"prompt_cache_retention", kAnything, "a hint; the cache keeps what it has room for"},
};

// OpenAI's, of chats.
constexpr std::array kOpenAiChat = {
    ExtraField{"prediction", kAnything, "a hint for speed; the answer is the same"},
    ExtraField{"modalities", R"([["text"]])", "answers are text"},
    ExtraField{"functions", "[[]]", "the old name: use `tools`"},
    ExtraField{"function_call", R"(["none", "auto"])", "the old name: use `tool_choice`"},
    ExtraField{"moderation", "[]", "answers are not moderated"},
    ExtraField{"audio", "[]", "answers are text"},
    ExtraField{"web_search_options", "[]", "nothing is searched"},
};

// vLLM's, of both routes; SGLang and others took over many of them.
constexpr std::array kVllm = {
    ExtraField{"stop_token_ids", "[[]]", kNotYet},
    ExtraField{"bad_words", "[[]]", kNotYet},
    ExtraField{"allowed_token_ids", "[]", kNotYet},
    ExtraField{"include_stop_str_in_output", "[false]", kNotYet},
    ExtraField{"skip_special_tokens", "[true]", "special tokens are never in the text"},
    ExtraField{"spaces_between_special_tokens", kAnything, "special tokens are never in the text"},
    ExtraField{"truncate_prompt_tokens", "[]", kNotYet},
    ExtraField{"prompt_logprobs", "[]", "`echo` with `logprobs` of /v1/completions gives them"},
    ExtraField{"use_beam_search", "[false]", kNotYet},
    ExtraField{"length_penalty", "[1]", "belongs to beam search, which is not supported"},
    ExtraField{"early_stopping", "[false]", "belongs to beam search, which is not supported"},
    ExtraField{"structural_tag", "[]", kNotYet},
    ExtraField{"guided_decoding_backend", kAnything, "there is one, which enforces everything"},
    ExtraField{"guided_whitespace_pattern", R"(["", "[ ]?"])", kNotYet},
    ExtraField{"logits_processors", "[[]]", kNotYet},
    ExtraField{"priority", "[0]", "all requests have the same priority"},
    ExtraField{"request_id", kAnything, "the x-request-id header names a request here"},
    ExtraField{"return_tokens_as_token_ids", "[false]", kNotYet},
    ExtraField{"return_token_ids", "[false]", kNotYet},
    ExtraField{"cache_salt", "[]", "the prefix cache is shared by all who may ask"},
    ExtraField{"kv_transfer_params", "[{}]", kNotYet},
    ExtraField{"vllm_xargs", "[{}]", kNotYet},
    ExtraField{"cache_prompt", kAnything, "llama.cpp's; answers are the same with the cache"},
};

// SGLang's, of both routes.
constexpr std::array kSglang = {
    ExtraField{"rid", kAnything, "the x-request-id header names a request here"},
    ExtraField{"no_stop_trim", "[false]", kNotYet},
    ExtraField{"return_hidden_states", "[false]", kNotYet},
};

// SGLang's, of chats.
constexpr std::array kSglangChat = {
    ExtraField{"separate_reasoning", "[true]", "see `include_reasoning`"},
    ExtraField{"stream_reasoning", "[true]", "reasoning is streamed as it comes"},
};

// vLLM's, of chats.
constexpr std::array kVllmChat = {
    ExtraField{"echo", "[false]", kNotYet},
    ExtraField{"best_of", "[1]", "use `n`"},
    ExtraField{"add_special_tokens", "[false]", "the template writes them"},
    ExtraField{"documents", "[[]]", kNotYet},
    ExtraField{"chat_template", "[]", "--tokenizer-config-path of `tgi serve` names another one"},
    ExtraField{"mm_processor_kwargs", "[{}]", "answers are made of text alone"},
    ExtraField{"media_io_kwargs", "[{}]", "answers are made of text alone"},
};

// vLLM's, of completions.
constexpr std::array kVllmCompletion = {
    ExtraField{"add_special_tokens", "[true]", kNotYet},
    ExtraField{"prompt_embeds", "[]", kNotYet},
};

// OpenRouter's, of both routes; more in openrouter_fields.cc.
constexpr std::array kOpenRouter = {
    ExtraField{"transforms", "[[]]", "prompts are never made shorter"},
    ExtraField{"route", R"(["fallback"])", "one model answers"},
    ExtraField{"plugins", "[[]]", "nothing is searched, read or run for a model"},
    ExtraField{"session_id", kAnything, "a label; every prompt is looked up in the cache"},
    ExtraField{"trace", kAnything, "labels of OpenRouter's log; see the header traceparent"},
    ExtraField{"cache_control", kAnything, "every prompt is looked up in the cache"},
    ExtraField{"top_a", "[0]", "there is no such sampler; see `min_p`"},
    ExtraField{"image_config", "[{}]", "answers are text"},
    ExtraField{"debug", R"([{}, {"echo_upstream_body": false}])",
               "/chat_tokenize shows what the model sees"},
};

// Hugging Face's, around the parameters.
constexpr std::array kNative = {
    ExtraField{"options", kAnything, "belongs to the hub's inference API"},
    ExtraField{"model", kAnything,
               "one of several models by its name; any other name means the default one"},
};

// LoRAX's parameters, and names of transformers' generate() that people send to TGI.
constexpr std::array kParameters = {
    ExtraField{"schema", "[]", kNotYet},
    ExtraField{"stop_sequences", "[[]]", "use `stop`"},
    ExtraField{"min_length", "[0]", kNotYet},
    ExtraField{"num_beams", "[1]", kNotYet},
    ExtraField{"num_beam_groups", "[1]", kNotYet},
    ExtraField{"num_return_sequences", "[1]", "use `best_of`"},
    ExtraField{"length_penalty", "[1]", "belongs to beam search, which is not supported"},
    ExtraField{"early_stopping", "[false]", "belongs to beam search, which is not supported"},
    ExtraField{"no_repeat_ngram_size", "[0]", kNotYet},
    ExtraField{"pad_token_id", kAnything, "nothing is padded"},
    ExtraField{"use_cache", kAnything, "answers are the same with the cache"},
};

bool asks_nothing(const ExtraField& extra, const OrderedJson& value) {
  if (extra.harmless == kAnything) return true;
  const OrderedJson harmless = OrderedJson::parse(extra.harmless);
  return std::find(harmless.begin(), harmless.end(), value) != harmless.end();
}

// What may be given instead, for the one who is refused.
std::string instead(const ExtraField& extra) {
  const OrderedJson harmless = OrderedJson::parse(extra.harmless);
  std::string out = "leave it out";
  for (const OrderedJson& value : harmless) out += " or give " + value.dump();
  return out;
}

}  // namespace

template <>
std::span<const ExtraField> extra_fields<ChatBody>() {
  static constexpr auto kFields =
      joined_rows(kOpenAi, kOpenAiChat, kVllm, kVllmChat, kSglang, kSglangChat, kOpenRouter,
                  kLlamaCppAnywhere, kLlamaCppAtOpenAi, kLlamaCppAtChat);
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<CompletionBody>() {
  static constexpr auto kFields = joined_rows(kOpenAi, kVllm, kVllmCompletion, kSglang, kOpenRouter,
                                              kLlamaCppAnywhere, kLlamaCppAtOpenAi);
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<TokenizeBody>() {
  return kNative;
}
template <>
std::span<const ExtraField> extra_fields<GenerateBody>() {
  return kNative;
}

template <>
std::span<const ExtraField> extra_fields<GenerateParameters>() {
  return kParameters;
}

void check_extra_field(const std::string& path,
                       const std::string& name,
                       const OrderedJson& value,
                       std::span<const ExtraField> extras,
                       std::span<const std::string_view> known) {
  if (value.is_null()) return;
  const auto extra = std::find_if(extras.begin(), extras.end(),
                                  [&](const ExtraField& each) { return each.name == name; });
  if (extra != extras.end()) {
    if (asks_nothing(*extra, value)) return;
    throw ApiError(422, "validation",
                   fmt::format("Input validation error: `{}` is not supported ({}); {}", path,
                               extra->reason, instead(*extra)),
                   "unsupported_feature", path);
  }
  throw ApiError(422, "validation",
                 fmt::format("Input validation error: unknown field `{}`, expected one of {}",
                             path.substr(0, 200), fmt::join(known, ", ")),
                 "unknown_parameter", path.substr(0, 200));
}

OrderedJson extra_field_schema(const ExtraField& extra) {
  if (extra.harmless == kAnything) {
    return {{"description", fmt::format("taken and not used: {}", extra.reason)}};
  }
  OrderedJson values = OrderedJson::parse(extra.harmless);
  values.push_back(nullptr);
  return {{"description", fmt::format("not used: {}", extra.reason)},
          {"nullable", true},
          {"enum", std::move(values)}};
}

}  // namespace tgi::http
