#include "engine/lora/merge_adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/device/backend.h"
#include "engine/lora/low_rank_factors.h"
#include "engine/lora/memory_tensors.h"
#include "engine/lora/module_patterns.h"
#include "engine/lora/row_products.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

// FNV-1a, 64 bits.
uint64_t hash_of(std::string_view text, uint64_t hash = 0xCBF29CE484222325U) {
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  return hash;
}

// What one adapter does to one linear.
struct Share {
  const MergeInput* input = nullptr;
  const AdapterLinear* linear = nullptr;

  bool has_product() const { return static_cast<bool>(linear->a); }
  int64_t outputs() const { return linear->b.rows; }
  int64_t inputs() const { return linear->a.cols; }
  float factor() const { return input->weight * linear->scale; }
  std::vector<float> a() const { return read_factor(*input->adapter->tensors, linear->a); }
  std::vector<float> b() const { return read_factor(*input->adapter->tensors, linear->b); }
  uint64_t seed(std::string_view tensor) const {
    return hash_of(tensor, hash_of(linear->module, hash_of("\n", hash_of(input->name))));
  }
};
using Shares = std::vector<Share>;

// A module goes by another name in each adapter perhaps; what of the model it is is the same.
using Place = std::tuple<bool, SitePart>;

Place place_of(const AdapterLinear& linear) {
  const SitePart& part = linear.parts.front();
  return {part.layer == SitePart::kNone, part};
}

class Merger {
 public:
  Merger(std::span<const MergeInput> inputs, const MergeOptions& options)
      : inputs_(inputs), options_(options), tensors_(std::make_unique<MemoryTensors>()) {}

  AdapterFiles merge() {
    std::map<Place, Shares> modules;
    for (const MergeInput& input : inputs_) {
      for (const AdapterLinear& linear : input.adapter->linears) {
        modules[place_of(linear)].push_back({.input = &input, .linear = &linear});
      }
    }
    for (const auto& [place, shares] : modules) {
      if (options_.stop.stop_requested()) {
        throw Error(Code::kCancelled, "the merge of adapters was given up");
      }
      check(shares);
      if (options_.on_factors) {
        add_of_factors(shares);
      } else if (options_.rule.strategy == MergeStrategy::kLinear) {
        add_side_by_side(shares);
      } else {
        add_factorised(shares);
      }
    }
    check_sites();
    out_.tensors = std::move(tensors_);
    return std::move(out_);
  }

 private:
  [[noreturn]] static void refuse(const Share& share, std::string_view problem) {
    throw Error(Code::kUnsupported, fmt::format("adapter {}: {}: {}", share.input->name,
                                                share.linear->module, problem));
  }

  void check(const Shares& shares) const {
    const bool is_exact = options_.rule.strategy == MergeStrategy::kLinear && !options_.on_factors;
    for (const Share& share : shares) {
      if (!share.linear->gain.empty()) refuse(share, "DoRA can't be merged with other adapters");
      if (!share.linear->offset.empty() && !is_exact) {
        refuse(share, "trained biases can only be merged with merge_strategy linear");
      }
      TGI_CHECK(!share.has_product() ||
                share.linear->parts.size() == shares.front().linear->parts.size());
    }
  }

  AdapterLinear begin_linear(const Shares& shares) const {
    const AdapterLinear& first = *shares.front().linear;
    return {.module = first.module, .parts = first.parts};
  }

  void set_factors(AdapterLinear& linear,
                   std::vector<int64_t> a_shape,
                   std::vector<float> a,
                   std::vector<float> b) {
    const int64_t rank = a_shape.front();
    const int64_t outputs = static_cast<int64_t>(b.size()) / rank;
    linear.rank = static_cast<int32_t>(rank);
    linear.a =
        whole_factor(*tensors_->add(fmt::format("{}.merged_A.{}", linear.module, ++num_tensors_),
                                    std::move(a_shape), std::move(a)));
    linear.b = whole_factor(*tensors_->add(
        fmt::format("{}.merged_B.{}", linear.module, num_tensors_), {outputs, rank}, std::move(b)));
  }

  // As many products as ranks of kMaxAdapterRank hold them; the offset goes with the first.
  void add_side_by_side(const Shares& shares) {
    Shares stack;
    int64_t rank = 0;
    size_t num_stacks = 0;
    std::vector<float> offset = sum_of_offsets(shares);
    const auto flush = [&] {
      AdapterLinear linear = begin_linear(shares);
      if (!stack.empty()) stack_factors(stack, rank, linear);
      linear.offset = std::exchange(offset, {});
      if (!stack.empty() || !linear.offset.empty()) out_.linears.push_back(std::move(linear));
      ++num_stacks;
      stack.clear();
      rank = 0;
    };
    for (const Share& share : shares) {
      if (!share.has_product()) continue;
      if (rank + share.linear->rank > kMaxAdapterRank) flush();
      stack.push_back(share);
      rank += share.linear->rank;
    }
    flush();
    if (num_stacks > 1 && shares.front().linear->parts.front().role == Role::kTokenEmbedding) {
      refuse(shares.back(), fmt::format("the ranks of all adapters of the embedding add up to more "
                                        "than {}, the most that is supported; merge fewer",
                                        kMaxAdapterRank));
    }
  }

  static std::vector<float> sum_of_offsets(const Shares& shares) {
    std::vector<float> out;
    for (const Share& share : shares) {
      const std::vector<float>& offset = share.linear->offset;
      out.resize(std::max(out.size(), offset.size()), 0.0F);
      for (size_t i = 0; i < offset.size(); ++i) out[i] += share.input->weight * offset[i];
    }
    return out;
  }

  // One factor for all stays outside: then one adapter's numbers stay what they are.
  void stack_factors(const Shares& stack, int64_t rank, AdapterLinear& linear) {
    const Share& first = stack.front();
    const bool has_one_factor = std::ranges::all_of(
        stack, [&](const Share& share) { return share.factor() == first.factor(); });
    linear.scale = has_one_factor ? first.factor() : 1.0F;
    const int64_t outputs = first.outputs();
    std::vector<float> a;
    std::vector<float> b(static_cast<size_t>(outputs * rank));
    int64_t first_rank = 0;
    for (const Share& share : stack) {
      const std::vector<float> its_a = share.a();
      const std::vector<float> its_b = share.b();
      const float factor = has_one_factor ? 1.0F : share.factor();
      a.insert(a.end(), its_a.begin(), its_a.end());
      const int64_t count = share.linear->rank;
      for (int64_t row = 0; row < outputs; ++row) {
        for (int64_t r = 0; r < count; ++r) {
          b[static_cast<size_t>(row * rank + first_rank + r)] =
              factor * its_b[static_cast<size_t>(row * count + r)];
        }
      }
      first_rank += count;
    }
    set_factors(linear, {rank, first.inputs()}, std::move(a), std::move(b));
  }

  void add_factorised(const Shares& shares) {
    const int64_t outputs = shares.front().outputs();
    const int64_t inputs = shares.front().inputs();
    std::vector<MergeTerm> terms;
    int64_t rank = 0;
    for (const Share& share : shares) {
      const std::vector<float> a = share.a();
      std::vector<float> b = share.b();
      for (float& value : b) value *= share.linear->scale;
      MergeTerm term{.values = std::vector<float>(static_cast<size_t>(outputs * inputs)),
                     .weight = share.input->weight,
                     .seed = share.seed("")};
      multiply_rows(options_.num_threads, b.data(), outputs, share.linear->rank,
                    {.data = a.data(), .stride = inputs}, inputs, term.values.data());
      terms.push_back(std::move(term));
      rank += share.linear->rank;
    }
    rank = std::min({rank, int64_t{kMaxAdapterRank}, outputs, inputs});
    const std::vector<float> merged =
        merge_terms(std::move(terms), options_.rule, options_.num_threads);
    LowRankFactors factors = factorise(merged, outputs, inputs, rank, options_.num_threads);
    AdapterLinear linear = begin_linear(shares);
    linear.scale = 1.0F;
    set_factors(linear, {rank, inputs}, std::move(factors.a), std::move(factors.b));
    out_.linears.push_back(std::move(linear));
  }

  void add_of_factors(const Shares& shares) {
    std::vector<MergeTerm> a;
    std::vector<MergeTerm> b;
    for (const Share& share : shares) {
      const Share& first = shares.front();
      if (share.linear->rank != first.linear->rank) {
        refuse(share, fmt::format("rank {}, and that of {} is {}: LoRAX's arithmetic takes "
                                  "adapters of one rank only",
                                  share.linear->rank, first.input->name, first.linear->rank));
      }
      const float weight = share.input->weight;
      a.push_back({.values = share.a(), .weight = weight, .seed = share.seed("A")});
      b.push_back({.values = share.b(), .weight = weight, .seed = share.seed("B")});
    }
    // LoRAX computes what it would divide by and leaves it at that.
    MergeRule rule = options_.rule;
    rule.rescales = false;
    AdapterLinear linear = begin_linear(shares);
    const bool is_of_first = shares.front().input == &inputs_.front();
    linear.scale = is_of_first
                       ? shares.front().linear->scale
                       : ModuleScales(inputs_.front().adapter->config).scale_of(linear.module);
    set_factors(linear, {shares.front().linear->rank, shares.front().inputs()},
                merge_terms(std::move(a), rule), merge_terms(std::move(b), rule));
    out_.linears.push_back(std::move(linear));
  }

  // Devices have room for so much at one linear, whose parts may be modules of their own.
  void check_sites() const {
    std::map<SitePart, int64_t> ranks;
    for (const AdapterLinear& linear : out_.linears) {
      for (const SitePart& part : linear.parts) {
        SitePart site = part;
        if (part.layer != SitePart::kNone) site.role = Role::kCount;
        int64_t& rank = ranks[site];
        rank += linear.rank;
        if (rank <= kMaxStackedRank) continue;
        throw Error(Code::kUnsupported,
                    fmt::format("{}: the ranks of what is merged add up to more than {}, the most "
                                "that one linear takes; merge fewer adapters",
                                linear.module, kMaxStackedRank));
      }
    }
  }

  const std::span<const MergeInput> inputs_;
  const MergeOptions options_;
  std::unique_ptr<MemoryTensors> tensors_;
  int64_t num_tensors_ = 0;
  AdapterFiles out_;
};

}  // namespace

AdapterFiles merge_adapters(std::span<const MergeInput> inputs, const MergeOptions& options) {
  TGI_CHECK(!inputs.empty());
  return Merger(inputs, options).merge();
}

}  // namespace tgi
