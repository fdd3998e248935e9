#include "engine/text/tokenizer/word_level_model.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace tgi {
namespace {

constexpr size_t kShownOfPiece = 100;  // bytes of a piece in a message

}  // namespace

WordLevelModel::WordLevelModel(Vocabulary vocabulary, std::string unk_token)
    : vocabulary_(std::move(vocabulary)),
      unk_token_(std::move(unk_token)),
      unk_id_(vocabulary_.find(unk_token_)) {}

void WordLevelModel::encode(std::string_view piece,
                            bool raw_bytes,
                            std::vector<int32_t>& ids,
                            std::vector<TextRange>* places) const {
  TGI_CHECK(!raw_bytes);
  int32_t id = vocabulary_.find(piece);
  if (id < 0) id = unk_id_;
  if (id < 0) {
    const size_t shown = valid_utf8_prefix(piece.substr(0, kShownOfPiece));
    throw Error(Code::kInvalidArgument,
                fmt::format("\"{}\" is not in the vocabulary, nor is unk_token \"{}\"",
                            piece.substr(0, shown), unk_token_));
  }
  ids.push_back(id);
  if (places != nullptr) places->push_back({0, piece.size()});
}

}  // namespace tgi
