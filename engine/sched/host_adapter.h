// An adapter in host memory: its files are mapped, checked against the model, and cut for each
// rank. Immutable; shared by the requests that want it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files/file_source.h"
#include "engine/tensor/low_rank.h"

namespace tgi {

struct HostAdapter {
  int64_t id = 0;  // above 0; of no other adapter, nor of this one's files before they changed
  std::string name;
  std::vector<std::vector<LowRankPart>> parts;  // of each rank: views of `files`
  int64_t device_bytes = 0;                     // of the rank that needs most
  std::shared_ptr<const FileSource> files;
};

}  // namespace tgi
