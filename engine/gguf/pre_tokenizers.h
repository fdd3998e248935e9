// How BPE tokenizers of GGUF files cut a text before its pieces are merged: by the name in
// tokenizer.ggml.pre.
//
// llama.cpp chooses by the same names (src/llama-vocab.cpp). Where it replaces the pattern of a
// tokenizer.json by one that cuts some texts elsewhere, because its regular expressions lack
// something, the pattern here is that of the tokenizer.json, with which the model was trained.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tgi::gguf {

// What the tokens of a vocabulary are spelled in.
enum class TokenAlphabet : uint8_t {
  kByteLevel,  // a character for each byte, as GPT-2 has it
  kText,       // UTF-8 with U+2581 for spaces, and a token for each byte that no other has
  kWords,      // UTF-8, word by word: what is between them is no token
};

struct PreTokenizer {
  std::span<const std::string_view> names{};
  // One after the other, each cuts out what it matches in the pieces that those before it left.
  std::span<const std::string_view> patterns{};
  TokenAlphabet alphabet = TokenAlphabet::kByteLevel;
  bool normalizes = false;     // to NFC, before
  bool ignore_merges = false;  // a piece that is a token is one
  // Unless the file says otherwise:
  bool adds_bos = false;
  bool adds_separator = false;  // between two texts
};

std::span<const PreTokenizer> all_pre_tokenizers();

// Throws kUnsupported listing the known names.
const PreTokenizer& find_pre_tokenizer(std::string_view name);

}  // namespace tgi::gguf
