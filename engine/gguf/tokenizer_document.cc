#include "engine/gguf/tokenizer_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/error.h"

namespace tgi::gguf {
namespace {

// Phi 3's take the white space behind them, but for these. Files do not say so.
constexpr std::string_view kLeaveSpace[] = {"<unk>", "<s>", "<|endoftext|>"};

bool is_of_phi3(const GgufMetadata& metadata) {
  if (metadata.text("tokenizer.ggml.model") != "llama") return false;
  if (metadata.find_text("general.architecture") == "phi3") return true;
  const std::string name = ascii_lower(metadata.find_text("general.name").value_or(""));
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

class TemplateWriter {
 public:
  explicit TemplateWriter(const GgufVocabulary& vocabulary) : vocabulary_(vocabulary) {}

  void add_text(Json& parts, const char* which) {
    parts.push_back({{"Sequence", {{"id", which}, {"type_id", 0}}}});
  }

  void add_token(Json& parts, bool wanted, const std::optional<int64_t>& id, const char* key) {
    if (!wanted) return;
    if (!id) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tokenizer.ggml.{}: not in the file's metadata, which says that this "
                              "token is added",
                              key));
    }
    const std::string name = vocabulary_.text(*id);
    tokens_[name] = {{"id", name}, {"ids", {*id}}, {"tokens", {name}}};
    parts.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
  }

  const Json& tokens() const { return tokens_; }

 private:
  const GgufVocabulary& vocabulary_;
  Json tokens_ = Json::object();
};

}  // namespace

Json ends_document(const GgufVocabulary& vocabulary, const SpecialIds& ids, const AddedEnds& ends) {
  TemplateWriter writer(vocabulary);
  const auto bos = [&](Json& parts) { writer.add_token(parts, ends.bos, ids.bos, "bos_token_id"); };
  const auto eos = [&](Json& parts) { writer.add_token(parts, ends.eos, ids.eos, "eos_token_id"); };
  Json single = Json::array();
  bos(single);
  writer.add_text(single, "A");
  eos(single);
  Json pair = single;
  const auto separator = ids.separator ? ids.separator : ids.eos;
  writer.add_token(pair, ends.separator, separator, "seperator_token_id");
  writer.add_text(pair, "B");
  eos(pair);
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", writer.tokens()}};
}

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
