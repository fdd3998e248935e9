// ReferenceDevice: adapters.
#include <memory>
#include <optional>
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
    std::optional<PlainMatrix> a;  // both, or there is no product
    std::optional<PlainMatrix> b;
    std::vector<float> gain;
    std::vector<float> offset;
    int64_t num_outputs;
  };
  std::vector<Part> parts;
};

double dot_row(const std::vector<double>& values, const PlainMatrix& w, int64_t row) {
  double sum = 0.0;
  for (int64_t k = 0; k < w.cols; ++k) sum += values[static_cast<size_t>(k)] * w.at(row, k);
  return sum;
}

// (outputs), of the short row between the two products before it is scaled.
std::vector<double> expanded(const ReferenceAdapter::Part& part,
                             const std::vector<double>& shrunk) {
  std::vector<float> scaled;
  for (const double value : shrunk) scaled.push_back(static_cast<float>(value * part.scale));
  const std::vector<double> short_row = part.b->rounded(scaled.data());
  std::vector<double> out;
  for (int64_t n = 0; n < part.num_outputs; ++n) out.push_back(dot_row(short_row, *part.b, n));
  return out;
}

// (outputs), of a row of x.
std::vector<double> product_of(const ReferenceAdapter::Part& part, const float* x) {
  if (!part.a) return std::vector<double>(static_cast<size_t>(part.num_outputs), 0.0);
  const std::vector<double> rounded = part.a->rounded(x);
  std::vector<double> shrunk;
  for (int64_t r = 0; r < part.a->rows; ++r) shrunk.push_back(dot_row(rounded, *part.a, r));
  return expanded(part, shrunk);
}

}  // namespace

int64_t ReferenceDevice::adapter_bytes(std::span<const LowRankPart> parts, DType /*dtype*/) const {
  int64_t total = 0;
  for (const LowRankPart& part : parts) {
    total += part.rank() * (part.a.cols + part.num_outputs()) * int64_t{sizeof(float)} +
             static_cast<int64_t>((part.gain.size() + part.offset.size()) * sizeof(float));
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
                          .a = std::nullopt,
                          .b = std::nullopt,
                          .gain = part.gain,
                          .offset = part.offset,
                          .num_outputs = part.num_outputs()});
    if (part.rank() == 0) continue;
    out->parts.back().a.emplace(std::span(&part.a, 1), storage);
    out->parts.back().b.emplace(part.b, storage);
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
  for (const ReferenceAdapter::Part& part : static_cast<const ReferenceAdapter*>(adapter)->parts) {
    if (part.site != site) continue;
    const std::vector<double> product = product_of(part, x);
    for (int64_t n = 0; n < part.num_outputs; ++n) {
      const auto i = static_cast<size_t>(n);
      float& value = out[part.first_output + n];
      double sum = static_cast<double>(value) + product[i];
      if (!part.gain.empty()) sum *= static_cast<double>(part.gain[i]);
      if (!part.offset.empty()) sum += static_cast<double>(part.offset[i]);
      value = static_cast<float>(sum);
    }
  }
}

void ReferenceDevice::add_low_rank_of_tokens(const LowRankLookupArgs& args) {
  for (int64_t row = 0; row < args.out.rows; ++row) {
    const auto i = static_cast<size_t>(row);
    const Adapter* const adapter = adapters_[static_cast<size_t>(slots_->adapter(slot_of_row_[i]))];
    if (adapter == nullptr) continue;
    const int32_t token = slots_->resolve(batch_->token_ids[i]);
    for (const auto& part : static_cast<const ReferenceAdapter*>(adapter)->parts) {
      if (part.site != args.site) continue;
      std::vector<double> shrunk;
      for (int64_t r = 0; r < part.a->cols; ++r) shrunk.push_back(part.a->at(token, r));
      const std::vector<double> product = expanded(part, shrunk);
      float* const out = mutable_row_of(args.out, row) + part.first_output;
      for (size_t n = 0; n < product.size(); ++n) {
        out[n] = static_cast<float>(static_cast<double>(out[n]) + product[n]);
      }
    }
  }
}

void ReferenceDevice::add_low_rank(const LowRankArgs& args) {
  for (int64_t row = 0; row < args.x.rows; ++row) {
    const auto i = static_cast<size_t>(row);
    const Adapter* const adapter =
        args.of_output_rows ? adapter_of_output(i)
                            : adapters_[static_cast<size_t>(slots_->adapter(slot_of_row_[i]))];
    add_low_rank_to_row(adapter, args.site, row_of(args.x, row), mutable_row_of(args.out, row));
  }
}

void ReferenceDevice::add_low_rank_to_experts(const ExpertLowRankArgs& args) {
  for (size_t i = 0; i < routes_.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    const Route& route = routes_[i];
    const int32_t slot = slot_of_row_[static_cast<size_t>(route.token)];
    add_low_rank_to_row(
        adapters_[static_cast<size_t>(slots_->adapter(slot))], args.first_site + route.expert,
        row_of(args.x, args.x_is_routed ? row : route.token), mutable_row_of(args.out, row));
  }
}

void ReferenceDevice::add_low_rank_to_heads(const HeadLowRankArgs& args) {
  for (int32_t head = 0; head < args.num_heads; ++head) {
    add_low_rank({.site = args.first_site + head,
                  .x = args.x.columns(head * args.x_step, args.x_cols),
                  .out = args.out.columns(head * args.out_step, args.out_cols)});
  }
}

const Adapter* ReferenceDevice::adapter_of_output(size_t index) const {
  const size_t num_samples = rows_.sample_rows.size();
  const int32_t slot =
      index < num_samples
          ? rows_.sample_rows[index].slot
          : slot_of_row_[static_cast<size_t>(rows_.score_rows[index - num_samples].row)];
  return adapters_[static_cast<size_t>(slots_->adapter(slot))];
}

}  // namespace tgi
