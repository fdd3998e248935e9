// An adapter of the CPU device, and the rows of a step that use it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/device/backend.h"

namespace tgi {

class CpuAdapter final : public Adapter {
 public:
  // Throws as PanelMatrix does, and kUnsupported for ranks above kMaxAdapterRank. Uses no threads
  // but the caller's.
  CpuAdapter(std::span<const LowRankPart> parts, DType dtype, const KernelTable& kernels);
  static int64_t bytes(std::span<const LowRankPart> parts, DType dtype, const KernelTable& kernels);

  // One of those that read the same x: its b is (outputs, rank).
  struct Part {
    std::unique_ptr<PanelMatrix> b;  // null: there is no product
    int64_t first_rank = 0;          // where its rows of the stacked a begin
    int64_t first_output = 0;
    int64_t num_outputs = 0;
    float scale = 1.0F;         // of the short row, before b
    std::vector<float> gain;    // empty: 1
    std::vector<float> offset;  // empty: 0
  };
  // What is changed of one linear.
  struct Product {
    std::unique_ptr<PanelMatrix> a;  // those of all parts, one below the other; null: none has any
    std::unique_ptr<PanelMatrix> table;  // of a lookup, in place of a (tokens, rank)
    std::vector<Part> parts;
  };

  // Null: nothing.
  const Product* at(int32_t site) const {
    const auto index = static_cast<size_t>(site);
    return index < by_site_.size() ? by_site_[index].get() : nullptr;
  }

 private:
  Buffer memory_;  // of all matrices, so that they share its large pages
  std::vector<std::unique_ptr<Product>> by_site_;
};

// Rows of a step, of its logits or of its experts, by adapter and, of experts, by expert; those
// that have none are left out.
class AdapterRows {
 public:
  struct Segment {
    const CpuAdapter* adapter = nullptr;
    int32_t expert = 0;
    int64_t first = 0;  // of the sorted rows
    int64_t count = 0;
  };

  // So that a step with up to `max_rows` rows takes no memory.
  void reserve(int64_t max_rows);
  // Forgets what was added.
  void begin();
  // Adds `count` rows from `first_row` on.
  void add(const CpuAdapter* adapter, int64_t first_row, int64_t count, int32_t expert = 0);
  // Sorts what was added.
  void finish();

  std::span<const Segment> segments() const { return segments_; }
  int64_t row(int64_t sorted) const { return rows_[static_cast<size_t>(sorted)]; }

 private:
  struct Run {
    const CpuAdapter* adapter;
    int32_t expert;
    int64_t first_row;
    int64_t count;
  };
  std::vector<Run> runs_;
  std::vector<Segment> segments_;
  std::vector<int64_t> rows_;
};

// Of one thread, for a task's rows.
inline constexpr int64_t kLowRankRows = 32;      // of a task
inline constexpr int64_t kLowRankOutputs = 256;  // that are computed at a time
struct LowRankScratch {
  LowRankScratch();
  static int64_t bytes();
  Buffer shrunk;    // (kLowRankRows, kMaxStackedRank), f32
  Buffer prepared;  // such a row as b's kernel wants it
  Buffer product;   // (kLowRankRows, kLowRankOutputs), f32
};

}  // namespace tgi
