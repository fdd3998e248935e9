// CpuDevice: which tokens the queries of a step see, where an indexer chooses them. A panel of the
// cached keys is a panel of a matrix, so that scores are what matmul gives for it, with the same
// bits on every instruction set.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/cpu_device_rows.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {
namespace {

// Positions that a task scores at least: many a query has, and one query alone keeps all threads
// busy.
constexpr int64_t kSpan = 1024;

// Blocks of tokens and panels of the cache both end where a span does.
int64_t span_of(const ChoiceRule& rule) {
  const int64_t both = int64_t{rule.block_size} * kPanelRows;
  return round_up(kSpan, both);
}

// The scores of 16 positions for one query: a NaN is no score.
void weigh_heads(const float* products,
                 const float* weights,
                 int32_t num_heads,
                 float* __restrict scores) {
  std::fill_n(scores, kPanelRows, 0.0F);
  for (int32_t h = 0; h < num_heads; ++h, products += kPanelRows) {
    for (int64_t i = 0; i < kPanelRows; ++i) {
      scores[i] += weights[h] * (products[i] > 0.0F ? products[i] : 0.0F);
    }
  }
}

}  // namespace

// Where a query chooses single tokens, and all its heads see the same keys, these are gathered:
// what is not chosen costs nothing. Chosen blocks are whole tiles, or nearly so.
bool CpuDevice::gathers_keys(const AttentionArgs& args) const {
  if (args.entries.tokens_per_entry > 0) return true;
  return args.seen.heads_per_choice > 0 && choices_.block_size() == 1 &&
         choices_.num_choices() == 1 && args.latent_dim > 0 && args.sliding_window == 0 &&
         args.attention_chunk == 0 && !is_cache_code(kv_->layout().dtype);
}

// A query's heads are some tasks.
void CpuDevice::attend_gathered(const AttentionArgs& args) {
  const auto kernel = kernels_.attention[static_cast<size_t>(panel_type(kv_->layout().dtype))];
  const int64_t rows_per_task = attention_rows_per_task(args, kMaxAttentionRows);
  const int64_t tasks_of_query = (args.num_heads + rows_per_task - 1) / rows_per_task;
  run_attention_tasks(
      [&](size_t sequence) {
        return (batch_->cu_seqlens_q[sequence + 1] - batch_->cu_seqlens_q[sequence]) *
               tasks_of_query;
      },
      [&](size_t sequence, int64_t in_sequence, int thread) {
        const int64_t query = in_sequence / tasks_of_query;
        const int64_t first_head = in_sequence % tasks_of_query * rows_per_task;
        const int64_t row = batch_->cu_seqlens_q[sequence] + query;
        std::vector<int32_t>& positions = scratch_[static_cast<size_t>(thread)].gathered;
        const int64_t position = token_places_[static_cast<size_t>(row)].context_index;
        AttentionBlock block = attention_block(args, sequence, 0, thread);
        if (args.entries.tokens_per_entry > 0) {
          list_window_and_entries(args, sequence, row, positions, block);
        } else {
          TokenChoices::list(choices_.of_query(row), position, positions);
        }
        block.first_row = static_cast<int32_t>(query * args.num_heads + first_head);
        block.num_rows = static_cast<int32_t>(std::min(rows_per_task, args.num_heads - first_head));
        // Where all are seen they are so where they lie, with the same bits.
        if (block.entries != nullptr || std::ssize(positions) <= position) {
          block.gathered = positions.data();
          block.num_gathered = static_cast<int32_t>(positions.size());
        }
        kernel(block);
      });
}

// The window's tokens, and behind them the entries that the query sees.
void CpuDevice::list_window_and_entries(const AttentionArgs& args,
                                        size_t sequence,
                                        int64_t row,
                                        std::vector<int32_t>& positions,
                                        AttentionBlock& block) const {
  const SeenEntries& entries = args.entries;
  const int64_t position = token_places_[static_cast<size_t>(row)].context_index;
  const int64_t num_entries = entries.count(position);
  positions.clear();
  if (args.seen.heads_per_choice > 0) {
    TokenChoices::list(choices_.of_query(row), num_entries - 1, positions);
  } else {
    positions.resize(static_cast<size_t>(num_entries));
    std::iota(positions.begin(), positions.end(), 0);
  }
  for (int32_t& entry : positions) entry = static_cast<int32_t>(entries.position_of(entry));
  const int64_t first = std::max<int64_t>(0, position - args.sliding_window + 1);
  block.first_entry = static_cast<int32_t>(position + 1 - first);
  positions.insert(positions.begin(), static_cast<size_t>(block.first_entry), 0);
  std::iota(positions.begin(), positions.begin() + block.first_entry, static_cast<int32_t>(first));
  kv_->describe_entries(entries, block);
  block.entry_blocks = slots_->block_table(batch_->slots[sequence], entries.place.group);
}

int64_t CpuDevice::choice_bytes(const SlotLayout& layout) const {
  if (layout.num_choices == 0) return 0;
  return TokenChoices::bytes(layout) + static_cast<int64_t>(choice_scores_bytes(layout)) +
         pool_.num_threads() *
             (static_cast<int64_t>(kChoiceScratchBytes) + 2 * context_of(layout) * 4);
}

void CpuDevice::choose_tokens(const ChooseArgs& args) {
  choices_.begin(args.num_choices(), args.rule.block_size);
  for (int64_t first = 0; first < args.q.rows; first += kQueriesAtOnce) {
    choose_for(args, first, std::min<int64_t>(kQueriesAtOnce, args.q.rows - first));
  }
}

void CpuDevice::choose_for(const ChooseArgs& args, int64_t first, int64_t count) {
  // The last that it may choose: of tokens its own.
  const auto position_of = [&](int64_t query) -> int64_t {
    return args.last_choice(token_places_[static_cast<size_t>(query)].context_index);
  };
  const auto blocks_up_to = [&](int64_t position) { return position / args.rule.block_size + 1; };
  int64_t last = 0;
  for (int64_t i = 0; i < count; ++i) last = std::max(last, position_of(first + i));
  const int64_t span = span_of(args.rule);
  const int64_t num_spans = last / span + 1;
  const int64_t most_blocks = blocks_up_to(last);
  auto* const scores = static_cast<float*>(choice_scores_.data());
  const auto scores_of = [&](int64_t i, int64_t choice) {
    return scores + (i * choices_.num_choices() + choice) * most_blocks;
  };

  pool_.parallel_for(count * num_spans, [&](int64_t task, int thread) {
    const int64_t query = first + task / num_spans;
    const int64_t begin = task % num_spans * span;
    // Up to so many all are seen, whatever their scores.
    if (begin > position_of(query) || position_of(query) < args.rule.sees_all_up_to()) return;
    score_positions(args, query, begin, std::min(begin + span, position_of(query) + 1),
                    scores_of(query - first, 0), most_blocks, thread);
  });
  pool_.parallel_for(count * choices_.num_choices(), [&](int64_t task, int thread) {
    const int64_t i = task / choices_.num_choices();
    const int64_t choice = task % choices_.num_choices();
    const int64_t query = first + i;
    const int64_t position = position_of(query);
    if (position < 0) return;
    const auto sequence = static_cast<size_t>(token_places_[static_cast<size_t>(query)].sequence);
    TokenChoices::choose(args.rule, position, args.last_choice(batch_->context_lens[sequence] - 1),
                         {scores_of(i, choice), static_cast<size_t>(blocks_up_to(position))},
                         scratch_[static_cast<size_t>(thread)].sorted,
                         choices_.of_query(query) + choice * choices_.num_words());
  });
}

// Of positions [begin, end), to the query's scores of blocks; those of the next choice are
// `choice_stride` on.
void CpuDevice::score_positions(const ChooseArgs& args,
                                int64_t query,
                                int64_t begin,
                                int64_t end,
                                float* scores,
                                int64_t choice_stride,
                                int thread) {
  const PanelType type = panel_type(kv_->layout().dtype);
  const MatmulKernel& kernel = kernels_.matmul[static_cast<size_t>(type)];
  AttentionBlock cache;
  kv_->describe(args.place, 0, cache);
  const PanelLayout panel{.type = type, .cols = args.head_dim, .pair_order = kernels_.pair_order};
  const int64_t x_stride = prepared_row_bytes(kernel.x_bytes(args.head_dim, 0));
  auto* const scratch =
      static_cast<std::byte*>(scratch_[static_cast<size_t>(thread)].choice.data());
  std::byte* const decoded = scratch + (args.num_heads + kExtraPreparedRows) * x_stride;
  auto* const products = reinterpret_cast<float*>(decoded + round_up(panel.bytes(), 64));
  const float* const q = row_of(args.q, query);
  for (int64_t h = 0; h < args.num_heads; ++h) {
    kernel.prepare(q + h * args.head_dim, args.head_dim, 0, scratch + h * x_stride);
  }
  const int32_t sequence = token_places_[static_cast<size_t>(query)].sequence;
  const int32_t* const blocks =
      slots_->block_table(batch_->slots[static_cast<size_t>(sequence)], args.place.group);
  const int64_t first_block = begin / args.rule.block_size;
  for (int32_t choice = 0; choice < args.num_choices(); ++choice) {
    std::fill(scores + choice * choice_stride + first_block,
              scores + choice * choice_stride + (end - 1) / args.rule.block_size + 1,
              -std::numeric_limits<float>::infinity());
  }

  // The panel of 16 keys from the given one on.
  const auto panel_at = [&](int64_t position) -> const std::byte* {
    if (args.tokens_per_entry > 1) {
      std::array<int64_t, kPanelRows> of_entries{};
      const int64_t count = std::min(kPanelRows, end - position);
      for (int64_t i = 0; i < count; ++i)
        of_entries[static_cast<size_t>(i)] = (position + i + 1) * args.tokens_per_entry - 1;
      kv_->gather_rows(args.place, blocks, std::span(of_entries).first(static_cast<size_t>(count)),
                       decoded);
      return decoded;
    }
    return cache.k + blocks[position / cache.block_size] * cache.k_block_stride_bytes +
           position % cache.block_size / kPanelRows * kv_->key_chunk_bytes(args.place);
  };
  for (int64_t position = begin; position < end; position += kPanelRows) {
    const std::byte* const keys = panel_at(position);
    kernel.block({.x = scratch,
                  .x_stride_bytes = x_stride,
                  .num_rows = args.num_heads,
                  .k = args.head_dim,
                  .panels = decode_keys(cache.codes, keys, panel, decoded),
                  .panel_bytes = panel.bytes(),
                  .num_panels = 1,
                  .out = products,
                  .out_stride = kPanelRows,
                  .num_outputs = kPanelRows});
    scale_keys(cache.codes, keys, panel, args.num_heads, products);
    const auto raise = [&](const float* of_positions, int32_t choice) {
      for (int64_t i = 0; i < std::min(kPanelRows, end - position); ++i) {
        float& best = scores[choice * choice_stride + (position + i) / args.rule.block_size];
        if (of_positions[i] > best) best = of_positions[i];
      }
    };
    if (args.weights.data != nullptr) {
      alignas(64) float sums[kPanelRows];
      weigh_heads(products, row_of(args.weights, query), args.num_heads, sums);
      raise(sums, 0);
    } else {
      for (int32_t h = 0; h < args.num_heads; ++h) raise(products + h * kPanelRows, h);
    }
  }
}

// The panel as it is multiplied: itself, or what its codes say.
const std::byte* CpuDevice::decode_keys(CacheCodes codes,
                                        const std::byte* keys,
                                        const PanelLayout& panel,
                                        std::byte* decoded) const {
  if (codes == CacheCodes::kNone) return keys;
  const auto decode = codes == CacheCodes::kInt8 ? kernels_.decode_int8 : kernels_.decode_e4m3;
  const int64_t count = panel.bytes() / int64_t{sizeof(uint16_t)};
  for (int64_t i = 0; i < count; i += 64) decode(keys + i, decoded + i * int64_t{sizeof(uint16_t)});
  return decoded;
}

// Codes of int8 have a scale for each position, behind them.
void CpuDevice::scale_keys(CacheCodes codes,
                           const std::byte* keys,
                           const PanelLayout& panel,
                           int32_t num_heads,
                           float* products) {
  if (codes != CacheCodes::kInt8) return;
  const auto* const scales =
      reinterpret_cast<const float*>(keys + panel.bytes() / int64_t{sizeof(uint16_t)});
  for (int32_t h = 0; h < num_heads; ++h) {
    for (int64_t i = 0; i < kPanelRows; ++i) products[h * kPanelRows + i] *= scales[i];
  }
}

}  // namespace tgi
