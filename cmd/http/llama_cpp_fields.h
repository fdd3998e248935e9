// Members that clients of llama.cpp's server send to its own routes and to OpenAI's, and that
// nothing here reads: most send every sampler with the value that means off. Those are taken.
#pragma once

#include <array>
#include <string_view>

#include "cmd/http/body_table.h"

namespace tgi::http {

inline constexpr std::string_view kNoSampler = "there is no such sampler";
inline constexpr std::string_view kNoSlots =
    "there are no slots: every prompt finds what the cache has of it";
inline constexpr std::string_view kNothingDropped =
    "nothing is dropped from a context that is full";
inline constexpr std::string_view kOfDry = "belongs to dry_multiplier, which is refused";
inline constexpr std::string_view kOfBudget =
    "belongs to reasoning_budget_tokens, which is refused";
inline constexpr std::string_view kHintForSpeed = "a hint for speed; the answer is the same";

inline constexpr std::array kLlamaCppAnywhere = {
    ExtraField{"id_slot", kAnything, kNoSlots},
    ExtraField{"n_keep", kAnything, kNothingDropped},
    ExtraField{"n_discard", kAnything, kNothingDropped},
    ExtraField{"n_cache_reuse", kAnything, "every prompt finds what the cache has of it"},
    ExtraField{"n_indent", "[0]", "not supported"},
    ExtraField{"min_keep", "[0, 1]", "not supported"},
    ExtraField{"t_max_predict_ms", "[-1, 0]", "not supported; limit the tokens"},
    ExtraField{"t_max_prompt_ms", "[-1, 0]", "not supported"},
    ExtraField{"return_progress", "[false]", "not supported"},
    ExtraField{"sse_ping_interval", kAnything, "comments of a stream, which say nothing"},
    ExtraField{"verbose", "[false]", "not supported"},
    ExtraField{"post_sampling_probs", "[false]",
               "log-probabilities are those before anything is left out"},
    ExtraField{"lora", "[[]]", "`model` names an adapter"},
    ExtraField{"dynatemp_range", "[0]", kNoSampler},
    ExtraField{"dynatemp_exponent", kAnything, "belongs to dynatemp_range, which is refused"},
    ExtraField{"dry_multiplier", "[0]", kNoSampler},
    ExtraField{"dry_base", kAnything, kOfDry},
    ExtraField{"dry_allowed_length", kAnything, kOfDry},
    ExtraField{"dry_penalty_last_n", kAnything, kOfDry},
    ExtraField{"dry_sequence_breakers", kAnything, kOfDry},
    ExtraField{"xtc_probability", "[0]", kNoSampler},
    ExtraField{"xtc_threshold", kAnything, "belongs to xtc_probability, which is refused"},
    ExtraField{"mirostat", "[0]", kNoSampler},
    ExtraField{"mirostat_tau", kAnything, "belongs to mirostat, which is refused"},
    ExtraField{"mirostat_eta", kAnything, "belongs to mirostat, which is refused"},
    ExtraField{"top_n_sigma", "[-1, 0]", kNoSampler},
    ExtraField{"adaptive_target", "[-1]", kNoSampler},
    ExtraField{"adaptive_decay", kAnything, "belongs to adaptive_target, which is refused"},
    ExtraField{"tfs_z", "[1]", kNoSampler},
    ExtraField{"penalize_nl", kAnything, "llama.cpp does not read it any more"},
    ExtraField{"backend_sampling", kAnything, kHintForSpeed},
    ExtraField{"speculative.n_max", kAnything, kHintForSpeed},
    ExtraField{"speculative.n_min", kAnything, kHintForSpeed},
    ExtraField{"speculative.p_min", kAnything, kHintForSpeed},
    ExtraField{"speculative.type", kAnything, kHintForSpeed},
    ExtraField{"speculative.ngram_size_n", kAnything, kHintForSpeed},
    ExtraField{"speculative.ngram_size_m", kAnything, kHintForSpeed},
    ExtraField{"speculative.ngram_min_hits", kAnything, kHintForSpeed},
    ExtraField{"reasoning_control", "[false]", "reasoning is not ended from outside"},
    ExtraField{"reasoning_budget_tokens", "[-1]", "use `thinking_token_budget` of a chat"},
    ExtraField{"reasoning_budget_message", R"([""])", kOfBudget},
    ExtraField{"reasoning_budget_start_tag", kAnything, kOfBudget},
    ExtraField{"reasoning_budget_end_tag", kAnything, kOfBudget},
    ExtraField{"reasoning_budget_end_tags", kAnything, kOfBudget},
    ExtraField{"grammar_lazy", "[false]", "a grammar holds for the whole answer"},
    ExtraField{"grammar_triggers", "[[]]", "a grammar holds for the whole answer"},
    ExtraField{"preserved_tokens", "[[]]", "special tokens are never in the text"},
};

// Of OpenAI's routes: what /completion has by these names has OpenAI's there.
inline constexpr std::array kLlamaCppAtOpenAi = {
    ExtraField{"n_predict", "[-1]", "use `max_tokens`"},
    ExtraField{"n_probs", "[0]", "use `logprobs`"},
    ExtraField{"n_cmpl", "[1]", "use `n`"},
    ExtraField{"repeat_penalty", "[1]", "use `repetition_penalty`"},
    ExtraField{"repeat_last_n", kAnything, "belongs to repeat_penalty, which is refused"},
    ExtraField{
        "samplers",
        R"([["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"],
                   ["penalties","dry","top_k","typ_p","top_p","min_p","xtc","temperature"],
                   ["dry","top_k","typ_p","top_p","min_p","xtc","temperature"]])",
        "leave one out by the value that means off; /completion has `samplers`"},
    ExtraField{"timings_per_token", "[false]", "/completion has it"},
    ExtraField{"return_tokens", "[false]", "/completion has it"},
    ExtraField{"response_fields", "[[]]", "/completion has it"},
};

inline constexpr std::array kLlamaCppAtChat = {
    ExtraField{"reasoning_format", R"(["auto", "deepseek"])",
               "reasoning is told apart, in `reasoning_content`; see `include_reasoning`"},
    ExtraField{"parse_tool_calls", "[true]", "calls are always read"},
};

}  // namespace tgi::http
