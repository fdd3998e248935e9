#include "engine/runtime/generation_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/json.h"

namespace tgi {
namespace {

constexpr const char* kRulesFile = "generation_config.json";
constexpr const char* kSuppressed = "suppress_tokens";

// Of models of speech and of translation, mostly. Values for drawing tokens are a request's own.
constexpr const char* kUnheeded[] = {"begin_suppress_tokens", "bad_words_ids",
                                     "force_words_ids",       "forced_bos_token_id",
                                     "forced_eos_token_id",   "sequence_bias"};

bool says_nothing(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

// As the library: ids behind the vocabulary, which no logits are of, are no matter.
void read_suppressed(const JsonReader& config, int32_t vocab_size, std::vector<int32_t>& out) {
  if (!config.has(kSuppressed)) return;
  const Json& list = config.json().at(kSuppressed);
  const auto fail = [&](const Json& value) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected a list of token ids, got {}",
                                                    config.path_of(kSuppressed), value.dump()));
  };
  if (!list.is_array()) fail(list);
  for (const Json& item : list) {
    if (!item.is_number_integer()) fail(item);
    const auto id = item.get<int64_t>();
    if (id >= 0 && id < vocab_size) out.push_back(static_cast<int32_t>(id));
  }
  std::ranges::sort(out);
  const auto again = std::ranges::unique(out);
  out.erase(again.begin(), again.end());
}

}  // namespace

GenerationRules read_generation_rules(const FileSource& files, int32_t vocab_size) {
  GenerationRules out;
  const auto text = files.find_text(kRulesFile);
  if (!text) return out;
  try {
    const Json json = parse_json(*text);
    const JsonReader config(json, "");
    read_suppressed(config, vocab_size, out.suppressed_ids);
    for (const char* key : kUnheeded) {
      if (config.has(key) && !says_nothing(json.at(key))) out.unheeded.emplace_back(key);
    }
  } catch (const Error& error) {
    throw error.in(files.describe(kRulesFile));
  }
  return out;
}

void add_end_tokens(std::span<const std::string_view> names,
                    const Tokenizer& tokenizer,
                    std::vector<int32_t>& end_token_ids) {
  for (const std::string_view name : names) {
    const std::optional<int32_t> id = tokenizer.id_of(name);
    if (id && std::ranges::find(end_token_ids, *id) == end_token_ids.end()) {
      end_token_ids.push_back(*id);
    }
  }
}

}  // namespace tgi
