// CpuDevice: entries that stand for several tokens. Plain loops, so that bits are the same on every
// instruction set.
#include <cmath>
#include <limits>
#include <vector>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/cpu_device_rows.h"
#include "engine/cpu/rope_table.h"

namespace tgi {
namespace {

// The mean of some numbers weighed by the softmax of their gates, column by column, of which one
// row comes after the other.
class GatedMean {
 public:
  explicit GatedMean(int64_t cols)
      : highest_(static_cast<size_t>(cols), -std::numeric_limits<float>::infinity()),
        totals_(static_cast<size_t>(cols), 0.0F),
        sums_(static_cast<size_t>(cols), 0.0F) {}

  void add(const float* numbers, const float* gates, const float* gate_bias) {
    for (size_t d = 0; d < sums_.size(); ++d) {
      const float gate = gates[d] + gate_bias[d];
      const float highest = std::max(highest_[d], gate);
      const float kept = std::exp(highest_[d] - highest);
      const float weight = std::exp(gate - highest);
      totals_[d] = totals_[d] * kept + weight;
      sums_[d] = sums_[d] * kept + weight * numbers[d];
      highest_[d] = highest;
    }
  }

  std::vector<float>& finish() {
    for (size_t d = 0; d < sums_.size(); ++d) sums_[d] /= totals_[d];
    return sums_;
  }

 private:
  std::vector<float> highest_;
  std::vector<float> totals_;
  std::vector<float> sums_;
};

}  // namespace

void CpuDevice::compress(const CompressArgs& args) {
  std::vector<int64_t> last_of_runs;
  for (int64_t token = 0; token < args.x.rows; ++token) {
    const int64_t position = token_places_[static_cast<size_t>(token)].context_index;
    if ((position + 1) % args.tokens_per_entry == 0) last_of_runs.push_back(token);
  }
  const int32_t block_size = kv_->layout().block_size;
  for_rows(args.x.rows, args.x.cols, [&](int64_t token) {
    const TokenPlace place = token_places_[static_cast<size_t>(token)];
    const int32_t* const blocks =
        slots_->block_table(batch_->slots[static_cast<size_t>(place.sequence)], args.rows.group);
    kv_->store(args.rows, 0, blocks[place.context_index / block_size],
               place.context_index % block_size, row_of(args.x, token), nullptr);
  });
  const int64_t tokens_of_entry = (args.overlaps ? 2 : 1) * int64_t{args.tokens_per_entry};
  for_rows(std::ssize(last_of_runs), tokens_of_entry * args.head_dim * 32,
           [&](int64_t i) { make_entry(args, last_of_runs[static_cast<size_t>(i)]); });
}

// Of the run that the token ends.
void CpuDevice::make_entry(const CompressArgs& args, int64_t token) {
  const TokenPlace place = token_places_[static_cast<size_t>(token)];
  const int32_t slot = batch_->slots[static_cast<size_t>(place.sequence)];
  const int32_t* const blocks = slots_->block_table(slot, args.rows.group);
  const int32_t block_size = kv_->layout().block_size;
  const int64_t values = args.row_values();
  const int64_t run = args.tokens_per_entry;
  const int64_t begin = place.context_index + 1 - run;
  std::vector<float> row(static_cast<size_t>(2 * values));
  GatedMean mean(args.head_dim);
  const auto add_run = [&](int64_t first, int64_t column) {
    for (int64_t i = 0; first >= 0 && i < run; ++i) {
      const int64_t position = first + i;
      kv_->load_key(args.rows, 0, blocks[position / block_size],
                    static_cast<int32_t>(position % block_size), row.data());
      mean.add(row.data() + column, row.data() + values + column,
               args.gate_bias->as<const float>() + i * values + column);
    }
  };
  if (args.overlaps) add_run(begin - run, 0);
  add_run(begin, args.overlaps ? args.head_dim : 0);
  std::vector<float>& entry = mean.finish();
  kernels_.rms_norm({.eps = args.norm_eps,
                     .weight = args.norm->as<const float>(),
                     .bias = nullptr,
                     .x = entry.data(),
                     .out = entry.data(),
                     .cols = args.head_dim});
  if (args.rope >= 0) {
    const RopeSpec& rope = ropes_[static_cast<size_t>(args.rope)].spec;
    std::vector<float> cos_sin(static_cast<size_t>(rope.rotary_dim));
    const auto first_position =
        static_cast<int32_t>(batch_->positions[static_cast<size_t>(token)] - (run - 1));
    fill_cos_sin(rope, first_position, cos_sin.data());
    const auto rotate = rope.interleaved ? kernels_.rotate_interleaved : kernels_.rotate_half;
    rotate(entry.data() + args.first_rotated, cos_sin.data(), rope.rotary_dim);
  }
  const int32_t* const entry_blocks = slots_->block_table(slot, args.entries.group);
  kv_->store(args.entries, 0, entry_blocks[place.context_index / block_size],
             place.context_index % block_size, entry.data(), nullptr);
}

}  // namespace tgi
