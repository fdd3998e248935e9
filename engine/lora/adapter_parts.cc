#include "engine/lora/adapter_parts.h"

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
      : tensors_(*adapter.tensors), model_(model), view_(model, options) {}

  LowRankPart cut(const AdapterLinear& linear, const SitePart& place) const {
    if (place.layer == SitePart::kHead) {
      return make(linear, head_site(model_.config.num_layers), 0, whole_range(linear.b->shape[0]),
                  whole_range(linear.a->shape[1]).front(), {});
    }
    const TensorEntry* entry = view_.table().find(place.role, place.layer);
    TGI_CHECK(entry != nullptr);
    return make(linear, site_of(place.layer, place.linear), first_output(place),
                view_.row_ranges(*entry), view_.col_range(*entry), entry->spec->turns);
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

  LowRankPart make(const AdapterLinear& linear,
                   int32_t site,
                   int64_t first_output,
                   const std::vector<Range>& rows,
                   Range cols,
                   Turns turns) const {
    const MatrixSpec a{
        .name = linear.a->name, .prefix = {}, .rows = linear.rank, .cols = linear.a->shape[1]};
    const MatrixSpec b{.name = linear.b->name,
                       .prefix = {},
                       .rows = linear.b->shape[0] / turns.count,
                       .cols = linear.rank,
                       .turns = turns};
    const Range all = whole_range(linear.rank).front();
    LowRankPart part{.site = site,
                     .first_output = first_output,
                     .scale = linear.scale,
                     .a = slice_dense(tensors_, a, *linear.a, all, cols),
                     .b = {}};
    for (const Range& range : joined(rows)) {
      part.b.push_back(slice_dense(tensors_, b, *linear.b, range, all));
    }
    return part;
  }

  const Checkpoint& tensors_;
  const LoadedConfig& model_;
  const RankView view_;
};

}  // namespace

std::vector<LowRankPart> adapter_parts(const AdapterFiles& adapter,
                                       const LoadedConfig& model,
                                       const LoadWeightsOptions& options) {
  const Cutter cutter(adapter, model, options);
  std::vector<LowRankPart> parts;
  for (const AdapterLinear& linear : adapter.linears) {
    for (const SitePart& place : linear.parts) parts.push_back(cutter.cut(linear, place));
  }
  return parts;
}

}  // namespace tgi
