// What generation_config.json says of answers whatever is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_source.h"
#include "engine/text/tokenizer.h"

namespace tgi {

struct GenerationRules {
  std::vector<int32_t> suppressed_ids;  // never drawn; each once, all of the vocabulary
  std::vector<std::string> unheeded;    // fields whose rules are not kept here
};

// Empty without the file. Throws kInvalidArgument naming file and field for what is no list of ids.
GenerationRules read_generation_rules(const FileSource& files, int32_t vocab_size);

// Those of the names that the tokenizer has, behind the ids that are there.
void add_end_tokens(std::span<const std::string_view> names,
                    const Tokenizer& tokenizer,
                    std::vector<int32_t>& end_token_ids);

}  // namespace tgi
