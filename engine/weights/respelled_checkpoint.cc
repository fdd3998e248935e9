#include "engine/weights/respelled_checkpoint.h"

namespace tgi {

std::string respelled(std::string_view stored, std::span<const TensorRename> renames) {
  std::string name(stored);
  for (const TensorRename& rename : renames) {
    const size_t at = name.find(rename.stored);
    if (at != std::string::npos) name.replace(at, rename.stored.size(), rename.usual);
  }
  return name;
}

RespelledCheckpoint::RespelledCheckpoint(const Checkpoint& checkpoint,
                                         std::span<const TensorRename> renames)
    : checkpoint_(checkpoint) {
  for (const std::string_view stored : checkpoint.names()) {
    std::string name = respelled(stored, renames);
    if (!stored_names_.emplace(std::move(name), stored).second) {
      stored_names_.emplace(stored, stored);
    }
  }
}

const StoredTensor* RespelledCheckpoint::find(std::string_view name) const {
  const auto it = stored_names_.find(name);
  return it == stored_names_.end() ? nullptr : checkpoint_.find(it->second);
}

std::vector<std::string_view> RespelledCheckpoint::names() const {
  std::vector<std::string_view> out;
  for (const auto& [name, stored] : stored_names_) out.emplace_back(name);
  return out;
}

}  // namespace tgi
