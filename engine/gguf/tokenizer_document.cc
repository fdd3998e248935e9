#include "engine/gguf/tokenizer_document.h"

#include <fmt/format.h>

#include <algorithm>

namespace tgi::gguf {
namespace {

// Phi 3's take the white space behind them, but for these. Files do not say so.
constexpr std::string_view kLeaveSpace[] = {"<unk>", "<s>", "<|endoftext|>"};

bool is_of_phi3(const GgufMetadata& metadata) {
  if (metadata.text("tokenizer.ggml.model") != "llama") return false;
  if (metadata.find_text("general.architecture") == "phi3") return true;
  std::string name(metadata.find_text("general.name").value_or(""));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

}  // namespace

Json added_tokens(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  const bool is_phi3 = is_of_phi3(metadata);
  Json out = Json::array();
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    const bool is_special = vocabulary.is_special(id);
    if (!is_special && !vocabulary.is_user_defined(id)) continue;
    const std::string text = vocabulary.text(id);
    const bool leaves_space = std::ranges::find(kLeaveSpace, text) != std::end(kLeaveSpace);
    out.push_back({{"id", id},
                   {"content", text},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", is_phi3 && !leaves_space},
                   {"normalized", false},
                   {"special", is_special}});
  }
  return out;
}

std::string vocabulary_object(const std::vector<std::string>& tokens) {
  std::string out = "{";
  for (size_t id = 0; id < tokens.size(); ++id) {
    out += fmt::format("{}{}:{}", id == 0 ? "" : ",", Json(tokens[id]).dump(), id);
  }
  return out + "}";
}

std::string tokenizer_document(Json members,
                               const Json& model,
                               const std::string& vocabulary,
                               const std::string& merges) {
  members["version"] = "1.0";
  members["truncation"] = nullptr;
  members["padding"] = nullptr;
  std::string options = model.dump();
  options.pop_back();
  options += ",\"vocab\":" + vocabulary;
  if (!merges.empty()) options += ",\"merges\":" + merges;
  std::string out = members.dump();
  out.pop_back();
  return out + ",\"model\":" + options + "}}";
}

}  // namespace tgi::gguf
