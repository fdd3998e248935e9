// A checkpoint as torch.save wrote it before 1.6: pickles one behind the other (a magic number, a
// version, the machine, what was saved, the keys of its storages), and then the numbers of each
// storage, behind their count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cmd/download/torch/pickle.h"

namespace tgi::download {

using TorchStorages = std::map<std::string, std::span<const std::byte>, std::less<>>;  // by key

struct TorchStream {
  Pickle pickle;  // of what was saved
  TorchStorages storages;
};

// What a pickle says of a storage.
struct StorageId {
  std::string_view type;  // its class: "torch.FloatStorage"
  std::string_view key;
  int64_t count = 0;  // of elements
};

// Nothing when `value` is no storage, or is described in another way than torch does.
std::optional<StorageId> read_storage_id(const Pickle& pickle, const PickleValue& value);

// True when `bytes` begins as such a file does.
bool looks_like_stream(std::span<const std::byte> bytes);

// Bytes of an element of a storage, by its class; 0: not known.
using ElementBytes = std::function<int64_t(std::string_view type)>;

// The storages are views of `bytes`. Throws what read_pickle throws; kInvalidArgument for a file
// that is cut off or malformed; kUnsupported for one of a machine of another kind.
TorchStream read_stream(std::span<const std::byte> bytes,
                        std::string_view where,
                        std::span<const std::string_view> allowed,
                        const ElementBytes& element_bytes);

}  // namespace tgi::download
