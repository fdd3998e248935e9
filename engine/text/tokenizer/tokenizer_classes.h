// What the classes of tokenizers in transformers know where a folder does not say it: which of them
// a model's type stands for, and their special tokens.
#pragma once

#include <span>
#include <string_view>

namespace tgi {

struct TokenizerClass {
  std::string_view name;  // or followed by "Fast"
  // Of config.json: those that stand for the class where none is named.
  std::span<const std::string_view> model_types{};
  // "": it has none.
  std::string_view bos{};
  std::string_view eos{};
  std::string_view unk{};
  std::string_view sep{};
  std::string_view pad{};
  std::string_view cls{};
  std::string_view mask{};
};

// The class of this name, or where that is empty, of the model's type. Null for others: they have
// no tokens but those that are listed.
const TokenizerClass* find_tokenizer_class(std::string_view name, std::string_view model_type);

}  // namespace tgi
