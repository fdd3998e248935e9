// Tokens with a meaning of their own, which a GGUF file names by id or, for want of that, by text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/gguf/gguf_vocabulary.h"

namespace tgi::gguf {

struct SpecialIds {
  std::optional<int64_t> bos{};
  std::optional<int64_t> eos{};
  std::optional<int64_t> eot{};
  std::optional<int64_t> eom{};
  std::optional<int64_t> unknown{};
  std::optional<int64_t> separator{};
  std::optional<int64_t> padding{};
  std::optional<int64_t> cls{};
  std::optional<int64_t> mask{};
};

// kind: tokenizer.ggml.model, whose usual ids stand for those that the file does not name. Throws
// kInvalidArgument for ids outside the vocabulary.
SpecialIds read_special_ids(const GgufVocabulary& vocabulary,
                            const GgufMetadata& metadata,
                            std::string_view kind);

// Every token that ends a turn, sorted: those named by id, and those whose texts families gave
// tokens of that kind. They are those that llama.cpp stops at, but that an ordinary token does not
// become one by its text.
std::vector<int64_t> find_end_ids(const GgufVocabulary& vocabulary,
                                  const GgufMetadata& metadata,
                                  const SpecialIds& ids);

}  // namespace tgi::gguf
