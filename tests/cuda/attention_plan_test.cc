// plan_attention: every token is attended to once, blocks get equal shares, the maxima hold.
#include "cuda/attention_plan.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/catch.h"

namespace tgi::cuda {
namespace {

struct Case {
  std::vector<SequenceRows> sequences;
  AttentionPlanOptions options;
  int32_t num_tokens = 0;
};

int32_t uniform(std::mt19937& random, int32_t low, int32_t high) {
  return std::uniform_int_distribution<int32_t>(low, high)(random);
}

Case random_case(std::mt19937& random) {
  Case out;
  out.options = {.num_kv_heads = uniform(random, 1, 8),
                 .num_blocks = uniform(random, 1, 40),
                 .deterministic = uniform(random, 0, 5) == 0};
  const int32_t num_sequences = uniform(random, 0, 12);
  for (int32_t i = 0; i < num_sequences; ++i) {
    const int32_t rows = uniform(random, 0, 1) == 0 ? 1 : uniform(random, 1, 300);
    const int32_t context = rows + uniform(random, 0, uniform(random, 0, 1) == 0 ? 60 : 3000);
    out.sequences.push_back(
        {.slot = i, .first_row = out.num_tokens, .num_rows = rows, .context_len = context});
    out.num_tokens += rows;
  }
  return out;
}

int64_t tiles_of(int32_t num_tokens) {
  return (num_tokens + kDecodeTile - 1) / kDecodeTile;
}

// (sequence, kv head) -> its items in the order of the plan
using ItemsByHead = std::map<std::pair<int32_t, int32_t>, std::vector<DecodeItem>>;
ItemsByHead by_head(const AttentionPlan& plan) {
  ItemsByHead out;
  for (const DecodeItem& item : plan.items) out[{item.sequence, item.kv_head}].push_back(item);
  return out;
}

void check_coverage(const Case& c, const AttentionPlan& plan) {
  const ItemsByHead items = by_head(plan);
  size_t num_pairs = 0;
  for (size_t i = 0; i < c.sequences.size(); ++i) {
    if (c.sequences[i].num_rows != 1 || c.options.deterministic) continue;
    for (int32_t head = 0; head < c.options.num_kv_heads; ++head) {
      ++num_pairs;
      const auto found = items.find({static_cast<int32_t>(i), head});
      REQUIRE(found != items.end());
      int32_t next = 0;
      for (const DecodeItem& item : found->second) {
        REQUIRE(item.first_token == next);
        REQUIRE(item.first_token % kDecodeTile == 0);
        REQUIRE(item.num_tokens > 0);
        next += item.num_tokens;
      }
      REQUIRE(next == c.sequences[i].context_len);
    }
  }
  REQUIRE(items.size() == num_pairs);

  std::set<std::pair<int32_t, int32_t>> tiles;
  for (const PrefillTile& tile : plan.tiles) tiles.insert({tile.sequence, tile.first_query});
  size_t expected = 0;
  for (size_t i = 0; i < c.sequences.size(); ++i) {
    if (c.sequences[i].num_rows == 1 && !c.options.deterministic) continue;
    for (int32_t q = 0; q < c.sequences[i].num_rows; q += kPrefillQueryTile, ++expected) {
      REQUIRE(tiles.count({static_cast<int32_t>(i), q}) == 1);
    }
  }
  REQUIRE(plan.tiles.size() == expected);
}

void check_partials(const AttentionPlan& plan) {
  const ItemsByHead items = by_head(plan);
  std::map<std::pair<int32_t, int32_t>, DecodeMerge> merges;
  for (const DecodeMerge& merge : plan.merges) merges[{merge.sequence, merge.kv_head}] = merge;
  REQUIRE(merges.size() == plan.merges.size());
  std::set<int32_t> used;
  for (const auto& [pair, pieces] : items) {
    if (pieces.size() == 1) {
      REQUIRE(pieces[0].partial == -1);
      REQUIRE(merges.count(pair) == 0);
      continue;
    }
    REQUIRE(merges.count(pair) == 1);
    const DecodeMerge& merge = merges[pair];
    REQUIRE(merge.num_partials == static_cast<int32_t>(pieces.size()));
    for (size_t i = 0; i < pieces.size(); ++i) {
      REQUIRE(pieces[i].partial == merge.first_partial + static_cast<int32_t>(i));
      REQUIRE(used.insert(pieces[i].partial).second);
    }
  }
  if (!used.empty()) REQUIRE(*used.rbegin() + 1 == static_cast<int32_t>(used.size()));
}

void check_balance(const Case& c, const AttentionPlan& plan) {
  REQUIRE(plan.block_begin.size() == static_cast<size_t>(c.options.num_blocks) + 1);
  REQUIRE(plan.block_begin.front() == 0);
  REQUIRE(plan.block_begin.back() == static_cast<int32_t>(plan.items.size()));
  int64_t least = INT64_MAX;
  int64_t most = 0;
  for (size_t b = 0; b + 1 < plan.block_begin.size(); ++b) {
    REQUIRE(plan.block_begin[b] <= plan.block_begin[b + 1]);
    int64_t tiles = 0;
    for (int32_t i = plan.block_begin[b]; i < plan.block_begin[b + 1]; ++i) {
      tiles += tiles_of(plan.items[static_cast<size_t>(i)].num_tokens);
    }
    least = std::min(least, tiles);
    most = std::max(most, tiles);
  }
  REQUIRE(most - least <= 1);
}

int32_t num_partials(const AttentionPlan& plan) {
  int32_t out = 0;
  for (const DecodeMerge& merge : plan.merges) out += merge.num_partials;
  return out;
}

void check_maxima(const Case& c, const AttentionPlan& plan) {
  const auto num_sequences = static_cast<int32_t>(c.sequences.size());
  REQUIRE(static_cast<int32_t>(plan.items.size()) <= max_decode_items(num_sequences, c.options));
  REQUIRE(static_cast<int32_t>(plan.merges.size()) <= max_decode_merges(num_sequences, c.options));
  REQUIRE(num_partials(plan) <= max_decode_partials(num_sequences, c.options));
  REQUIRE(static_cast<int32_t>(plan.tiles.size()) <=
          max_prefill_tiles(num_sequences, c.num_tokens));
}

TEST_CASE("covers_every_token_once_in_equal_shares") {
  std::mt19937 random(1);
  AttentionPlan plan;
  for (int i = 0; i < 2000; ++i) {
    const Case c = random_case(random);
    plan_attention(c.sequences, c.options, plan);
    check_coverage(c, plan);
    check_partials(plan);
    check_balance(c, plan);
    check_maxima(c, plan);
  }
}

TEST_CASE("the_maxima_are_met") {
  const AttentionPlanOptions options = {.num_kv_heads = 2, .num_blocks = 7};
  // Eight tiles for each of four (sequence, kv head): no border of seven blocks is one of theirs.
  const std::vector<SequenceRows> sequences = {
      {.slot = 0, .first_row = 0, .num_rows = 1, .context_len = 500},
      {.slot = 1, .first_row = 1, .num_rows = 1, .context_len = 500}};
  AttentionPlan plan;
  plan_attention(sequences, options, plan);
  CHECK(static_cast<int32_t>(plan.items.size()) == max_decode_items(2, options));
  CHECK(static_cast<int32_t>(plan.merges.size()) == max_decode_merges(2, options));
  CHECK(num_partials(plan) == max_decode_partials(2, options));
  CHECK(max_prefill_tiles(3, 2 + 65) == 4);
  CHECK(max_prefill_tiles(3, 2) == 2);
}

TEST_CASE("tiles_with_the_most_context_come_first") {
  const AttentionPlanOptions options = {.num_kv_heads = 1, .num_blocks = 4};
  const std::vector<SequenceRows> sequences = {
      {.slot = 0, .first_row = 0, .num_rows = 130, .context_len = 130},
      {.slot = 1, .first_row = 130, .num_rows = 2, .context_len = 1000}};
  AttentionPlan plan;
  plan_attention(sequences, options, plan);
  REQUIRE(plan.tiles.size() == 4);
  CHECK(plan.tiles[0].sequence == 1);
  CHECK(plan.tiles[1].first_query == 128);
  CHECK(plan.tiles[3].first_query == 0);
  CHECK(plan.items.empty());
}

TEST_CASE("no_sequences_make_an_empty_plan") {
  const AttentionPlanOptions options = {.num_kv_heads = 4, .num_blocks = 3};
  AttentionPlan plan;
  plan_attention({}, options, plan);
  CHECK(plan.items.empty());
  CHECK(plan.merges.empty());
  CHECK(plan.tiles.empty());
  CHECK(plan.block_begin == std::vector<int32_t>{0, 0, 0, 0});
}

TEST_CASE("deterministic_plans_have_no_decode_items") {
  const AttentionPlanOptions options = {.num_kv_heads = 4, .num_blocks = 3, .deterministic = true};
  const std::vector<SequenceRows> sequences = {
      {.slot = 0, .first_row = 0, .num_rows = 1, .context_len = 500}};
  AttentionPlan plan;
  plan_attention(sequences, options, plan);
  CHECK(plan.items.empty());
  CHECK(plan.tiles.size() == 1);
  CHECK(max_decode_items(5, options) == 0);
  CHECK(max_decode_partials(5, options) == 0);
}

TEST_CASE("a_steady_step_allocates_nothing") {
  std::mt19937 random(2);
  const Case c = random_case(random);
  AttentionPlan plan;
  plan_attention(c.sequences, c.options, plan);
  const AttentionPlan* const same = &plan;
  const DecodeItem* const items = same->items.data();
  const int32_t* const begins = same->block_begin.data();
  const DecodeMerge* const merges = same->merges.data();
  const PrefillTile* const tiles = same->tiles.data();
  for (int i = 0; i < 10; ++i) plan_attention(c.sequences, c.options, plan);
  CHECK(plan.items.data() == items);
  CHECK(plan.block_begin.data() == begins);
  CHECK(plan.merges.data() == merges);
  CHECK(plan.tiles.data() == tiles);
}

}  // namespace
}  // namespace tgi::cuda
