#include "engine/gguf/unigram_document.h"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"

namespace tgi::gguf {
namespace {

constexpr const char* kCharsmap = "tokenizer.ggml.precompiled_charsmap";

// What characters become before, in base64; empty where they stay. ollama's converter has left it
// in base64, a text for each digit.
std::string charsmap_of(const GgufMetadata& metadata) {
  const GgufValue* value = metadata.find(kCharsmap);
  if (value == nullptr) return "";
  if (value->type == GgufValueType::kArray && value->element_type == GgufValueType::kString) {
    std::string digits;
    for (const std::string_view digit : metadata.texts(kCharsmap)) digits += digit;
    const std::string bytes = decode_base64(digits);
    return encode_base64(std::as_bytes(std::span(bytes)));
  }
  const bool is_bytes =
      value->type == GgufValueType::kArray &&
      (value->element_type == GgufValueType::kUint8 || value->element_type == GgufValueType::kInt8);
  if (!is_bytes) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected an array of bytes", kCharsmap));
  }
  return encode_base64(value->bytes);
}

Json replace_pattern(std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", content}};
}

Json normalizer(const GgufMetadata& metadata) {
  Json steps = Json::array();
  if (std::string charsmap = charsmap_of(metadata); !charsmap.empty()) {
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", std::move(charsmap)}});
  }
  if (metadata.find_boolean("tokenizer.ggml.remove_extra_whitespaces").value_or(true)) {
    steps.push_back(replace_pattern(R"(\A +| +\z)", ""));
    steps.push_back(replace_pattern(" {2,}", " "));
  }
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

Json metaspace(const GgufMetadata& metadata) {
  const bool has_prefix = metadata.find_boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  return {{"type", "Metaspace"},
          {"replacement", kLowerBlock},
          {"prepend_scheme", has_prefix ? "always" : "never"},
          {"split", true}};
}

std::string pieces_array(const GgufVocabulary& vocabulary) {
  std::string out = "[";
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    // As a double: the sums of scores that are compared are of doubles.
    out += fmt::format("{}[{},{}]", id == 0 ? "" : ",", Json(vocabulary.text(id)).dump(),
                       Json(static_cast<double>(vocabulary.score(id))).dump());
  }
  return out + "]";
}

}  // namespace

std::string unigram_document(const GgufVocabulary& vocabulary,
                             const GgufMetadata& metadata,
                             const SpecialIds& ids,
                             const AddedEnds& ends) {
  bool has_bytes = false;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    has_bytes = has_bytes || vocabulary.type(id) == TokenType::kByte;
  }
  const Json members = {{"added_tokens", added_tokens(vocabulary, metadata)},
                        {"normalizer", normalizer(metadata)},
                        {"pre_tokenizer", metaspace(metadata)},
                        {"post_processor", ends_document(vocabulary, ids, ends)},
                        {"decoder", metaspace(metadata)}};
  const Json model = {{"type", "Unigram"},
                      {"unk_id", ids.unknown ? Json(*ids.unknown) : Json(nullptr)},
                      {"byte_fallback", has_bytes}};
  return tokenizer_document(members, model, pieces_array(vocabulary), "");
}

}  // namespace tgi::gguf
