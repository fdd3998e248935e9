#include "engine/lora/adapter_parts.h"

#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/model/rank_view.h"
#include "engine/weights/formats/dense.h"

namespace tgi {
namespace {

// Ranges that go on where the one before ends are one.
std::vector<Range> joined(const std::vector<Range>& ranges) {
  std::vector<Range> out;
  for (const Range& range : ranges) {
    if (!out.empty() && out.back().begin + out.back().count == range.begin) {
      out.back().count += range.count;
    } else {
      out.push_back(range);
    }
  }
  return out;
}

class Cutter {
 public:
  Cutter(const AdapterFiles& adapter, const LoadedConfig& model, const LoadWeightsOptions& options)
      : tensors_(*adapter.tensors), model_(model), rank_(options.rank), view_(model, options) {}

  // Nothing where this rank changes nothing: biases of a linear that is cut by columns are one
  // rank's.
  std::optional<LowRankPart> cut(const AdapterLinear& linear, const SitePart& place) const {
    LowRankPart part;
    if (place.role == Role::kTokenEmbedding) return lookup(linear);
    if (place.layer == SitePart::kNone) {
      part.site = head_site(model_.config.num_layers);
      fill(linear, whole(linear), {}, part);
      return part;
    }
    const TensorEntry* entry = view_.table().find(place.role, place.layer);
    TGI_CHECK(entry != nullptr);
    part.site = site_of(place.layer, place.linear);
    part.first_output = first_output(place);
    const bool has_offset = entry->spec->split != Split::kColumns || rank_ == 0;
    fill(linear,
         {.rows = view_.row_ranges(*entry),
          .cols = view_.col_range(*entry),
          .has_offset = has_offset},
         entry->spec->turns, part);
    if (part.rank() == 0 && part.offset.empty()) return std::nullopt;
    return part;
  }

 private:
  // Where the part's rows begin among those that the linear is stacked from.
  int64_t first_output(const SitePart& place) const {
    int64_t first = 0;
    for (const TensorEntry* entry : view_.entries(linear_parts(place.linear), place.layer)) {
      if (entry->spec->role == place.role) break;
      first += view_.num_rows(*entry);
    }
    return first;
  }

  // All of it, on each rank; in the size that embeddings have after they were multiplied.
  LowRankPart lookup(const AdapterLinear& linear) const {
    const int64_t num_tokens = linear.a->shape[1];
    const int64_t width = linear.b->shape[0];
    const MatrixSpec a{.name = linear.a->name,
                       .prefix = {},
                       .rows = num_tokens,
                       .cols = linear.rank,
                       .transposed = true};
    const MatrixSpec b{.name = linear.b->name, .prefix = {}, .rows = width, .cols = linear.rank};
    const Range ranks{.begin = 0, .count = linear.rank};
    return {.site = embedding_site(model_.config.num_layers),
            .is_lookup = true,
            .scale = linear.scale * model_.config.embedding_multiplier,
            .a = slice_dense(tensors_, a, *linear.a, {.begin = 0, .count = num_tokens}, ranks),
            .b = {slice_dense(tensors_, b, *linear.b, {.begin = 0, .count = width}, ranks)}};
  }

  // What this rank has of a linear.
  struct Share {
    std::vector<Range> rows;
    Range cols;
    bool has_offset = true;
  };

  static Share whole(const AdapterLinear& linear) {
    const bool has_product = linear.a != nullptr;
    const auto outputs = has_product ? linear.b->shape[0] : std::ssize(linear.offset);
    return {.rows = whole_range(outputs),
            .cols = {.begin = 0, .count = has_product ? linear.a->shape[1] : 0}};
  }

  void fill(const AdapterLinear& linear, const Share& share, Turns turns, LowRankPart& part) const {
    if (linear.a != nullptr) add_product(linear, share, turns, part);
    part.gain = picked(linear.gain, share.rows, turns);
    if (share.has_offset) part.offset = picked(linear.offset, share.rows, turns);
  }

  void add_product(const AdapterLinear& linear,
                   const Share& share,
                   Turns turns,
                   LowRankPart& part) const {
    const MatrixSpec a{
        .name = linear.a->name, .prefix = {}, .rows = linear.rank, .cols = linear.a->shape[1]};
    const MatrixSpec b{.name = linear.b->name,
                       .prefix = {},
                       .rows = linear.b->shape[0] / turns.count,
                       .cols = linear.rank,
                       .turns = turns};
    const Range all = whole_range(linear.rank).front();
    part.scale = linear.scale;
    part.a = slice_dense(tensors_, a, *linear.a, all, share.cols);
    for (const Range& range : joined(share.rows)) {
      part.b.push_back(slice_dense(tensors_, b, *linear.b, range, all));
    }
  }

  static std::vector<float> picked(const std::vector<float>& values,
                                   const std::vector<Range>& rows,
                                   Turns turns) {
    std::vector<float> out;
    if (values.empty()) return out;
    for (const Range& range : rows) {
      for (int64_t i = range.begin; i < range.begin + range.count; ++i) {
        out.push_back(values[static_cast<size_t>(i * turns.count + turns.index)]);
      }
    }
    return out;
  }

  const Checkpoint& tensors_;
  const LoadedConfig& model_;
  const int rank_;
  const RankView view_;
};

}  // namespace

std::vector<LowRankPart> adapter_parts(const AdapterFiles& adapter,
                                       const LoadedConfig& model,
                                       const LoadWeightsOptions& options) {
  const Cutter cutter(adapter, model, options);
  std::vector<LowRankPart> parts;
  for (const AdapterLinear& linear : adapter.linears) {
    for (const SitePart& place : linear.parts) {
      if (auto part = cutter.cut(linear, place)) parts.push_back(std::move(*part));
    }
  }
  return parts;
}

}  // namespace tgi
