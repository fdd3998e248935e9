// ReferenceDevice: adapters.
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/cpu/plain_matrix.h"
#include "engine/cpu/reference_device.h"
#include "engine/cpu/reference_values.h"

namespace tgi {
namespace {

class ReferenceAdapter final : public Adapter {
 public:
  struct Part {
    int32_t site;
    int64_t first_output;
    double scale;
    PlainMatrix a;
    PlainMatrix b;
  };
  std::vector<Part> parts;
};

}  // namespace

int64_t ReferenceDevice::adapter_bytes(std::span<const LowRankPart> parts, DType /*dtype*/) const {
  int64_t total = 0;
  for (const LowRankPart& part : parts) {
    total += part.a.rows * (part.a.cols + part.num_outputs()) * int64_t{sizeof(float)};
  }
  return total;
}

std::unique_ptr<Adapter> ReferenceDevice::make_adapter(std::span<const LowRankPart> parts,
                                                       DType dtype) {
  auto out = std::make_unique<ReferenceAdapter>();
  const MatrixStorage storage(dtype);
  for (const LowRankPart& part : parts) {
    out->parts.push_back({.site = part.site,
                          .first_output = part.first_output,
                          .scale = static_cast<double>(part.scale),
                          .a = PlainMatrix(std::span(&part.a, 1), storage),
                          .b = PlainMatrix(part.b, storage)});
  }
  out->size_bytes = adapter_bytes(parts, dtype);
  return out;
}

void ReferenceDevice::set_adapter(int32_t index, const Adapter* adapter) {
  TGI_CHECK(index >= 1 && static_cast<size_t>(index) < adapters_.size());
  adapters_[static_cast<size_t>(index)] = adapter;
}

void ReferenceDevice::add_low_rank_to_row(const Adapter* adapter,
                                          int32_t site,
                                          const float* x,
                                          float* out) const {
  if (adapter == nullptr) return;
  const auto dot = [](const std::vector<double>& values, const PlainMatrix& w, int64_t row) {
    double sum = 0.0;
    for (int64_t k = 0; k < w.cols; ++k) sum += values[static_cast<size_t>(k)] * w.at(row, k);
    return sum;
  };
  for (const ReferenceAdapter::Part& part : static_cast<const ReferenceAdapter*>(adapter)->parts) {
    if (part.site != site) continue;
    const std::vector<double> rounded = part.a.rounded(x);
    std::vector<float> shrunk;
    for (int64_t r = 0; r < part.a.rows; ++r) {
      shrunk.push_back(static_cast<float>(dot(rounded, part.a, r) * part.scale));
    }
    const std::vector<double> short_row = part.b.rounded(shrunk.data());
    for (int64_t n = 0; n < part.b.rows; ++n) {
      float& value = out[part.first_output + n];
      value = static_cast<float>(static_cast<double>(value) + dot(short_row, part.b, n));
    }
  }
}

void ReferenceDevice::add_low_rank(const LowRankArgs& args) {
  for (int64_t row = 0; row < args.x.rows; ++row) {
    const int32_t slot = slot_of_row_[static_cast<size_t>(row)];
    add_low_rank_to_row(adapters_[static_cast<size_t>(slots_->adapter(slot))], args.site,
                        row_of(args.x, row), mutable_row_of(args.out, row));
  }
}

const Adapter* ReferenceDevice::adapter_of_logits(size_t index) const {
  const size_t num_samples = rows_.sample_rows.size();
  const int32_t slot =
      index < num_samples
          ? rows_.sample_rows[index].slot
          : slot_of_row_[static_cast<size_t>(rows_.score_rows[index - num_samples].row)];
  return adapters_[static_cast<size_t>(slots_->adapter(slot))];
}

}  // namespace tgi
