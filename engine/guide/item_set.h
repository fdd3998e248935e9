// The ways to read a text, while they are collected: a set that is cleared at no cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tgi::guide {

struct Item {
  int32_t state = 0;
  int32_t stack = 0;
  friend auto operator<=>(const Item&, const Item&) = default;
};

inline uint64_t hash_of(uint64_t value) {
  value *= 0x9e3779b97f4a7c15;
  return value ^ value >> 32;
}

inline uint64_t hash_of(const Item& item) {
  return hash_of(static_cast<uint64_t>(static_cast<uint32_t>(item.state)) << 32 |
                 static_cast<uint32_t>(item.stack));
}

class ItemSet {
 public:
  void clear() { items_.clear(); }
  const std::vector<Item>& items() const { return items_; }

  // False when it was there.
  bool insert(const Item& item) {
    if (items_.size() < kFew) {
      for (const Item& known : items_) {
        if (known == item) return false;
      }
      items_.push_back(item);
      if (items_.size() == kFew) rehash();
      return true;
    }
    if (items_.size() * 2 > slots_.size()) rehash();
    size_t slot = hash_of(item) & (slots_.size() - 1);
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      if (items_[static_cast<size_t>(slots_[slot])] == item) return false;
    }
    slots_[slot] = static_cast<int32_t>(items_.size());
    items_.push_back(item);
    return true;
  }

 private:
  static constexpr size_t kFew = 16;

  void rehash() {
    size_t size = 64;
    while (size < items_.size() * 4) size *= 2;
    slots_.assign(size, -1);
    for (size_t i = 0; i < items_.size(); ++i) {
      size_t slot = hash_of(items_[i]) & (size - 1);
      while (slots_[slot] >= 0) slot = (slot + 1) & (size - 1);
      slots_[slot] = static_cast<int32_t>(i);
    }
  }

  std::vector<Item> items_;
  std::vector<int32_t> slots_;
};

}  // namespace tgi::guide
