// How byte-level tokenizers of GGUF files cut a text before its pieces are merged: by the name in
// tokenizer.ggml.pre.
#pragma once

#include <span>
#include <string_view>

namespace tgi::gguf {

struct PreTokenizer {
  std::span<const std::string_view> names;
  // One after the other, each cuts out what it matches in the pieces that those before it left.
  std::span<const std::string_view> patterns;
  bool ignore_merges = false;   // a piece that is a token is one
  bool adds_bos = false;        // unless the file says otherwise
  bool adds_separator = false;  // at the end, likewise
};

// Throws kUnsupported listing the known names.
const PreTokenizer& find_pre_tokenizer(std::string_view name);

}  // namespace tgi::gguf
