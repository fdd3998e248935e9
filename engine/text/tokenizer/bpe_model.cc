#include "engine/text/tokenizer/bpe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/tokenizer/byte_level.h"
#include "engine/text/tokenizer/byte_ranks.h"

namespace tgi {
namespace {

// Up to here looking at all pairs for each merge is faster than a heap.
constexpr size_t kShortPiece = 48;

// A piece that is longer may be several words.
constexpr size_t kOneWord = 12;

}  // namespace

void MergeTable::reserve(size_t num_merges) {
  size_t size = 64;
  while (size < 2 * num_merges) size *= 2;
  slots_.assign(size, {});
}

size_t MergeTable::slot_of(int32_t left, int32_t right) const {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  uint64_t hash = key * 0x9E3779B97F4A7C15U;
  hash ^= hash >> 32;
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

// REQUIRES: reserve was called with at least as many.
void MergeTable::add(int32_t left, int32_t right, Merge merge) {
  Slot& slot = slots_[slot_of(left, right)];
  if (slot.left < 0) ++num_used_;
  TGI_CHECK(num_used_ < slots_.size());
  slot = {left, right, merge};
}

MergeTable::Merge MergeTable::find(int32_t left, int32_t right) const {
  return slots_[slot_of(left, right)].merge;
}

JoinFilter::Ends JoinFilter::ends_of(std::string_view token) {
  size_t offset = 0;
  const char32_t first = next_character(token, offset);
  size_t last = character_begin(token, token.size() - 1);
  return {static_cast<uint16_t>(first), static_cast<uint16_t>(next_character(token, last))};
}

void JoinFilter::add(std::string_view left, std::string_view right) {
  joined_[bit_of(ends_of(left).last, ends_of(right).first)] = true;
}

void JoinFilter::index(const Vocabulary& vocabulary) {
  ends_.assign(static_cast<size_t>(vocabulary.highest_id() + 1), {0, 0});
  for (int32_t id = 0; id <= vocabulary.highest_id(); ++id) {
    const std::string_view token = vocabulary.token_of(id);
    if (!token.empty()) ends_[static_cast<size_t>(id)] = ends_of(token);
  }
}

BpeModel::BpeModel(BpeSpec spec)
    : vocabulary_(std::move(spec.vocabulary)),
      unk_token_(std::move(spec.unk_token)),
      prefix_(std::move(spec.continuing_subword_prefix)),
      suffix_(std::move(spec.end_of_word_suffix)),
      fuse_unk_(spec.fuse_unk),
      byte_fallback_(spec.byte_fallback),
      ignore_merges_(spec.ignore_merges) {
  if (unk_token_) unk_id_ = vocabulary_.find(*unk_token_);
  has_byte_alphabet_ = prefix_.empty() && suffix_.empty();
  for (size_t byte = 0; byte < 256; ++byte) {
    byte_token_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
    byte_level_id_[byte] = vocabulary_.find(byte_level_alphabet()[byte]);
    if (byte_level_id_[byte] < 0) has_byte_alphabet_ = false;
  }
  for (size_t code = 0; code < ascii_id_.size(); ++code) {
    ascii_id_[code] = vocabulary_.find(std::string(1, static_cast<char>(code)));
  }
  if (spec.is_ranked) {
    add_ranked_merges();
  } else {
    add_merges(spec);
  }
  joins_.index(vocabulary_);
}

void BpeModel::add_merges(const BpeSpec& spec) {
  merges_.reserve(spec.merges.size());
  std::string joined;
  const auto require_id = [this](const std::string& token, size_t index) {
    const int32_t id = vocabulary_.find(token);
    if (id >= 0) return id;
    throw Error(Code::kInvalidArgument,
                fmt::format("model.merges[{}]: \"{}\" is not in model.vocab", index, token));
  };
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const auto& [left, right] = spec.merges[i];
    if (right.size() < prefix_.size()) {
      throw Error(Code::kInvalidArgument, fmt::format("model.merges[{}]: \"{}\" is shorter than "
                                                      "continuing_subword_prefix \"{}\"",
                                                      i, right, prefix_));
    }
    const int32_t left_id = require_id(left, i);
    const int32_t right_id = require_id(right, i);
    if (left.empty() || right.empty()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("model.merges[{}]: expected two tokens that are not empty", i));
    }
    joined.assign(left).append(right, prefix_.size());
    merges_.add(left_id, right_id, {static_cast<uint32_t>(i), require_id(joined, i)});
    joins_.add(left, right);
  }
}

// However a pair is cut, its rank is that of the token which it makes.
void BpeModel::add_ranked_merges() {
  const std::vector<TokenCut> cuts = cuts_of_tokens(vocabulary_);
  merges_.reserve(cuts.size());
  for (const TokenCut& cut : cuts) {
    merges_.add(cut.left, cut.right, {static_cast<uint32_t>(cut.whole), cut.whole});
    joins_.add(vocabulary_.token_of(cut.left), vocabulary_.token_of(cut.right));
  }
}

int32_t BpeModel::require_unk(std::string_view symbol) const {
  if (unk_id_ >= 0) return unk_id_;
  throw Error(
      Code::kInvalidArgument,
      fmt::format("\"{}\" is not in the vocabulary, nor is unk_token \"{}\"", symbol, *unk_token_));
}

void BpeModel::split_characters(std::string_view piece, std::vector<int32_t>& ids) const {
  bool after_unk = false;  // the last of ids is an unk_token that may take in more
  std::string symbol;
  for (size_t offset = 0; offset < piece.size();) {
    const size_t begin = offset;
    offset += utf8_size(piece[offset]);
    std::string_view text = piece.substr(begin, offset - begin);
    const bool add_prefix = begin != 0 && !prefix_.empty();
    const bool add_suffix = offset == piece.size() && !suffix_.empty();
    if (add_prefix || add_suffix) {
      symbol = (add_prefix ? prefix_ : "") + std::string(text) + (add_suffix ? suffix_ : "");
      text = symbol;
    }
    const bool plain = text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80;
    const int32_t id = plain ? ascii_id_[static_cast<size_t>(text[0])] : vocabulary_.find(text);
    if (id >= 0) {
      ids.push_back(id);
      after_unk = false;
      continue;
    }
    if (byte_fallback_ && std::all_of(text.begin(), text.end(), [this](char byte) {
          return byte_token_[static_cast<unsigned char>(byte)] >= 0;
        })) {
      // As the library does: an unk_token before stays open across the bytes, and behind them.
      const bool reorder = after_unk;
      if (reorder) ids.pop_back();
      for (const char byte : text) ids.push_back(byte_token_[static_cast<unsigned char>(byte)]);
      if (reorder) ids.push_back(unk_id_);
      continue;
    }
    if (!unk_token_) continue;  // then the library drops it
    if (!(after_unk && fuse_unk_)) ids.push_back(require_unk(text));
    after_unk = true;
  }
}

// Looks for the best pair anew after each merge.
void BpeModel::merge_short(std::vector<int32_t>& ids) const {
  MergeTable::Merge pairs[kShortPiece];
  size_t count = ids.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = merges_.find(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == MergeTable::kNone) break;
    ids[best] = pairs[best].id;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      ids[i] = ids[i + 1];
      pairs[i - 1] = pairs[i];
    }
    if (best + 1 < count) pairs[best] = merges_.find(ids[best], ids[best + 1]);
    if (best > 0) pairs[best - 1] = merges_.find(ids[best - 1], ids[best]);
  }
  ids.resize(count);
}

// A linked list of symbols and a heap of (rank, position); an entry whose rank is no longer that of
// its position is out of date.
void BpeModel::merge_long(std::vector<int32_t>& ids, Scratch& scratch) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  const auto count = static_cast<uint32_t>(ids.size());
  std::vector<uint32_t>& next = scratch.next;
  std::vector<uint32_t>& previous = scratch.previous;
  std::vector<MergeTable::Merge>& merges = scratch.merges;
  std::vector<uint64_t>& heap = scratch.heap;
  next.resize(count);
  previous.resize(count);
  merges.resize(count);
  heap.clear();
  const auto look_up = [&](uint32_t at) {
    merges[at] = next[at] == kEnd ? MergeTable::Merge{MergeTable::kNone, -1}
                                  : merges_.find(ids[at], ids[next[at]]);
    if (merges[at].rank == MergeTable::kNone) return;
    heap.push_back(static_cast<uint64_t>(merges[at].rank) << 32 | at);
  };
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : kEnd;
    previous[i] = i == 0 ? kEnd : i - 1;
    look_up(i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto update = [&](uint32_t at) {
    const size_t before = heap.size();
    look_up(at);
    if (heap.size() != before) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto at = static_cast<uint32_t>(heap.back());
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    if (merges[at].rank != rank) continue;
    const uint32_t right = next[at];
    ids[at] = merges[at].id;
    merges[right].rank = MergeTable::kNone;
    ids[right] = -1;
    next[at] = next[right];
    if (next[at] != kEnd) previous[next[at]] = at;
    update(at);
    if (previous[at] != kEnd) update(previous[at]);
  }
  ids.erase(std::remove(ids.begin(), ids.end(), -1), ids.end());
}

void BpeModel::merge(std::vector<int32_t>& ids, Scratch& scratch) const {
  if (ids.size() <= kShortPiece) {
    merge_short(ids);
  } else {
    merge_long(ids, scratch);
  }
}

// A prefix is no part of the tokens that merges make, so with one the characters' borders say
// nothing.
void BpeModel::merge_runs(Scratch& scratch, std::vector<int32_t>& out) const {
  const std::vector<int32_t>& ids = scratch.ids;
  std::vector<int32_t>& run = scratch.run;
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin + 1;
    while (end < ids.size() && (!prefix_.empty() || joins_.may_join(ids[end - 1], ids[end]))) {
      ++end;
    }
    run.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin),
               ids.begin() + static_cast<std::ptrdiff_t>(end));
    merge(run, scratch);
    out.insert(out.end(), run.begin(), run.end());
    begin = end;
  }
}

void BpeModel::encode_piece(std::string_view piece,
                            bool raw_bytes,
                            Scratch& scratch,
                            std::vector<int32_t>& out) const {
  std::vector<int32_t>& ids = scratch.ids;
  ids.clear();
  const bool fast = raw_bytes && has_byte_alphabet_;
  if (raw_bytes && (!fast || ignore_merges_)) {
    scratch.text = to_byte_level(piece);
  }
  const std::string_view text = raw_bytes ? std::string_view(scratch.text) : piece;
  if (ignore_merges_) {
    if (const int32_t id = vocabulary_.find(text); id >= 0) {
      out.push_back(id);
      return;
    }
  }
  if (fast) {
    for (const char byte : piece) {
      ids.push_back(byte_level_id_[static_cast<unsigned char>(byte)]);
    }
  } else {
    split_characters(text, ids);
  }
  if (ids.size() > kOneWord) {
    merge_runs(scratch, out);
    return;
  }
  merge_short(ids);
  out.insert(out.end(), ids.begin(), ids.end());
}

void BpeModel::encode(std::string_view piece,
                      bool raw_bytes,
                      std::vector<int32_t>& ids,
                      std::vector<TextRange>* places) const {
  thread_local Scratch scratch;
  const size_t before = ids.size();
  encode_piece(piece, raw_bytes, scratch, ids);
  if (places == nullptr) return;
  append_places(piece, raw_bytes, std::span(ids).subspan(before), *places);
}

}  // namespace tgi
