#include "engine/text/tokenizer/byte_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "engine/text/tokenizer/byte_level.h"

namespace tgi {
namespace {

std::string in_quotes(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

[[noreturn]] void fail_invalid(const std::string& what) {
  throw Error(Code::kInvalidArgument, what);
}

Json json_of(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

// The list of added tokens, in the order of their ids.
Json added_list(const Vocabulary& vocabulary, std::vector<AddedToken> added) {
  std::sort(added.begin(), added.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  std::vector<std::string_view> contents;
  Json out = Json::array();
  for (size_t i = 0; i < added.size(); ++i) {
    const AddedToken& token = added[i];
    if (token.content.empty()) fail_invalid(fmt::format("added token {}: no text", token.id));
    const bool is_taken = vocabulary.has_id(token.id) &&
                          vocabulary.token_of(token.id) != to_byte_level(token.content);
    if (is_taken || (i > 0 && added[i - 1].id == token.id)) {
      fail_invalid(fmt::format("added token {}: its id {} is that of another token",
                               in_quotes(token.content), token.id));
    }
    contents.push_back(token.content);
    out.push_back(json_of(token));
  }
  std::sort(contents.begin(), contents.end());
  const auto copy = std::adjacent_find(contents.begin(), contents.end());
  if (copy != contents.end()) {
    fail_invalid(fmt::format("added token {}: is there twice", in_quotes(*copy)));
  }
  return out;
}

// One side of a template of tokenizer.json.
void add_parts(Json& parts, const std::vector<std::string>& contents, int type_id) {
  for (const std::string& content : contents) {
    parts.push_back({{"SpecialToken", {{"id", content}, {"type_id", type_id}}}});
  }
}

Json template_of(const RankedSpec& spec) {
  Json tokens = Json::object();
  for (const auto* side : {&spec.before, &spec.after}) {
    for (const std::string& content : *side) {
      const auto token =
          std::find_if(spec.added.begin(), spec.added.end(),
                       [&](const AddedToken& one) { return one.content == content; });
      if (token == spec.added.end()) {
        fail_invalid(
            fmt::format("the token {}, which is put around texts, is none of the special "
                        "ones",
                        in_quotes(content)));
      }
      tokens[content] = {{"id", content}, {"ids", {token->id}}, {"tokens", {content}}};
    }
  }
  Json single = Json::array();
  add_parts(single, spec.before, 0);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add_parts(single, spec.after, 0);
  Json pair = single;
  if (!spec.only_first) add_parts(pair, spec.before, 1);
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  if (!spec.only_first) add_parts(pair, spec.after, 1);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", tokens}};
}

Json byte_level(bool trims) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", trims},
          {"use_regex", false}};
}

}  // namespace

void ByteRanks::add(std::string_view bytes, int64_t id) {
  if (bytes.empty()) fail_invalid("a token of no bytes");
  if (bytes.size() > kMostBytes) {
    fail_invalid(fmt::format("a token of {} bytes; up to {} are read", bytes.size(), kMostBytes));
  }
  if (id < 0 || id > Vocabulary::kHighestId) {
    fail_invalid(fmt::format("expected an id from 0 to {}, got {}", Vocabulary::kHighestId, id));
  }
  const auto index = static_cast<size_t>(id);
  if (is_taken_.size() <= index) is_taken_.resize(index + 1, false);
  if (is_taken_[index]) fail_invalid(fmt::format("another token has the id {} too", id));
  const std::string token = to_byte_level(bytes);
  if (const int32_t other = vocabulary_.find(token); other >= 0) {
    fail_invalid(fmt::format("the same bytes as the token with the id {}", other));
  }
  is_taken_[index] = true;
  vocabulary_.add(token, static_cast<int32_t>(id));
}

Vocabulary ByteRanks::finish() {
  for (size_t byte = 0; byte < 256; ++byte) {
    if (vocabulary_.find(byte_level_alphabet()[byte]) >= 0) continue;
    fail_invalid(fmt::format("no token for the byte 0x{:02x}; is the file cut short?", byte));
  }
  vocabulary_.index_ids();
  return std::move(vocabulary_);
}

std::vector<TokenCut> cuts_of_tokens(const Vocabulary& vocabulary) {
  std::vector<TokenCut> out;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const std::string_view token = vocabulary.token_at(i);
    for (size_t at = utf8_size(token[0]); at < token.size(); at += utf8_size(token[at])) {
      const int32_t left = vocabulary.find(token.substr(0, at));
      if (left < 0) continue;
      const int32_t right = vocabulary.find(token.substr(at));
      if (right >= 0) out.push_back({left, right, vocabulary.id_at(i)});
    }
  }
  return out;
}

TokenizerJson make_ranked(Vocabulary vocabulary, const RankedSpec& spec) {
  TokenizerJson out;
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", spec.pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  Json post_processor = byte_level(false);
  if (!spec.before.empty() || !spec.after.empty()) {
    post_processor = {{"type", "Sequence"}, {"processors", {post_processor, template_of(spec)}}};
  }
  out.tree = {
      {"version", "1.0"},
      {"added_tokens", added_list(vocabulary, spec.added)},
      {"normalizer", spec.normalizes ? Json{{"type", "NFC"}} : Json(nullptr)},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level(true)}}}},
      {"post_processor", post_processor},
      {"decoder", byte_level(true)},
      {"model", {{"type", "BPE"}, {"ignore_merges", true}}}};
  out.vocabulary = std::move(vocabulary);
  out.has_vocab = true;
  out.is_ranked = true;
  return out;
}

std::vector<std::pair<std::string, std::string>> merges_of_ranks(const Vocabulary& vocabulary) {
  std::vector<TokenCut> cuts = cuts_of_tokens(vocabulary);
  std::sort(cuts.begin(), cuts.end(), [](const TokenCut& a, const TokenCut& b) {
    return std::tie(a.whole, a.left, a.right) < std::tie(b.whole, b.left, b.right);
  });
  std::vector<std::pair<std::string, std::string>> out;
  out.reserve(cuts.size());
  for (const TokenCut& cut : cuts) {
    out.emplace_back(vocabulary.token_of(cut.left), vocabulary.token_of(cut.right));
  }
  return out;
}

}  // namespace tgi
