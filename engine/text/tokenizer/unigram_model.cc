#include "engine/text/tokenizer/unigram_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"

namespace tgi {
namespace {

constexpr double kUnkPenalty = 10.0;  // below the worst piece
constexpr size_t kNowhere = SIZE_MAX;
constexpr size_t kMostKept = 1 << 16;  // steps of a path that a thread keeps for its next text

Vocabulary make_vocabulary(const std::vector<ScoredPiece>& pieces) {
  if (pieces.size() > static_cast<size_t>(Vocabulary::kHighestId)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("model.vocab: expected at most {} pieces, got {}",
                            Vocabulary::kHighestId, pieces.size()));
  }
  Vocabulary vocabulary;
  for (const ScoredPiece& piece : pieces) {
    vocabulary.add_id(piece.text, static_cast<int32_t>(vocabulary.size()));
  }
  vocabulary.index_ids();
  return vocabulary;
}

PieceTrie make_trie(const Vocabulary& vocabulary) {
  std::vector<PieceTrie::Entry> entries;
  entries.reserve(vocabulary.size());
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const std::string_view text = vocabulary.token_at(i);
    // Of pieces with the same text only the one that is found by it.
    if (vocabulary.find(text) == vocabulary.id_at(i))
      entries.push_back({text, vocabulary.id_at(i)});
  }
  return PieceTrie(std::move(entries));
}

}  // namespace

UnigramModel::UnigramModel(UnigramSpec spec)
    : vocabulary_(make_vocabulary(spec.pieces)),
      unk_id_(spec.unk_id.value_or(-1)),
      trie_(make_trie(vocabulary_)) {
  double lowest = std::numeric_limits<double>::infinity();
  scores_.reserve(spec.pieces.size());
  for (const ScoredPiece& piece : spec.pieces) {
    lowest = std::min(lowest, piece.score);
    scores_.push_back(piece.score);
  }
  unk_score_ = lowest - kUnkPenalty;
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = spec.byte_fallback ? vocabulary_.find(fmt::format("<0x{:02X}>", byte)) : -1;
  }
}

// Where sums are equal the way found first stays: that of the piece that begins further left.
void UnigramModel::find_best_path(std::string_view text, std::vector<Step>& path) const {
  path.assign(text.size() + 1, {0.0, kNowhere, -1});
  for (size_t begin = 0; begin < text.size();) {
    const double score_here = path[begin].score;
    const size_t character_end = begin + utf8_size(text[begin]);
    bool has_character = false;  // a piece is just the character here
    const auto offer = [&](size_t end, double score, int32_t id) {
      if (path[end].begin != kNowhere && score <= path[end].score) return;
      if (id < 0) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("\"{}\" is in no piece of the vocabulary, and model.unk_id is not "
                                "given",
                                text.substr(begin, end - begin)));
      }
      path[end] = {score, begin, id};
    };
    uint32_t node = PieceTrie::kRoot;
    for (size_t at = begin; at < text.size();) {
      node = trie_.child(node, text[at++]);
      if (node == PieceTrie::kNone) break;
      const int32_t id = trie_.value(node);
      if (id < 0) continue;
      offer(at, scores_[static_cast<size_t>(id)] + score_here, id);
      if (at == character_end) has_character = true;
    }
    if (!has_character) offer(character_end, unk_score_ + score_here, unk_id_);
    begin = character_end;
  }
}

void UnigramModel::append_unknown(std::string_view text,
                                  TextRange range,
                                  std::vector<int32_t>& ids,
                                  std::vector<TextRange>* places) const {
  const std::string_view unknown = range.in(text);
  const size_t before = ids.size();
  if (const int32_t id = vocabulary_.find(unknown); id >= 0) {
    ids.push_back(id);
  } else {
    const auto id_of = [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
    const bool all_bytes =
        std::all_of(unknown.begin(), unknown.end(), [&](char byte) { return id_of(byte) >= 0; });
    if (all_bytes) {
      for (const char byte : unknown) ids.push_back(id_of(byte));
    } else {
      ids.push_back(unk_id_);
    }
  }
  if (places != nullptr) places->insert(places->end(), ids.size() - before, range);
}

void UnigramModel::encode(std::string_view text,
                          bool raw_bytes,
                          std::vector<int32_t>& ids,
                          std::vector<TextRange>* places) const {
  TGI_CHECK(!raw_bytes);
  thread_local std::vector<Step> path;
  find_best_path(text, path);
  std::vector<size_t> borders;  // from the end, where the path is known from
  for (size_t at = text.size(); at != 0; at = path[at].begin) borders.push_back(at);
  size_t begin = 0;
  while (!borders.empty()) {
    size_t end = borders.back();
    borders.pop_back();
    if (const int32_t id = path[end].id; id != unk_id_) {
      ids.push_back(id);
      if (places != nullptr) places->push_back({begin, end});
    } else {
      for (; !borders.empty() && path[borders.back()].id == unk_id_; borders.pop_back()) {
        end = borders.back();
      }
      append_unknown(text, {begin, end}, ids, places);
    }
    begin = end;
  }
  if (path.capacity() > kMostKept) std::vector<Step>().swap(path);
}

}  // namespace tgi
