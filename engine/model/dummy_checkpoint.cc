// A checkpoint without files: for measuring speed and memory of any model whose config.json is
// there. Not meant to say anything sensible.
//
// What the numbers are is in engine/tensor/random_weights.h; the key of a tensor is a hash of seed
// and name. A device that makes random weights itself is only told the key.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/model/model_weights.h"
#include "engine/model/tensor_table.h"
#include "engine/model/weight_check.h"
#include "engine/tensor/random_weights.h"

namespace tgi {
namespace {

// Buffers of up to this size in all are kept for the next tensors: fresh pages cost more than the
// numbers.
constexpr size_t kMaxKeptBytes = size_t{64} << 20;
constexpr size_t kBytesPerThread = size_t{1} << 20;

using Key = RandomKey;

constexpr const char* kDummyFile = "dummy weights";

// FNV-1a, widened by the seed.
Key make_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  }
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9ULL;
  return {static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)};
}

// Two bf16 per word, low half first.
void fill_bf16(Key key, uint32_t* words, size_t begin, size_t end) {
  constexpr float scale = kRandomWeightScale;
  for (size_t i = begin; i < end; ++i) {
    const uint32_t bits = hash_counter(key, static_cast<uint32_t>(i));
    const float low = static_cast<float>(static_cast<int32_t>(bits << 16) >> 16) * scale;
    const float high = static_cast<float>(static_cast<int32_t>(bits) >> 16) * scale;
    words[i] = (std::bit_cast<uint32_t>(low) >> 16) | (std::bit_cast<uint32_t>(high) & 0xffff0000U);
  }
}

void fill_f32(Key key, uint32_t* words, size_t begin, size_t end) {
  constexpr float scale = kRandomWeightScale;
  for (size_t i = begin; i < end; ++i) {
    const uint32_t bits = hash_counter(key, static_cast<uint32_t>(i));
    words[i] =
        std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(bits) >> 16) * scale);
  }
}

void fill_bytes(Key key, uint32_t* words, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) words[i] = hash_counter(key, static_cast<uint32_t>(i));
}

using Fill = void (*)(Key key, uint32_t* words, size_t begin, size_t end);

void fill_parallel(Key key, Fill fill, uint32_t* words, size_t num_words) {
  const size_t wanted = num_words * sizeof(uint32_t) / kBytesPerThread;
  const size_t available = std::max(1U, std::thread::hardware_concurrency());
  const size_t num_threads = std::clamp(wanted, size_t{1}, available);
  std::vector<std::jthread> threads;
  for (size_t t = 1; t < num_threads; ++t) {
    threads.emplace_back(fill, key, words, num_words * t / num_threads,
                         num_words * (t + 1) / num_threads);
  }
  fill(key, words, 0, num_words / num_threads);
}

// As it is stored.
std::vector<int64_t> matrix_shape(const LoadedConfig& model, const TensorEntry& entry) {
  const int64_t rows = entry.rows * entry.spec->turns.count;
  std::vector<int64_t> shape = {rows, entry.cols};
  if (entry.spec->transposed) std::swap(shape[0], shape[1]);
  return matrix_spec(model, entry).stack.shape_of_all(shape);
}

struct WordBuffer {
  std::unique_ptr<uint32_t[]> words;
  size_t num_words = 0;
};

class DummyCheckpoint final : public Checkpoint {
 public:
  DummyCheckpoint(const LoadedConfig& model, uint64_t seed, bool device_makes_matrices)
      : seed_(seed), device_makes_matrices_(device_makes_matrices) {
    // Made to order, so f16 checkpoints get bf16: no rounding of f16 in the inner loop.
    const DType dtype = model.config.checkpoint_dtype == DType::kF32 ? DType::kF32 : DType::kBF16;
    const TensorTable table(model);
    for (const TensorEntry& entry : table.entries()) {
      if (entry.spec->holds_indices) {
        add_indices(entry, model.config.experts.num_choices());
        continue;
      }
      if (add_arrays(model, entry)) continue;
      Record record;
      // Norm weights leave what they scale as it is.
      if (is_norm_weight(entry.spec->role))
        record.norm_weight = 1.0F - norm_offset_of(model.config, entry.spec->role);
      record.tensor.dtype = dtype;
      record.tensor.dtype_name = dtype == DType::kF32 ? "F32" : "BF16";
      record.tensor.file = kDummyFile;
      if (!entry.is_vector()) record.tensor.shape = matrix_shape(model, entry);
      const std::vector<std::string> names = entry.stored_names();
      for (size_t part = 0; part < names.size(); ++part) {
        const std::string& name = names[part];
        Record named{
            .tensor = record.tensor, .norm_weight = record.norm_weight, .all = {}, .buffer = {}};
        named.tensor.name = name;
        if (entry.is_vector()) named.tensor.shape = entry.vector_shape(part);
        records_.emplace(name, std::move(named));
      }
    }
  }

  const StoredTensor* find(std::string_view name) const override {
    const auto it = records_.find(name);
    return it == records_.end() ? nullptr : &it->second.tensor;
  }

  std::vector<std::string_view> names() const override {
    std::vector<std::string_view> out;
    for (const auto& [name, record] : records_) out.emplace_back(name);
    return out;
  }

  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    const std::lock_guard lock(mutex_);
    Record& record = records_.find(tensor.name)->second;
    const size_t element_bytes = tensor.dtype   ? dtype_size(*tensor.dtype)
                                 : record.bound ? sizeof(int32_t)
                                                : 1;
    const size_t size_bytes = static_cast<size_t>(tensor.num_elements()) * element_bytes;
    if (!record.buffer.words) {
      record.buffer = take_buffer((size_bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t));
      fill(record, (size_bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t));
    }
    return {reinterpret_cast<const std::byte*>(record.buffer.words.get()), size_bytes};
  }

  std::optional<RandomKey> random_key(const StoredTensor& tensor) const override {
    if (!device_makes_matrices_ || !tensor.dtype || tensor.shape.size() < 2) return std::nullopt;
    return make_key(seed_, tensor.name);
  }

  void release(const StoredTensor& tensor) const override {
    const std::lock_guard lock(mutex_);
    WordBuffer buffer = std::move(records_.find(tensor.name)->second.buffer);
    if (!buffer.words) return;
    size_t kept_bytes = buffer.num_words * sizeof(uint32_t);
    for (const WordBuffer& kept : kept_) kept_bytes += kept.num_words * sizeof(uint32_t);
    if (kept_bytes <= kMaxKeptBytes) kept_.push_back(std::move(buffer));
  }

 private:
  struct Record {
    StoredTensor tensor;
    std::optional<float> norm_weight;
    std::optional<uint8_t> all;       // of an array of bytes
    WordBuffer buffer;                // guarded by mutex_
    std::optional<uint32_t> bound{};  // of indices: all are below
  };

  void add_indices(const TensorEntry& entry, int32_t bound) {
    Record record{.tensor = {},
                  .norm_weight = {},
                  .all = {},
                  .buffer = {},
                  .bound = static_cast<uint32_t>(bound)};
    record.tensor.name = entry.name;
    record.tensor.dtype_name = "I32";
    record.tensor.shape = {entry.rows, entry.cols};
    record.tensor.file = kDummyFile;
    records_.emplace(entry.name, std::move(record));
  }

  // The bytes of a quantised matrix; false where it is plain.
  bool add_arrays(const LoadedConfig& model, const TensorEntry& entry) {
    if (entry.is_vector() || model.weight_format->random_arrays == nullptr) return false;
    const std::vector<RandomArray> arrays =
        model.weight_format->random_arrays(model.json, matrix_spec(model, entry));
    for (const RandomArray& array : arrays) {
      Record record{.tensor = {}, .norm_weight = {}, .all = array.all, .buffer = {}};
      record.tensor.name = array.name;
      record.tensor.dtype_name = "U8";
      record.tensor.shape = array.shape;
      record.tensor.file = kDummyFile;
      records_.emplace(array.name, std::move(record));
    }
    return !arrays.empty();
  }

  // The smallest kept buffer that is large enough. None: the largest is given up for a new one.
  WordBuffer take_buffer(size_t num_words) const {
    std::sort(kept_.begin(), kept_.end(), [](const WordBuffer& left, const WordBuffer& right) {
      return left.num_words < right.num_words;
    });
    const auto it = std::find_if(kept_.begin(), kept_.end(), [num_words](const WordBuffer& buffer) {
      return buffer.num_words >= num_words;
    });
    if (it == kept_.end()) {
      if (!kept_.empty()) kept_.pop_back();
      return {std::make_unique_for_overwrite<uint32_t[]>(num_words), num_words};
    }
    WordBuffer buffer = std::move(*it);
    kept_.erase(it);
    return buffer;
  }

  // Those of a row differ, where there are as many.
  void fill_indices(Record& record, size_t num_words) const {
    const Key key = make_key(seed_, record.tensor.name);
    const auto cols = static_cast<size_t>(record.tensor.shape.back());
    for (size_t i = 0; i < num_words; ++i) {
      const uint32_t first = hash_counter(key, static_cast<uint32_t>(i / cols)) % *record.bound;
      record.buffer.words[i] = (first + static_cast<uint32_t>(i % cols)) % *record.bound;
    }
  }

  void fill(Record& record, size_t num_words) const {
    if (record.bound) return fill_indices(record, num_words);
    if (record.all) {
      std::fill_n(record.buffer.words.get(), num_words, *record.all * 0x01010101U);
      return;
    }
    if (!record.tensor.dtype) {
      fill_parallel(make_key(seed_, record.tensor.name), fill_bytes, record.buffer.words.get(),
                    num_words);
      return;
    }
    const DType dtype = *record.tensor.dtype;
    if (!record.norm_weight) {
      fill_parallel(make_key(seed_, record.tensor.name),
                    dtype == DType::kF32 ? fill_f32 : fill_bf16, record.buffer.words.get(),
                    num_words);
      return;
    }
    const auto one = std::bit_cast<uint32_t>(*record.norm_weight);
    const uint32_t word = dtype == DType::kF32 ? one : (one >> 16) | (one & 0xffff0000U);
    std::fill_n(record.buffer.words.get(), num_words, word);
  }

  const uint64_t seed_;
  const bool device_makes_matrices_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Record, std::less<>> records_;
  mutable std::vector<WordBuffer> kept_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<Checkpoint> make_dummy_checkpoint(const LoadedConfig& model,
                                                  uint64_t seed,
                                                  bool device_makes_matrices) {
  if (model.weight_format->is_quantised && model.weight_format->random_arrays == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("random weights are plain numbers, but config.json says {}; take "
                            "quantization_config out of it",
                            model.weight_format->name));
  }
  return std::make_unique<DummyCheckpoint>(model, seed, device_makes_matrices);
}

}  // namespace tgi
