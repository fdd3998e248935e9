// The "model" of tokenizer.json when it is BPE (Sennrich et al. 2016, arxiv.org/abs/1508.07909):
// splits a piece into characters and joins neighbours, the pair of the lowest rank first.
// Immutable after construction.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer/piece_model.h"

namespace tgi {

// Pairs of ids that join, by their rank. A pair that comes again takes the later rank.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank;
    int32_t id;  // of the result
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void reserve(size_t num_merges);
  void add(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const;  // rank kNone: they don't join

 private:
  struct Slot {
    int32_t left = -1;
    int32_t right = -1;
    Merge merge{kNone, -1};
  };
  size_t slot_of(int32_t left, int32_t right) const;

  std::vector<Slot> slots_;
  size_t num_used_ = 0;
};

// Which tokens can't become part of one token when they are neighbours: those between whose last
// and first character no merge joins. What lies on the two sides of such a border is merged apart,
// so that a text without pre-tokenizer is done word by word.
class JoinFilter {
 public:
  // Takes in one merge. REQUIRES: neither is empty.
  void add(std::string_view left, std::string_view right);

  // Call once, after the last add.
  void index(const Vocabulary& vocabulary);

  // May say true for tokens that never join. REQUIRES: ids of the vocabulary.
  bool may_join(int32_t left, int32_t right) const {
    return joined_[bit_of(ends_[static_cast<size_t>(left)].last,
                          ends_[static_cast<size_t>(right)].first)];
  }

 private:
  static constexpr size_t kNumBits = 1 << 20;

  struct Ends {
    uint16_t first, last;  // the low bits of a token's first and last character
  };
  static Ends ends_of(std::string_view token);
  static size_t bit_of(uint16_t last, uint16_t first) {
    return (static_cast<size_t>(last) * 0x9E35B + first) % kNumBits;
  }

  std::vector<bool> joined_ = std::vector<bool>(kNumBits, false);
  std::vector<Ends> ends_;  // by id
};

struct TextPair {
  std::string left, right;
};

// What tokenizer.json says, before it is checked.
struct BpeSpec {
  Vocabulary vocabulary;  // indexed
  std::vector<TextPair> merges;
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
  bool is_ranked = false;  // no merges: as byte_ranks.h says
};

class BpeModel final : public PieceModel {
 public:
  // Throws kInvalidArgument when a merge names a token that is not in the vocabulary.
  explicit BpeModel(BpeSpec spec);

  void encode(std::string_view piece,
              bool raw_bytes,
              std::vector<int32_t>& ids,
              std::vector<TextRange>* places) const override;
  bool takes_raw_bytes() const override { return true; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  // Buffers for encode; one per thread.
  struct Scratch {
    std::vector<int32_t> ids, run;
    std::vector<uint32_t> next, previous;
    std::vector<MergeTable::Merge> merges;
    std::vector<uint64_t> heap;
    std::string text;
  };

  void encode_piece(std::string_view piece,
                    bool raw_bytes,
                    Scratch& scratch,
                    std::vector<int32_t>& out) const;
  // Appends where in `piece` each of `ids`, which encode_piece gave for it, stands. In bytes.
  void append_places(std::string_view piece,
                     bool raw_bytes,
                     std::span<const int32_t> ids,
                     std::vector<TextRange>& out) const;
  void add_merges(const BpeSpec& spec);
  void add_ranked_merges();
  void split_characters(std::string_view piece, std::vector<int32_t>& ids) const;
  int32_t require_unk(std::string_view symbol) const;
  size_t size_of_token(std::string_view rest, int32_t id, bool is_first, bool is_last) const;
  void merge_runs(Scratch& scratch, std::vector<int32_t>& out) const;
  void merge(std::vector<int32_t>& ids, Scratch& scratch) const;
  void merge_short(std::vector<int32_t>& ids) const;
  void merge_long(std::vector<int32_t>& ids, Scratch& scratch) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  JoinFilter joins_;
  std::optional<std::string> unk_token_;
  std::string prefix_;
  std::string suffix_;
  bool fuse_unk_;
  bool byte_fallback_;
  bool ignore_merges_;
  int32_t unk_id_ = -1;
  std::array<int32_t, 128> ascii_id_{};       // of the characters of ASCII, or -1
  std::array<int32_t, 256> byte_token_{};     // <0x00> to <0xFF>, -1: not in the vocabulary
  std::array<int32_t, 256> byte_level_id_{};  // of each byte's byte-level character, or -1
  bool has_byte_alphabet_ = false;            // all of byte_level_id_, and no prefix or suffix
};

}  // namespace tgi
