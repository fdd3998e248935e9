// Matrices as GGUF files store them: in blocks of ggml's types, each matrix in its own. The config
// that stands for such a file (engine/gguf) says which:
//   "quantization_config": {"quant_method": "gguf", "types": {"model.layers.0...": "Q4_K", ...}}
// where {expert} stands for the number of an expert, and NAME[i] for the i-th of matrices whose
// rows alternate elsewhere. Types whose blocks are integers times a scale go to the device as they
// are, all others as their values.
//
// Source: engine/weights/ggml/ggml_types.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/weights/formats/gguf_latent.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"
#include "engine/weights/ggml/ggml_types.h"

namespace tgi {
namespace gguf_format {
namespace {

bool claims(const JsonReader& config) {
  if (quant_method_of(config) != "gguf") return false;
  quantization_of(config).refuse_unknown({"quant_method", "types"});
  return true;
}

// "a.up.weight" -> "a.up(1).weight"
std::string marked(std::string name, const std::string& mark) {
  constexpr std::string_view kSuffix = ".weight";
  return name.insert(name.size() - (name.ends_with(kSuffix) ? kSuffix.size() : 0), mark);
}

std::string name_of(const MatrixSpec& spec) {
  if (spec.turns.count == 1) return spec.name;
  return marked(spec.name, fmt::format("[{}]", spec.turns.index));
}

std::string name_of_part(const MatrixSpec& spec, size_t part) {
  return marked(name_of(spec), fmt::format("({})", part));
}

// "a.0.experts.7.up.weight" -> "a.0.experts.{expert}.up.weight"
std::string without_expert(const std::string& name) {
  size_t end = name.size();
  while (end != std::string::npos && end > 0) {
    const size_t dot = name.rfind('.', end - 1);
    const size_t begin = dot == std::string::npos ? 0 : dot + 1;
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    const bool is_number =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (is_number) return std::string(name).replace(begin, end - begin, "{expert}");
    end = dot;
  }
  return name;
}

// "": no such matrix.
std::string_view type_of_name(const Json& config, const std::string& name) {
  const Json& types = config.at("quantization_config").at("types");
  auto it = types.find(name);
  if (it == types.end()) it = types.find(without_expert(name));
  if (it == types.end()) return {};
  return it->get_ref<const std::string&>();
}

constexpr std::string_view kSeveralTypes = "several types";

// Of the matrix, or of all of its parts.
std::string_view type_of(const Json& config, const MatrixSpec& spec) {
  std::string_view type = type_of_name(config, name_of(spec));
  if (!type.empty()) return type;
  type = type_of_name(config, name_of_part(spec, 0));
  for (size_t part = 1; !type.empty(); ++part) {
    const std::string_view other = type_of_name(config, name_of_part(spec, part));
    if (other.empty()) break;
    if (other != type) return kSeveralTypes;
  }
  return type;
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  const std::string_view type = type_of(config, spec);
  const bool is_plain = type.empty() || type == "F32" || type == "F16" || type == "BF16";
  if (is_plain) return {};
  StoredForm form{.quantised_as = fmt::format("gguf, {}", type)};
  const GgmlType* const known = find_ggml_type(type);
  if (known == nullptr || !known->is_quantised()) return form;
  form.is_mxfp4 = type == "MXFP4";
  form.bits = form.is_mxfp4 ? 4 : known->integers.bits;
  form.is_iq4 = known->integers.is_iq4;
  form.group_size = known->integers.group_size;
  form.minima = known->integers.has_minima;
  form.scales = known->integers.scales;
  return form;
}

int64_t num_rows(const StoredTensor& tensor) {
  return tensor.shape.size() < 2 ? 0 : tensor.shape[tensor.shape.size() - 2];
}

// The tensor, or those whose rows lie one below the other in it elsewhere.
std::vector<const StoredTensor*> find_parts(const Checkpoint& checkpoint, const MatrixSpec& spec) {
  if (const auto* whole = find_by_any_name(checkpoint, name_of(spec), spec.prefix)) return {whole};
  std::vector<const StoredTensor*> parts;
  while (const auto* part =
             find_by_any_name(checkpoint, name_of_part(spec, parts.size()), spec.prefix)) {
    parts.push_back(part);
  }
  return parts;
}

// Rows are outputs always, and the matrices of a stack lie one below the other.
std::vector<const StoredTensor*> collect(const Json& /*config*/,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const std::vector<const StoredTensor*> parts = find_parts(checkpoint, spec);
  if (parts.empty()) {
    auto latent = collect_latent_up(checkpoint, spec, marked(spec.name, "(k)"),
                                    marked(spec.name, "(v)"), problems);
    if (latent.empty()) problems.missing.push_back(name_of(spec));
    return latent;
  }
  int64_t first_row = 0;
  for (const StoredTensor* tensor : parts) {
    const bool is_last = tensor == parts.back();
    std::vector<int64_t> expected = {is_last ? spec.rows - first_row : num_rows(*tensor),
                                     spec.cols};
    if (spec.stack.count > 0) expected.insert(expected.begin(), spec.stack.count);
    if (tensor->shape != expected) {
      problems.misshapen.push_back(fmt::format("{}: expected {}, got {}", tensor->name,
                                               shape_text(expected), shape_text(tensor->shape)));
    }
    first_row += num_rows(*tensor);
    const GgmlType* type = find_ggml_type(tensor->dtype_name);
    if (type == nullptr || type->decode == nullptr) {
      problems.unsupported.push_back(
          fmt::format("{}: element type {}", tensor->name, tensor->dtype_name));
    }
  }
  return parts;
}

// Rows of one tensor, of a stack those of one matrix.
class BlockRows {
 public:
  BlockRows(const Checkpoint& checkpoint, const MatrixSpec& spec, const StoredTensor& tensor)
      : type_(find_ggml_type(tensor.dtype_name)),
        count_(num_rows(tensor)),
        order_(tensor.row_order),
        row_bytes_(spec.cols / type_->block_size * type_->block_bytes),
        data_(checkpoint.bytes(tensor).data() + spec.stack.index * count_ * row_bytes_) {}

  const GgmlType& type() const { return *type_; }
  int64_t count() const { return count_; }
  const std::byte* blocks(int64_t row, int64_t first_block) const {
    const int64_t stored = order_.empty() ? row : order_[static_cast<size_t>(row)];
    return data_ + stored * row_bytes_ + first_block * type_->block_bytes;
  }

 private:
  const GgmlType* type_;
  int64_t count_;
  std::span<const int32_t> order_;
  int64_t row_bytes_;
  const std::byte* data_;
};

struct PartRow {
  const BlockRows& rows;
  int64_t row;  // of the part
};

// Rows of all parts.
class MatrixRows {
 public:
  MatrixRows(const Checkpoint& checkpoint,
             const MatrixSpec& spec,
             std::span<const StoredTensor* const> tensors) {
    for (const StoredTensor* tensor : tensors) parts_.emplace_back(checkpoint, spec, *tensor);
  }

  bool is_one() const { return parts_.size() == 1; }
  const BlockRows& first() const { return parts_.front(); }
  PartRow at(int64_t row) const {
    size_t part = 0;
    for (; row >= parts_[part].count(); ++part) row -= parts_[part].count();
    return {parts_[part], row};
  }

 private:
  std::vector<BlockRows> parts_;
};

// Blocks that columns lie in.
struct Blocks {
  int64_t first = 0;
  int64_t count = 0;
  int64_t skipped = 0;  // columns of the first one

  Blocks(Range cols, int64_t block_size)
      : first(cols.begin / block_size),
        count((cols.begin + cols.count + block_size - 1) / block_size - first),
        skipped(cols.begin - first * block_size) {}
};

void decode_row(const PartRow& row, Range cols, float* to) {
  const GgmlType& type = row.rows.type();
  const Blocks blocks(cols, type.block_size);
  std::vector<float> values(static_cast<size_t>(blocks.count * type.block_size));
  type.decode(row.rows.blocks(row.row, blocks.first), blocks.count, values.data());
  std::copy_n(values.begin() + blocks.skipped, cols.count, to);
}

HostWeight decoded(const MatrixRows& stored, const MatrixSpec& spec, Range rows, Range cols) {
  ScratchVector<float> values(static_cast<size_t>(rows.count * cols.count));
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      decode_row(stored.at(rows.begin + row), cols, values.data() + row * cols.count);
    }
  });
  return to_host_weight(spec.name, rows.count, cols.count, std::move(values));
}

void check_finite(std::span<const float> scales, const MatrixSpec& spec, int64_t row) {
  // A loop without an end ahead of time, which becomes vector instructions.
  bool all_finite = true;
  for (const float scale : scales) all_finite &= std::isfinite(scale);
  if (all_finite) return;
  throw Error(
      Code::kInvalidArgument,
      fmt::format(
          "tensor {}: row {} has a scale or a minimum that is no number; is the file damaged?",
          spec.name, row));
}

// Where the factors of a matrix's scales go. REQUIRES: the columns begin with a block.
class FactorsOut {
 public:
  FactorsOut(const GgmlType& type, const Blocks& blocks, DecodedBlock& out)
      : reader_(type.integers),
        groups_of_block_(type.block_size / type.integers.group_size),
        num_blocks_(blocks.count),
        out_(out) {
    out.block_scales.resize(static_cast<size_t>(out.rows * num_blocks_));
    out.group_scales.resize(out.scales.size());
    if (!reader_.has_minima) return;
    out.block_minima.resize(out.block_scales.size());
    out.group_minima.resize(out.scales.size());
  }

  void read(const std::byte* bytes, int64_t row, int64_t block) const {
    GgmlFactors factors;
    reader_.read_factors(bytes, factors);
    const auto at = static_cast<size_t>(row * num_blocks_ + block);
    const int64_t group = row * out_.num_groups + block * groups_of_block_;
    const int64_t count = std::min(groups_of_block_, (row + 1) * out_.num_groups - group);
    out_.block_scales[at] = factors.scale;
    std::copy_n(factors.scales, count, out_.group_scales.begin() + group);
    if (!reader_.has_minima) return;
    out_.block_minima[at] = factors.minimum;
    std::copy_n(factors.minima, count, out_.group_minima.begin() + group);
  }

 private:
  const GgmlIntegers& reader_;
  int64_t groups_of_block_;
  int64_t num_blocks_;
  DecodedBlock& out_;
};

// REQUIRES: all parts are of one type.
HostWeight integers(const MatrixRows& stored,
                    const MatrixSpec& spec,
                    Range rows,
                    Range cols,
                    const MatrixStorage& storage) {
  const GgmlType& type = stored.first().type();
  const GgmlIntegers& reader = type.integers;
  const int64_t groups_of_block = type.block_size / reader.group_size;
  const Blocks blocks(cols, type.block_size);
  DecodedBlock out(spec.name, rows, cols);
  const int64_t first_group = out.cut_groups(cols, reader.group_size, false);
  if (reader.has_minima) out.minima.resize(out.scales.size());
  std::optional<FactorsOut> factors;
  if (storage.scales == ScaleForm::kFactors) factors.emplace(type, blocks, out);
  const int64_t skipped_groups = first_group - blocks.first * groups_of_block;
  const int64_t num_codes = blocks.count * type.block_size;
  const int64_t num_scales = blocks.count * groups_of_block;
  const bool is_whole = num_codes == cols.count && num_scales == out.num_groups;
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    // Of a row of which only a part is wanted.
    std::vector<int8_t> all_codes(static_cast<size_t>(is_whole ? 0 : num_codes));
    std::vector<float> all_scales(static_cast<size_t>(is_whole ? 0 : num_scales));
    std::vector<float> all_minima(
        static_cast<size_t>(is_whole && reader.has_minima ? 0 : num_scales));
    for (int64_t row = begin; row < end; ++row) {
      const PartRow from = stored.at(rows.begin + row);
      const std::byte* block = from.rows.blocks(from.row, blocks.first);
      int8_t* const row_codes = out.codes.data() + row * cols.count;
      float* const row_scales = out.scales.data() + row * out.num_groups;
      float* const row_minima =
          reader.has_minima ? out.minima.data() + row * out.num_groups : all_minima.data();
      int8_t* const codes = is_whole ? row_codes : all_codes.data();
      float* const scales = is_whole ? row_scales : all_scales.data();
      float* const minima = is_whole ? row_minima : all_minima.data();
      for (int64_t i = 0; i < blocks.count; ++i, block += type.block_bytes) {
        reader.read(block, codes + i * type.block_size, scales + i * groups_of_block,
                    minima + i * groups_of_block);
        if (factors) factors->read(block, row, i);
      }
      const auto count = static_cast<size_t>(num_scales);
      check_finite({scales, count}, spec, rows.begin + row);
      if (reader.has_minima) check_finite({minima, count}, spec, rows.begin + row);
      if (is_whole) continue;
      std::copy_n(codes + blocks.skipped, cols.count, row_codes);
      std::copy_n(scales + skipped_groups, out.num_groups, row_scales);
      if (reader.has_minima) std::copy_n(minima + skipped_groups, out.num_groups, row_minima);
    }
  });
  return to_host_weight(std::move(out), storage);
}

HostWeight slice(const Json& /*config*/,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  if (is_latent_up(tensors)) return slice_latent_up(checkpoint, spec, tensors, rows, cols);
  const StoredTensor& tensor = *tensors.front();
  const MatrixRows stored(checkpoint, spec, tensors);
  if (storage.stored) return integers(stored, spec, rows, cols, storage);
  const bool is_in_place = tensor.dtype && tensor.row_order.empty() && stored.is_one();
  if (!is_in_place) return decoded(stored, spec, rows, cols);
  const auto element_size = static_cast<int64_t>(dtype_size(*tensor.dtype));
  return {.name = tensor.name,
          .format = "dense",
          .rows = rows.count,
          .cols = cols.count,
          .parts = {{.role = "weight",
                     .data = stored.first().blocks(rows.begin, 0) + cols.begin * element_size,
                     .dtype = *tensor.dtype,
                     .rows = rows.count,
                     .cols = cols.count,
                     .row_stride = spec.cols}}};
}

}  // namespace
}  // namespace gguf_format

template <>
const WeightFormat& weight_format<"gguf">() {
  static constexpr WeightFormat kThis = {
      .name = "gguf",
      .claims = gguf_format::claims,
      .form_of = gguf_format::form_of,
      .collect = gguf_format::collect,
      .slice = gguf_format::slice,
  };
  return kThis;
}

}  // namespace tgi
