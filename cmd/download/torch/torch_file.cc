#include "cmd/download/torch/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "cmd/download/torch/pickle.h"
#include "cmd/download/torch/torch_stream.h"
#include "cmd/download/torch/zip_archive.h"

namespace tgi::download {
namespace {

using Kind = PickleValue::Kind;

constexpr int64_t kMaxRank = 16;
constexpr size_t kMaxTensors = size_t{1} << 20;

struct DTypeRow {
  std::string_view storage;  // the class of a storage of it (none for the newer types)
  std::string_view torch;    // its own name
  std::string_view safetensors;
  int64_t bytes;
};

constexpr std::array<DTypeRow, 15> kDTypes = {{
    {"torch.FloatStorage", "torch.float32", "F32", 4},
    {"torch.HalfStorage", "torch.float16", "F16", 2},
    {"torch.BFloat16Storage", "torch.bfloat16", "BF16", 2},
    {"torch.DoubleStorage", "torch.float64", "F64", 8},
    {"torch.LongStorage", "torch.int64", "I64", 8},
    {"torch.IntStorage", "torch.int32", "I32", 4},
    {"torch.ShortStorage", "torch.int16", "I16", 2},
    {"torch.CharStorage", "torch.int8", "I8", 1},
    {"torch.ByteStorage", "torch.uint8", "U8", 1},
    {"torch.BoolStorage", "torch.bool", "BOOL", 1},
    {"", "torch.float8_e4m3fn", "F8_E4M3", 1},
    {"", "torch.float8_e5m2", "F8_E5M2", 1},
    {"", "torch.uint16", "U16", 2},
    {"", "torch.uint32", "U32", 4},
    {"", "torch.uint64", "U64", 8},
}};

constexpr std::string_view kUntyped = "torch.storage.UntypedStorage";
constexpr std::string_view kRebuild = "torch._utils._rebuild_tensor";
constexpr std::string_view kRebuild2 = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuild3 = "torch._utils._rebuild_tensor_v3";
constexpr std::string_view kParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kSize = "torch.Size";

std::vector<std::string_view> allowed_names() {
  std::vector<std::string_view> out = {kUntyped, kRebuild, kRebuild2, kRebuild3, kParameter, kSize};
  for (const DTypeRow& row : kDTypes) {
    if (!row.storage.empty()) out.push_back(row.storage);
    out.push_back(row.torch);
  }
  return out;
}

struct Storage {
  const DTypeRow* dtype = nullptr;  // null: bytes, the tensor tells
  std::span<const std::byte> bytes;
};

// a * b, or nothing when that is more than 2^62.
std::optional<int64_t> multiply(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out) || out > (int64_t{1} << 62)) return std::nullopt;
  return out;
}

// Bytes of an element of a storage; 0: no storage.
int64_t element_bytes_of(std::string_view storage) {
  if (storage == kUntyped) return 1;  // counts bytes
  for (const DTypeRow& row : kDTypes) {
    if (row.storage == storage) return row.bytes;
  }
  return 0;
}

class TorchReader {
 public:
  TorchReader(std::span<const std::byte> bytes, std::string_view where) : where_(where) {
    static const std::vector<std::string_view> allowed = allowed_names();
    if (looks_like_stream(bytes)) {
      TorchStream stream = read_stream(bytes, where, allowed, element_bytes_of);
      pickle_ = std::move(stream.pickle);
      storages_ = std::move(stream.storages);
      return;
    }
    if (!looks_like_zip(bytes)) {
      fail("not a torch checkpoint: expected a zip file, as torch.save writes it");
    }
    read_members(bytes);
    find_prefix();
    check_members();
    pickle_ = read_pickle(members_.at(prefix_ + "data.pkl"), where_, allowed);
    find_storages();
  }

  std::vector<TorchTensor> read() {
    read_dict(find_state_dict());
    return std::move(tensors_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", where_, what));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Code::kUnsupported, fmt::format("{}: {}", where_, what));
  }

  void read_members(std::span<const std::byte> bytes) {
    for (const ZipMember& member : read_zip(bytes, where_)) {
      all_plain_ = all_plain_ && member.is_plain;
      if (!members_.emplace(member.name, member.bytes).second) {
        fail(fmt::format("{} is in it twice", printable(member.name)));
      }
    }
  }

  void find_storages() {
    const std::string folder = prefix_ + "data/";
    for (const auto& [name, bytes] : members_) {
      if (name.starts_with(folder)) storages_.emplace(name.substr(folder.size()), bytes);
    }
  }

  // All members lie below one folder, named as the file once was.
  void find_prefix() {
    for (const auto& [name, bytes] : members_) {
      constexpr std::string_view kEnding = "/data.pkl";
      if (!name.ends_with(kEnding) || name.find('/') != name.size() - kEnding.size()) continue;
      if (!prefix_.empty()) fail("has two members data.pkl");
      prefix_ = name.substr(0, name.size() - kEnding.size() + 1);
    }
    if (prefix_.empty()) fail("a zip file, but not a torch checkpoint: it has no data.pkl");
  }

  void check_members() const {
    if (members_.contains(prefix_ + "constants.pkl")) {
      refuse("a TorchScript program, not a checkpoint; not opened");
    }
    if (!all_plain_) refuse("has compressed or encrypted members, which torch.save does not write");
    const auto order = members_.find(prefix_ + "byteorder");
    if (order == members_.end()) return;
    const std::string_view text(reinterpret_cast<const char*>(order->second.data()),
                                order->second.size());
    if (text != "little") {
      refuse(
          fmt::format("byte order \"{}\": written on a machine of another kind, only "
                      "little-endian checkpoints are read",
                      printable(text)));
    }
  }

  const PickleValue& find_state_dict() const {
    const PickleValue& root = pickle_.root();
    if (root.kind != Kind::kDict) fail("expected a dict of tensors in it");
    const PickleValue* const inner = find_item(pickle_, root, "state_dict");
    if (inner != nullptr && inner->kind == Kind::kDict) return *inner;
    return root;
  }

  void read_dict(const PickleValue& dict) {
    std::set<std::string_view> names;
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleValue& key = pickle_[dict.items[i]];
      if (key.kind != Kind::kString) fail("a tensor whose name is not text");
      if (!is_valid_utf8(key.text)) fail("a tensor whose name is not valid UTF-8");
      // As in Python, the last of a name counts, but no writer means two.
      if (!names.insert(key.text).second) {
        fail(fmt::format("tensor {} is in it twice", printable(key.text)));
      }
      if (tensors_.size() >= kMaxTensors) fail(fmt::format("more than {} tensors", kMaxTensors));
      tensors_.push_back(read_tensor(key.text, pickle_[dict.items[i + 1]]));
    }
  }

  // --- one tensor

  struct Arguments {
    const std::string& name;  // of the tensor, for messages
    const PickleValue& call;
    const PickleValue& tuple;
  };

  [[noreturn]] void fail_tensor(const std::string& name, std::string_view what) const {
    fail(fmt::format("tensor {}: {}", printable(name), what));
  }

  const PickleValue& argument(const Arguments& given, size_t index) const {
    if (index >= given.tuple.items.size()) fail_tensor(given.name, "too few arguments");
    return pickle_[given.tuple.items[index]];
  }

  TorchTensor read_tensor(const std::string& name, const PickleValue& value) const {
    if (value.kind != Kind::kCall) {
      fail_tensor(name, "expected a tensor, got something else; only state dicts are read");
    }
    const std::string& function = pickle_[value.items[0]].text;
    const Arguments given{.name = name, .call = value, .tuple = pickle_[value.items[1]]};
    // A parameter is a tensor with a flag; one of a parameter is no thing that torch writes.
    if (function == kParameter) {
      const PickleValue& inner = argument(given, 0);
      const bool is_tensor =
          inner.kind == Kind::kCall && pickle_[inner.items[0]].text != kParameter;
      if (!is_tensor) fail_tensor(name, "a parameter that is not a tensor");
      return read_tensor(name, inner);
    }
    const bool is_third = function == kRebuild3;
    if (!is_third && function != kRebuild && function != kRebuild2) {
      fail_tensor(name, fmt::format("is made by {}, not a tensor", function));
    }
    const Storage storage = read_storage(given, argument(given, 0));
    const DTypeRow* dtype = is_third ? find_dtype(given, argument(given, 6)) : storage.dtype;
    if (dtype == nullptr) fail_tensor(name, "does not tell its type");
    // With its metadata a tensor may say that it stands for its numbers' conjugate or negative.
    const size_t metadata = is_third ? 7 : 6;
    if (given.tuple.items.size() > metadata && !argument(given, metadata).items.empty()) {
      refuse(fmt::format("tensor {}: marked as conjugate or negative", printable(name)));
    }
    TorchTensor out{.name = name,
                    .dtype = std::string(dtype->safetensors),
                    .element_bytes = dtype->bytes,
                    .shape = read_sizes(given, argument(given, 2)),
                    .strides = read_sizes(given, argument(given, 3)),
                    .offset = 0,
                    .storage = storage.bytes};
    const PickleValue& offset = argument(given, 1);
    if (offset.kind != Kind::kInteger || offset.integer < 0) fail_tensor(name, "a bad offset");
    out.offset = offset.integer;
    check_extent(out);
    return out;
  }

  const DTypeRow* find_dtype(const Arguments& given, const PickleValue& value) const {
    for (const DTypeRow& row : kDTypes) {
      if (value.kind == Kind::kGlobal && value.text == row.torch) return &row;
    }
    fail_tensor(given.name, "a type that is not known");
  }

  Storage read_storage(const Arguments& given, const PickleValue& value) const {
    if (value.kind != Kind::kPersistent) fail_tensor(given.name, "has no storage");
    const auto id = read_storage_id(pickle_, value);
    if (!id) fail_tensor(given.name, "its storage is described in another way than torch does");
    Storage out;
    for (const DTypeRow& row : kDTypes) {
      if (row.storage == id->type) out.dtype = &row;
    }
    const int64_t element_bytes = element_bytes_of(id->type);
    if (element_bytes == 0) {
      fail_tensor(given.name, fmt::format("{} is no storage type", id->type));
    }
    const auto stored = storages_.find(id->key);
    if (stored == storages_.end()) {
      fail_tensor(given.name, fmt::format("its storage {} is not in the file; is the download "
                                          "complete?",
                                          printable(id->key)));
    }
    const auto bytes = multiply(id->count, element_bytes);
    if (id->count < 0 || !bytes || static_cast<uint64_t>(*bytes) > stored->second.size()) {
      fail_tensor(given.name,
                  fmt::format("its storage {} should have {} elements of {} bytes, but has {} "
                              "bytes",
                              printable(id->key), id->count, element_bytes, stored->second.size()));
    }
    out.bytes = stored->second.first(static_cast<size_t>(*bytes));
    return out;
  }

  std::vector<int64_t> read_sizes(const Arguments& given, const PickleValue& value) const {
    const PickleValue* sizes = &value;
    if (sizes->kind == Kind::kCall && pickle_[sizes->items[0]].text == kSize) {
      const PickleValue& tuple = pickle_[sizes->items[1]];
      if (tuple.items.size() == 1) sizes = &pickle_[tuple.items[0]];
    }
    if (sizes->kind != Kind::kTuple && sizes->kind != Kind::kList) {
      fail_tensor(given.name, "its shape and strides are not tuples");
    }
    if (sizes->items.size() > kMaxRank) {
      fail_tensor(given.name,
                  fmt::format("{} dimensions, the limit is {}", sizes->items.size(), kMaxRank));
    }
    std::vector<int64_t> out;
    for (const PickleRef ref : sizes->items) {
      if (pickle_[ref].kind != Kind::kInteger || pickle_[ref].integer < 0) {
        fail_tensor(given.name, "a size that is not a number, or is negative");
      }
      out.push_back(pickle_[ref].integer);
    }
    return out;
  }

  // Every element lies within the storage, and there are no more of them than the storage has.
  void check_extent(const TorchTensor& tensor) const {
    if (tensor.shape.size() != tensor.strides.size()) {
      fail_tensor(tensor.name, fmt::format("{} sizes, but {} strides", tensor.shape.size(),
                                           tensor.strides.size()));
    }
    const auto capacity = static_cast<int64_t>(tensor.storage.size()) / tensor.element_bytes;
    if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) return;
    int64_t count = 1;
    int64_t last = tensor.offset;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      const auto next = multiply(count, tensor.shape[i]);
      const auto step = multiply(tensor.shape[i] - 1, tensor.strides[i]);
      if (!next || !step || __builtin_add_overflow(last, *step, &last)) {
        fail_tensor(tensor.name, "its shape is too large");
      }
      count = *next;
    }
    if (last >= capacity) {
      fail_tensor(tensor.name,
                  fmt::format("reaches to element {} of a storage that has {}", last, capacity));
    }
    if (count > capacity) {
      refuse(
          fmt::format("tensor {}: shows the same numbers several times (expanded), {} elements "
                      "of a storage that has {}",
                      printable(tensor.name), count, capacity));
    }
  }

  const std::string_view where_;
  std::map<std::string, std::span<const std::byte>, std::less<>> members_;  // of a zip file
  bool all_plain_ = true;
  std::string prefix_;  // "archive/"
  Pickle pickle_;
  TorchStorages storages_;
  std::vector<TorchTensor> tensors_;
};

}  // namespace

int64_t TorchTensor::num_elements() const {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;  // the others may be of any size
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

bool TorchTensor::is_contiguous() const {
  if (num_elements() == 0) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

bool TorchTensor::is_same_view(const TorchTensor& other) const {
  return storage.data() == other.storage.data() && dtype == other.dtype && offset == other.offset &&
         shape == other.shape && strides == other.strides;
}

std::vector<TorchTensor> read_torch(std::span<const std::byte> bytes, std::string_view where) {
  return TorchReader(bytes, where).read();
}

}  // namespace tgi::download
