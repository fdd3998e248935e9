#include "engine/weights/formats/stored_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

constexpr int64_t kElementsPerThread = int64_t{1} << 20;
constexpr int64_t kMaxThreads = 8;

std::string joined(std::initializer_list<std::string_view> items, std::string_view separator) {
  return fmt::format("{}", fmt::join(items.begin(), items.end(), separator));
}

std::string shapes_text(std::initializer_list<std::vector<int64_t>> shapes) {
  std::string out;
  for (const std::vector<int64_t>& shape : shapes) {
    out += fmt::format("{}{}", out.empty() ? "" : " or ", shape_text(shape));
  }
  return out;
}

struct Owned {
  ScratchVector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int8_t> zeros;
  std::vector<float> minima;
  std::vector<float> block_scales;
  std::vector<int8_t> group_scales;
  std::vector<float> block_minima;
  std::vector<int8_t> group_minima;
};

template <typename T>
const T* data_or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

std::string_view module_name(const MatrixSpec& spec) {
  std::string_view name = spec.name;
  constexpr std::string_view kWeight = ".weight";
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return name;
}

int64_t stored_rows(const MatrixSpec& spec) {
  const int64_t rows = spec.rows * spec.turns.count;
  return spec.stack.is_flat ? rows * std::max<int64_t>(spec.stack.count, 1) : rows;
}

int64_t stored_row(const MatrixSpec& spec, int64_t row) {
  return spec.stack.index * spec.rows * spec.turns.count + row * spec.turns.count +
         spec.turns.index;
}

void ArrayCollector::check(const StoredTensor& tensor,
                           std::initializer_list<std::string_view> dtypes,
                           std::initializer_list<std::vector<int64_t>> shapes) {
  arrays_.push_back(&tensor);
  if (std::find(shapes.begin(), shapes.end(), tensor.shape) == shapes.end()) {
    problems_.misshapen.push_back(fmt::format("{}: expected {}, got {}", tensor.name,
                                              shapes_text(shapes), shape_text(tensor.shape)));
  }
  if (std::find(dtypes.begin(), dtypes.end(), tensor.dtype_name) == dtypes.end()) {
    problems_.unsupported.push_back(fmt::format("{}: expected {}, got {}", tensor.name,
                                                joined(dtypes, " or "), tensor.dtype_name));
  }
}

bool ArrayCollector::allow(std::string_view suffix,
                           std::initializer_list<std::string_view> dtypes,
                           std::initializer_list<std::vector<int64_t>> shapes) {
  const std::string name = fmt::format("{}{}{}", module_name(spec_), joint_, suffix);
  const StoredTensor* tensor = find_by_any_name(checkpoint_, name, spec_.prefix);
  if (tensor != nullptr) check(*tensor, dtypes, shapes);
  return tensor != nullptr;
}

void ArrayCollector::require(std::string_view suffix,
                             std::initializer_list<std::string_view> dtypes,
                             std::initializer_list<std::vector<int64_t>> shapes) {
  if (allow(suffix, dtypes, shapes)) return;
  problems_.missing.push_back(fmt::format("{}{}{}", module_name(spec_), joint_, suffix));
}

const StoredTensor* find_array(std::span<const StoredTensor* const> arrays,
                               std::string_view suffix) {
  for (const StoredTensor* tensor : arrays) {
    const std::string_view name = tensor->name;
    if (name.ends_with(suffix) && name.size() > suffix.size() &&
        name[name.size() - suffix.size() - 1] == '.') {
      return tensor;
    }
  }
  return nullptr;
}

float ArrayReader::number(int64_t index) const {
  if (!tensor_->dtype || is_cache_code(*tensor_->dtype)) {
    throw Error(Code::kInternal, fmt::format("{}: not numbers", tensor_->name));
  }
  const float value = read_element(data_, *tensor_->dtype, index);
  if (!std::isfinite(value)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: element {} of {} is {}, expected a "
                            "finite number; is the file damaged?",
                            tensor_->name, index, shape_text(tensor_->shape), value));
  }
  return value;
}

DecodedBlock::DecodedBlock(std::string_view what, Range row_range, Range col_range)
    : name(what),
      rows(row_range.count),
      cols(col_range.count),
      group_of(static_cast<size_t>(col_range.count)),
      codes(static_cast<size_t>(row_range.count * col_range.count)) {}

int64_t DecodedBlock::cut_groups(Range col_range, int64_t group_size, bool with_zeros) {
  const int64_t size = group_size == 0 ? col_range.begin + col_range.count : group_size;
  const int64_t first = col_range.begin / size;
  for (int64_t col = 0; col < cols; ++col) {
    group_of[static_cast<size_t>(col)] =
        static_cast<int32_t>((col_range.begin + col) / size - first);
  }
  num_groups = cols == 0 ? 0 : group_of.back() + 1;
  scales.resize(static_cast<size_t>(rows * num_groups));
  if (with_zeros) zeros.resize(scales.size());
  return first;
}

namespace {

size_t scale_index(const DecodedBlock& block, int64_t row, int64_t col) {
  return static_cast<size_t>(row * block.num_groups + block.group_of[static_cast<size_t>(col)]);
}

// Whether the block's groups are `size` contiguous columns each, from its first one on.
bool has_groups_of(const DecodedBlock& block, int64_t size) {
  for (int64_t col = 0; col < block.cols; ++col) {
    if (block.group_of[static_cast<size_t>(col)] != col / size) return false;
  }
  return true;
}

void take_groups(DecodedBlock& block, const MatrixStorage& storage, Owned& out) {
  out.scales = std::move(block.scales);
  out.zeros = std::move(block.zeros);
  if (storage.minima) {
    out.minima = std::move(block.minima);
    out.minima.resize(out.scales.size());
  }
  if (storage.scales != ScaleForm::kFactors) return;
  out.block_scales = std::move(block.block_scales);
  out.group_scales = std::move(block.group_scales);
  if (!storage.minima) return;
  out.block_minima = std::move(block.block_minima);
  out.group_minima = std::move(block.group_minima);
  out.block_minima.resize(out.block_scales.size());
  out.group_minima.resize(out.group_scales.size());
}

// One group of the device lies within one of the file.
void copy_groups(DecodedBlock& block, const MatrixStorage& storage, Owned& out) {
  const int64_t num_groups = (block.cols + storage.group_size - 1) / storage.group_size;
  for (int64_t row = 0; row < block.rows; ++row) {
    for (int64_t group = 0; group < num_groups; ++group) {
      const size_t from = scale_index(block, row, group * storage.group_size);
      out.scales.push_back(block.scales[from]);
      if (!block.zeros.empty()) out.zeros.push_back(block.zeros[from]);
      if (storage.minima) out.minima.push_back(block.minima.empty() ? 0 : block.minima[from]);
      if (storage.scales != ScaleForm::kFactors) continue;
      out.group_scales.push_back(block.group_scales[from]);
      if (!storage.minima) continue;
      const bool has_minima = !block.group_minima.empty();
      out.group_minima.push_back(has_minima ? block.group_minima[from] : int8_t{0});
    }
  }
  if (storage.scales != ScaleForm::kFactors) return;
  out.block_scales = std::move(block.block_scales);
  out.block_minima = std::move(block.block_minima);
  if (storage.minima) out.block_minima.resize(out.block_scales.size());
}

}  // namespace

HostWeight to_host_weight(DecodedBlock block, const MatrixStorage& storage) {
  if (!storage.stored) {
    ScratchVector<float> values(block.codes.size());
    decode_parallel(block.rows, block.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t col = 0; col < block.cols; ++col) {
          const size_t group = scale_index(block, row, col);
          const auto i = static_cast<size_t>(row * block.cols + col);
          const int zero = block.zeros.empty() ? 0 : block.zeros[group];
          values[i] = block.scales[group] * static_cast<float>(block.codes[i] - zero);
          if (!block.minima.empty()) values[i] += block.minima[group];
        }
      }
    });
    return to_host_weight(block.name, block.rows, block.cols, std::move(values));
  }

  const int64_t group_size = storage.group_size;
  const int64_t num_groups = (block.cols + group_size - 1) / group_size;
  auto owned = std::make_shared<Owned>();
  if (has_groups_of(block, group_size)) {
    take_groups(block, storage, *owned);
  } else {
    copy_groups(block, storage, *owned);
  }
  owned->codes = std::move(block.codes);
  HostWeight out{
      .name = std::move(block.name), .format = "grouped", .rows = block.rows, .cols = block.cols};
  out.grouped = {.codes = owned->codes.data(),
                 .scales = owned->scales.data(),
                 .zeros = data_or_null(owned->zeros),
                 .minima = data_or_null(owned->minima),
                 .factors = {.block_scales = data_or_null(owned->block_scales),
                             .group_scales = data_or_null(owned->group_scales),
                             .block_minima = data_or_null(owned->block_minima),
                             .group_minima = data_or_null(owned->group_minima)},
                 .group_size = group_size,
                 .num_groups = num_groups};
  out.owner = std::move(owned);
  return out;
}

HostWeight to_host_weight(std::string_view name,
                          int64_t rows,
                          int64_t cols,
                          ScratchVector<float> values) {
  auto owned = std::make_shared<ScratchVector<float>>(std::move(values));
  HostWeight out{.name = std::string(name), .format = "dense", .rows = rows, .cols = cols};
  out.parts.push_back({.role = "weight",
                       .data = reinterpret_cast<const std::byte*>(owned->data()),
                       .dtype = DType::kF32,
                       .rows = rows,
                       .cols = cols,
                       .row_stride = cols});
  out.owner = std::move(owned);
  return out;
}

void decode_parallel(int64_t count,
                     int64_t elements_each,
                     const std::function<void(int64_t begin, int64_t end)>& fn) {
  const auto processors = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const int64_t num_threads = std::clamp<int64_t>(count * elements_each / kElementsPerThread, 1,
                                                  std::min(kMaxThreads, processors));
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&](int64_t thread) {
    try {
      fn(count * thread / num_threads, count * (thread + 1) / num_threads);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int64_t thread = 1; thread < num_threads; ++thread) threads.emplace_back(run, thread);
    run(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tgi
