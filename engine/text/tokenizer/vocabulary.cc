#include "engine/text/tokenizer/vocabulary.h"

#include <algorithm>
#include <functional>

namespace tgi {

size_t Vocabulary::slot_of(std::string_view token) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>()(token) & mask;
  while (slots_[slot] != 0 && text_of(entries_[slots_[slot] - 1]) != token) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void Vocabulary::grow() {
  slots_.assign(std::max<size_t>(1024, slots_.size() * 4), 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    slots_[slot_of(text_of(entries_[i]))] = static_cast<uint32_t>(i + 1);
  }
}

void Vocabulary::add(std::string_view token, int32_t id) {
  if (slots_.empty()) grow();
  const size_t slot = slot_of(token);
  if (slots_[slot] == 0) return add_id(token, id);
  highest_id_ = std::max(highest_id_, id);
  entries_[slots_[slot] - 1].id = id;
}

void Vocabulary::add_id(std::string_view token, int32_t id) {
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  highest_id_ = std::max(highest_id_, id);
  const size_t slot = slot_of(token);
  has_copies_ = has_copies_ || slots_[slot] != 0;
  entries_.push_back({text_.size(), static_cast<uint32_t>(token.size()), id});
  text_ += token;
  slots_[slot] = static_cast<uint32_t>(entries_.size());
}

void Vocabulary::index_ids() {
  by_id_.assign(static_cast<size_t>(highest_id_ + 1), 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    by_id_[static_cast<size_t>(entries_[i].id)] = static_cast<uint32_t>(i + 1);
  }
  text_.shrink_to_fit();
}

int32_t Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return -1;
  const uint32_t index = slots_[slot_of(token)];
  return index == 0 ? -1 : entries_[index - 1].id;
}

bool Vocabulary::has_id(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < by_id_.size() && by_id_[static_cast<size_t>(id)] != 0;
}

std::string_view Vocabulary::token_of(int32_t id) const {
  if (!has_id(id)) return {};
  return text_of(entries_[by_id_[static_cast<size_t>(id)] - 1]);
}

}  // namespace tgi
