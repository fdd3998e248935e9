// Tokens by text and by id. All text lies in one string; a lookup allocates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

class Vocabulary {
 public:
  // Ids above are refused by the readers: an id costs memory even when no token has it.
  static constexpr int64_t kHighestId = (1 << 24) - 1;

  // A token that is already there gets the new id. REQUIRES: 0 <= id <= kHighestId.
  void add(std::string_view token, int32_t id);

  // A token that is already there keeps its earlier ids too, and is found by this one.
  void add_id(std::string_view token, int32_t id);

  // Call once, after the last add: makes token_of work.
  void index_ids();

  std::optional<int32_t> id_of(std::string_view token) const {
    const int32_t id = find(token);
    return id < 0 ? std::nullopt : std::optional(id);
  }
  int32_t find(std::string_view token) const;   // -1: not there
  std::string_view token_of(int32_t id) const;  // "" when no token has it
  bool has_id(int32_t id) const;
  size_t size() const { return entries_.size(); }

  // All of them, in the order they were added. REQUIRES: index < size().
  std::string_view token_at(size_t index) const { return text_of(entries_[index]); }
  int32_t id_at(size_t index) const { return entries_[index].id; }
  bool has_copies() const { return has_copies_; }  // a token has several ids

  int32_t highest_id() const { return highest_id_; }  // -1: empty

 private:
  struct Entry {
    uint64_t offset;
    uint32_t size;
    int32_t id;
  };

  std::string_view text_of(const Entry& entry) const {
    return std::string_view(text_).substr(entry.offset, entry.size);
  }
  size_t slot_of(std::string_view token) const;
  void grow();

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // open addressing: index into entries_ + 1, 0 is free
  std::vector<uint32_t> by_id_;  // index into entries_ + 1
  int32_t highest_id_ = -1;
  bool has_copies_ = false;
};

}  // namespace tgi
