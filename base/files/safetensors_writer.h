// Writes safetensors files a piece at a time, so that nothing need be whole in memory: first what
// the arrays are, then their bytes in that order.
//
// Format: https://github.com/huggingface/safetensors#format (engine/weights/safetensors.h reads it)
// Large models are split over files of a limited size, with an index that says which array is
// where, as transformers reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/unique_fd.h"

namespace tgi {

struct TensorHeader {
  std::string name;
  std::string dtype;  // as safetensors spells it: "F16", "BF16", "F32", "I32", "U8", "F8_E4M3", ...
  std::vector<int64_t> shape;

  // Throws kInvalidArgument for a dtype that the format doesn't know or has not in whole bytes, and
  // for a negative size or more bytes than 2^62.
  int64_t bytes() const;
};

// One file. Not safe for use from several threads. The file is complete only after finish();
// whoever writes it removes what was left unfinished, or writes into a folder that is renamed at
// the end.
class SafetensorsWriter {
 public:
  // Creates `path`, or empties it. The data keep the order of `entries`. Throws kInvalidArgument
  // for two entries of one name, kOutOfMemory when the disk is full, kNotFound when the folder is
  // not there; every error begins with the path.
  SafetensorsWriter(std::string path,
                    std::span<const TensorHeader> entries,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

  // The next bytes of the data: parts of an entry or several entries at once. Throws
  // kInternal for more than the entries hold, kOutOfMemory when the disk is full.
  void append(std::span<const std::byte> bytes);

  // Throws kInternal unless every byte was given. The data are on the disk when it returns.
  void finish();

 private:
  void write(std::span<const std::byte> bytes);

  std::string path_;
  UniqueFd file_;
  int64_t missing_bytes_ = 0;
};

struct ShardPlan {
  struct Shard {
    std::string file;  // "model.safetensors", or "model-00001-of-00003.safetensors"
    std::vector<TensorHeader> entries;
  };
  std::vector<Shard> shards;
  int64_t total_bytes = 0;  // of all entries

  // What model.safetensors.index.json says. Only for more than one shard.
  Json index_json() const;
};

// Entries stay in their order; a file ends before it would hold more than `max_shard_bytes`, but
// holds one entry at least.
ShardPlan plan_shards(std::vector<TensorHeader> entries, int64_t max_shard_bytes);

inline constexpr int64_t kDefaultShardBytes = int64_t{5'000'000'000};

}  // namespace tgi
