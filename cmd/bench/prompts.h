// Prompts of a wanted length out of pieces: token ids where the server takes them, words where it
// takes text. Plain functions without threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/bench/load_plan.h"

namespace tgi::bench {

std::vector<int32_t> prompt_ids(const std::vector<PromptPiece>& pieces, int64_t vocab_size);

// How a server's tokenizer counts our words. Most of them are one token in most vocabularies; two
// probes tell the rest.
struct WordRate {
  double tokens_per_word = 1;
  double overhead_tokens = 0;  // template and special tokens, of each prompt
};

// The rate that follows from two prompts of different numbers of words and what the server counted.
WordRate fit_word_rate(int64_t num_words_1,
                       int64_t num_tokens_1,
                       int64_t num_words_2,
                       int64_t num_tokens_2);

// Pieces with equal seeds give equal words. The overhead is taken off the last piece; a prompt has
// one word at least.
std::string prompt_text(const std::vector<PromptPiece>& pieces, const WordRate& rate);

}  // namespace tgi::bench
