#include "engine/text/tokenizer/folder_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tgi {
namespace {

Json added_token(int32_t id, const std::string& content, bool lstrip) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", lstrip},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

}  // namespace

int32_t require_token(const Vocabulary& vocabulary,
                      const std::string& token,
                      std::string_view key,
                      std::string_view place) {
  if (const int32_t id = vocabulary.find(token); id >= 0) return id;
  throw Error(Code::kInvalidArgument,
              fmt::format("expected {} \"{}\" {}; tokenizer_config.json says what it is if it is "
                          "another token",
                          key, token, place));
}

Json added_tokens_of_folder(const TokenizerConfig& config,
                            const Vocabulary& vocabulary,
                            std::span<const FolderToken> special) {
  Json added = Json::array();
  for (const AddedToken& token : config.added_tokens) {
    Json written = added_token(token.id, token.content, token.lstrip);
    written["single_word"] = token.single_word;
    written["rstrip"] = token.rstrip;
    written["normalized"] = !token.special;
    written["special"] = token.special;
    added.push_back(std::move(written));
  }
  for (const FolderToken& token : special) {
    const int32_t id = vocabulary.find(token.content);
    const bool listed = std::any_of(added.begin(), added.end(), [&](const Json& other) {
      return other["content"] == token.content;
    });
    if (id >= 0 && !listed) added.push_back(added_token(id, token.content, token.lstrip));
  }
  return added;
}

}  // namespace tgi
