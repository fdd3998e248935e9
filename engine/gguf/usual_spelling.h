// Files that ollama's own converter wrote, in the spelling of llama.cpp's: names of architectures,
// fields and tensors, what it leaves out, and the encoders of images and sound that it puts into
// the same file as the model. All of a file that says nothing of that stays as it is.
//
// Source: ollama's convert/ and its list of what differs, llama/compat/README.md, in
// https://github.com/ollama/ollama.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/ggml/gguf_file.h"

namespace tgi::gguf {

class UsualSpelling {
 public:
  // References both, and the file's bytes.
  UsualSpelling(const GgufMetadata& metadata, std::span<const GgufTensor> tensors);
  UsualSpelling(const UsualSpelling&) = delete;
  UsualSpelling& operator=(const UsualSpelling&) = delete;

  const GgufMetadata& metadata() const { return metadata_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }
  // The name in the file of a tensor of these.
  std::string_view stored_name(std::string_view name) const;

  // --- for the rules of one architecture. Keys are those behind its name: "rope.freq_base".
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const GgufValue* find(std::string_view key) const;
  void erase(std::string_view key) { values_.erase(key_of(key)); }
  // Each only where there is no such field yet.
  void add_number(std::string_view key, float value);
  void add_integer(std::string_view key, int64_t value);
  void add_text(std::string_view key, std::string_view value);
  void replace_integer(std::string_view key, int64_t value);
  // Fields that are not the architecture's: "tokenizer.ggml.pre".
  std::string_view text_of(const std::string& full_key) const;  // empty: there is none
  void replace_text(const std::string& full_key, std::string_view value);

  const GgufTensor* find_tensor(std::string_view name) const;
  bool has_tensor_part(std::string_view part) const;
  int64_t integer(std::string_view key) const;  // 0: there is none
  std::vector<int64_t> integers(std::string_view key) const;

 private:
  std::string key_of(std::string_view key) const;
  void take_over(const GgufMetadata& metadata, std::span<const GgufTensor> tensors);
  void set(std::string key, GgufValueType type, std::string bytes);

  std::string architecture_;
  std::map<std::string, GgufValue, std::less<>> values_;
  std::deque<std::string> owned_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::string_view> stored_names_;
  GgufMetadata metadata_;
};

}  // namespace tgi::gguf
