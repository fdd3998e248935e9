// Block ids in the order in which they were appended; each at most once. All in constant time, and
// nothing is allocated after construction.
#pragma once

#include <cstdint>
#include <vector>

namespace tgi {

class BlockList {
 public:
  explicit BlockList(int32_t num_blocks) : links_(static_cast<size_t>(num_blocks)) {}

  int32_t first() const { return first_; }  // -1: none
  bool contains(int32_t block) const { return link(block).listed; }

  // REQUIRES: not contained.
  void append(int32_t block) {
    link(block) = {.previous = last_, .next = -1, .listed = true};
    (last_ < 0 ? first_ : link(last_).next) = block;
    last_ = block;
  }

  // REQUIRES: contained.
  void remove(int32_t block) {
    const Link gone = link(block);
    (gone.previous < 0 ? first_ : link(gone.previous).next) = gone.next;
    (gone.next < 0 ? last_ : link(gone.next).previous) = gone.previous;
    link(block) = {};
  }

 private:
  struct Link {
    int32_t previous = -1;
    int32_t next = -1;
    bool listed = false;
  };
  Link& link(int32_t block) { return links_[static_cast<size_t>(block)]; }
  const Link& link(int32_t block) const { return links_[static_cast<size_t>(block)]; }

  std::vector<Link> links_;  // by block
  int32_t first_ = -1;
  int32_t last_ = -1;
};

}  // namespace tgi
