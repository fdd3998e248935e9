#include "engine/lora/adapter_parts.h"

#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/model/adapter_sites.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/rank_view.h"

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
    part.site = site_number(place);
    if (place.role == Role::kLmHead) {
      fill(linear, whole(linear), {}, part);
      return part;
    }
    const TensorEntry* entry = view_.table().find(place.role, place.layer, place.index());
    TGI_CHECK(entry != nullptr);
    if (place.layer != SitePart::kNone) part.first_output = first_output(place);
    const bool has_offset = entry->spec->split != Split::kColumns || rank_ == 0;
    Share share{.rows = view_.row_ranges(*entry),
                .cols = view_.col_range(*entry),
                .has_offset = has_offset};
    if (place.rows.count > 0) part.first_output += take_rows(place.rows, share);
    fill(linear, share, entry->spec->turns, part);
    if (part.rank() == 0 && part.offset.empty()) return std::nullopt;
    return part;
  }

  // Of what latents become keys and values by: both matrices of each of the rank's heads.
  void cut_latent_up(const AdapterLinear& linear,
                     const SitePart& place,
                     std::vector<LowRankPart>& parts) const {
    const ModelConfig& config = model_.config;
    const int32_t kept = latent_kept_dim(config, place.layer);
    const int32_t value_dim = config.latent.value_dim;
    const TensorEntry& entry = *view_.table().find(place.role, place.layer);
    const Range mine = view_.row_ranges(entry).front();
    const Range all = whole_range(linear.rank).front();
    const Range of_latent = whole_range(linear.a.cols).front();
    int32_t head = 0;
    for (int64_t row = mine.begin; row < mine.begin + mine.count; row += kept + value_dim) {
      const Range keys{.begin = row, .count = kept};
      const Range values{.begin = row + kept, .count = value_dim};
      parts.push_back({.site = latent_site(config, place.layer, false, head),
                       .scale = linear.scale,
                       .a = slice_factor(tensors_, linear.b.transposed(), all, keys),
                       .b = {slice_factor(tensors_, linear.a.transposed(), of_latent, all)}});
      parts.push_back({.site = latent_site(config, place.layer, true, head),
                       .scale = linear.scale,
                       .a = slice_factor(tensors_, linear.a, all, of_latent),
                       .b = {slice_factor(tensors_, linear.b, values, all)}});
      ++head;
    }
  }

 private:
  int32_t site_number(const SitePart& place) const {
    const ModelConfig& config = model_.config;
    if (place.role == Role::kLmHead) return head_site(config.num_layers);
    if (place.expert != SitePart::kNone) {
      return expert_site(config, place.layer, place.linear, place.expert);
    }
    if (place.stream != SitePart::kNone) return stream_site(config, place.linear, place.stream);
    if (place.layer == SitePart::kNone) return model_site(config.num_layers, place.linear);
    return site_of(place.layer, place.linear);
  }

  // Where the part's rows begin among those that the linear is stacked from.
  int64_t first_output(const SitePart& place) const {
    int64_t first = 0;
    for (const TensorEntry* entry : view_.entries(linear_parts(place), place.layer)) {
      if (entry->spec->role == place.role) break;
      first += view_.num_rows(*entry);
    }
    return first;
  }

  // What this rank has of a linear.
  struct Share {
    std::vector<Range> rows;
    Range cols;
    bool has_offset = true;
  };

  // Leaves those of the tensor's rows that are the module's, as rows of the module, and gives how
  // many there are before them.
  static int64_t take_rows(Range module, Share& share) {
    const std::vector<Range> all = std::exchange(share.rows, {});
    int64_t before = 0;
    int64_t first = 0;
    for (const Range& range : all) {
      const int64_t begin = std::max(range.begin, module.begin);
      const int64_t end = std::min(range.begin + range.count, module.begin + module.count);
      if (begin < end) {
        if (share.rows.empty()) first = before + begin - range.begin;
        share.rows.push_back({.begin = begin - module.begin, .count = end - begin});
      }
      before += range.count;
    }
    return first;
  }

  // All of it, on each rank; in the size that embeddings have after they were multiplied.
  LowRankPart lookup(const AdapterLinear& linear) const {
    const Range ranks = whole_range(linear.rank).front();
    return {.site = embedding_site(model_.config.num_layers),
            .is_lookup = true,
            .scale = linear.scale * model_.config.embedding_multiplier,
            .a = slice_factor(tensors_, linear.a.transposed(), whole_range(linear.a.cols).front(),
                              ranks),
            .b = {slice_factor(tensors_, linear.b, whole_range(linear.b.rows).front(), ranks)}};
  }

  static Share whole(const AdapterLinear& linear) {
    const auto outputs = linear.b ? linear.b.rows : std::ssize(linear.offset);
    return {.rows = whole_range(outputs), .cols = {.begin = 0, .count = linear.a.cols}};
  }

  void fill(const AdapterLinear& linear, const Share& share, Turns turns, LowRankPart& part) const {
    if (linear.a) add_product(linear, share, turns, part);
    part.gain = picked(linear.gain, share.rows, turns);
    if (share.has_offset) part.offset = picked(linear.offset, share.rows, turns);
  }

  void add_product(const AdapterLinear& linear,
                   const Share& share,
                   Turns turns,
                   LowRankPart& part) const {
    const Factor b = linear.b.of_turn(turns);
    const Range all = whole_range(linear.rank).front();
    part.scale = linear.scale;
    part.a = slice_factor(tensors_, linear.a, all, share.cols);
    for (const Range& range : joined(share.rows)) {
      part.b.push_back(slice_factor(tensors_, b, range, all));
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
      if (place.role == Role::kLatentUp) {
        cutter.cut_latent_up(linear, place, parts);
      } else if (auto part = cutter.cut(linear, place)) {
        parts.push_back(std::move(*part));
      }
    }
  }
  return parts;
}

}  // namespace tgi
