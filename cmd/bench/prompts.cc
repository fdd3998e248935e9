#include "cmd/bench/prompts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string_view>

namespace tgi::bench {
namespace {

// Common words, each one token (with its space) in most vocabularies of large models.
constexpr std::array<std::string_view, 128> kWords = {
    "time",    "year",     "people",  "way",     "day",     "man",      "thing",    "woman",
    "life",    "child",    "world",   "school",  "state",   "family",   "group",    "country",
    "problem", "hand",     "part",    "place",   "case",    "week",     "company",  "system",
    "program", "question", "work",    "number",  "night",   "point",    "home",     "water",
    "room",    "mother",   "area",    "money",   "story",   "fact",     "month",    "lot",
    "right",   "study",    "book",    "eye",     "job",     "word",     "business", "issue",
    "side",    "kind",     "head",    "house",   "service", "friend",   "father",   "power",
    "hour",    "game",     "line",    "end",     "member",  "law",      "car",      "city",
    "name",    "team",     "minute",  "idea",    "body",    "back",     "parent",   "face",
    "level",   "office",   "door",    "health",  "person",  "art",      "war",      "history",
    "party",   "result",   "change",  "morning", "reason",  "research", "girl",     "guy",
    "moment",  "air",      "teacher", "force",   "order",   "sea",      "tree",     "light",
    "sound",   "green",    "blue",    "red",     "black",   "white",    "small",    "large",
    "long",    "short",    "young",   "old",     "new",     "good",     "great",    "little",
    "own",     "other",    "next",    "early",   "public",  "same",     "able",     "under",
    "over",    "about",    "after",   "before",  "between", "again",    "never",    "always"};

}  // namespace

std::vector<int32_t> prompt_ids(const std::vector<PromptPiece>& pieces, int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (const PromptPiece& piece : pieces) {
    std::mt19937_64 random(piece.seed);
    for (int64_t i = 0; i < piece.num_tokens; ++i) {
      ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab_size)));
    }
  }
  return ids;
}

WordRate fit_word_rate(int64_t num_words_1,
                       int64_t num_tokens_1,
                       int64_t num_words_2,
                       int64_t num_tokens_2) {
  const double rate = static_cast<double>(num_tokens_2 - num_tokens_1) /
                      static_cast<double>(num_words_2 - num_words_1);
  // A server that cuts prompts or counts something else: take what it said of the longer one.
  if (!(rate > 0.05)) {
    return {.tokens_per_word = std::max(
                0.05, static_cast<double>(num_tokens_2) / static_cast<double>(num_words_2)),
            .overhead_tokens = 0};
  }
  return {.tokens_per_word = rate,
          .overhead_tokens = std::max(
              0.0, static_cast<double>(num_tokens_1) - rate * static_cast<double>(num_words_1))};
}

std::string prompt_text(const std::vector<PromptPiece>& pieces, const WordRate& rate) {
  std::string out;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool is_last = i + 1 == pieces.size();
    const double tokens =
        static_cast<double>(pieces[i].num_tokens) - (is_last ? rate.overhead_tokens : 0.0);
    int64_t num_words = std::llround(tokens / rate.tokens_per_word);
    if (is_last && out.empty()) num_words = std::max<int64_t>(num_words, 1);
    std::mt19937_64 random(pieces[i].seed);
    for (int64_t word = 0; word < num_words; ++word) {
      if (!out.empty()) out += ' ';
      out += kWords[random() % kWords.size()];
    }
  }
  return out;
}

}  // namespace tgi::bench
