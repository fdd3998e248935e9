// The attention kernels against plain loops, and the promise that a row's bits do not depend on the
// chunk that it is computed in.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/cuda/attention_case.h"

namespace tgi::cuda {
namespace {

void check_case(const AttentionSetup& setup, uint32_t seed) {
  INFO(fmt::format("{}{} group {} kv_heads {} head_dim {} block_size {} window {} softcap {}{}{}",
                   dtype_name(setup.dtype), setup.cache_is_f8 ? "/f8" : "", setup.group,
                   setup.num_kv_heads, setup.head_dim, setup.block_size, setup.sliding_window,
                   setup.softcap, setup.alibi ? " alibi" : "", setup.sinks ? " sinks" : ""));
  const AttentionCase c(setup, seed);
  const std::vector<float> got = c.run();
  const AttentionCase::Expected expected = c.expected();
  REQUIRE(got.size() ==
          expected.out.size() + static_cast<size_t>(setup.num_padding_rows * setup.width()));
  double worst = 0.0;
  size_t where = 0;
  for (size_t i = 0; i < expected.out.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - expected.out[i]);
    const double share = std::isnan(error) ? INFINITY : error / expected.bound[i];
    if (share > worst) {
      worst = share;
      where = i;
    }
  }
  const auto width = static_cast<size_t>(setup.width());
  INFO(fmt::format("token row {} head {} dim {}: expected {}, got {}", where / width,
                   where % width / static_cast<size_t>(setup.head_dim),
                   where % static_cast<size_t>(setup.head_dim), expected.out[where], got[where]));
  CHECK(worst <= 1.0);
}

SequenceRows rows_of(int32_t num_rows, int32_t context_len) {
  return {.slot = 0, .first_row = 0, .num_rows = num_rows, .context_len = context_len};
}

// The needle in the haystack, at the level where a coarse cache would lose it: one key among many
// that is asked for, by a token of decoding and by the end of a chunk of prefill.
TEST_CASE("a needle is found at any depth of a long cache, in f8 as well") {
  constexpr int32_t kContext = 1500;
  uint32_t seed = 900;
  for (const bool f8 : {false, true}) {
    for (const int32_t num_rows : {1, 20}) {
      for (const int32_t depth : {0, 375, 750, 1125, kContext - 1}) {
        const AttentionCase one({.cache_is_f8 = f8,
                                 .group = 2,
                                 .head_dim = 128,
                                 .sequences = {{.num_rows = num_rows, .context_len = kContext}},
                                 .needle = depth},
                                seed++);
        const std::vector<float> out = one.run();
        const std::vector<double> says = one.needle_value();
        double error = 0;
        double size = 0;
        for (size_t i = 0; i < says.size(); ++i) {
          const double distance = static_cast<double>(out[one.needle_row_begin() + i]) - says[i];
          error += distance * distance;
          size += says[i] * says[i];
        }
        INFO("f8 " << f8 << ", rows " << num_rows << ", depth " << depth);
        CHECK(std::sqrt(error / size) < 0.02);
      }
    }
  }
}

TEST_CASE("decode_agrees_with_plain_loops") {
  const std::vector<SequenceRows> three = {rows_of(1, 1), rows_of(1, 150), rows_of(1, 67)};
  uint32_t seed = 1;
  for (const int32_t group : {1, 2, 3, 4, 7, 8, 12, 20}) {
    check_case({.group = group, .num_kv_heads = 2, .head_dim = 64, .sequences = three}, seed++);
  }
  for (const int32_t head_dim : {16, 80, 96, 128, 256}) {
    for (const bool f8 : {false, true}) {
      check_case({.cache_is_f8 = f8, .group = 4, .head_dim = head_dim, .sequences = three}, seed++);
    }
  }
  check_case({.cache_is_f8 = true, .group = 32, .head_dim = 64, .sequences = three}, seed++);
  // More partials than the merge has threads for each column.
  check_case({.dtype = DType::kF16,
              .group = 2,
              .head_dim = 256,
              .sequences = {rows_of(1, 1000)},
              .num_decode_blocks = 40},
             seed++);
  for (const int32_t block_size : {8, 24, 32, 64}) {
    check_case({.dtype = DType::kF16,
                .group = 3,
                .num_kv_heads = 2,
                .head_dim = 32,
                .block_size = block_size,
                .sequences = three},
               seed++);
  }
}

TEST_CASE("heads wider than 256 agree with plain loops, whatever a multiprocessor has room for") {
  uint32_t seed = 900;
  const std::vector<SequenceRows> decode = {rows_of(1, 1), rows_of(1, 150), rows_of(1, 67)};
  for (const int32_t head_dim : {272, 384, 512}) {
    for (const int32_t group : {1, 4, 20}) {
      check_case({.dtype = group == 4 ? DType::kF16 : DType::kBF16,
                  .cache_is_f8 = head_dim == 384,
                  .group = group,
                  .num_kv_heads = group == 20 ? 1 : 2,
                  .head_dim = head_dim,
                  .block_size = group == 1 ? 24 : 16,
                  .sliding_window = group == 4 ? 40 : 0,
                  .alibi = head_dim == 272,
                  .sinks = group != 1,
                  .sequences = decode,
                  .num_padding_rows = 1,
                  .num_decode_blocks = head_dim == 512 ? 40 : 5},
                 seed++);
    }
  }
  for (const int64_t shared_kib : {100, 228}) {
    for (const bool f8 : {false, true}) {
      check_case({.cache_is_f8 = f8,
                  .group = f8 ? 3 : 8,
                  .num_kv_heads = f8 ? 2 : 1,
                  .head_dim = f8 ? 512 : 288,
                  .attention_chunk = f8 ? 0 : 50,
                  .softcap = f8 ? 5.0F : 0.0F,
                  .sinks = f8,
                  .sequences = {rows_of(66, 70), rows_of(5, 130), rows_of(1, 90)},
                  .shared_bytes = shared_kib << 10},
                 seed++);
    }
  }
}

TEST_CASE("rows_of_deterministic_steps_agree_with_plain_loops") {
  check_case({.group = 4,
              .head_dim = 64,
              .sequences = {rows_of(1, 200), rows_of(1, 1), rows_of(3, 64)},
              .deterministic = true},
             50);
}

TEST_CASE("windows_and_softcaps_of_decode_agree_with_plain_loops") {
  const std::vector<SequenceRows> sequences = {rows_of(1, 400), rows_of(1, 5)};
  uint32_t seed = 100;
  for (const int32_t window : {1, 17, 64, 130, 1000}) {
    for (const bool f8 : {false, true}) {
      check_case({.cache_is_f8 = f8,
                  .group = 4,
                  .head_dim = 64,
                  .sliding_window = window,
                  .softcap = f8 ? 0.0F : 5.0F,
                  .sequences = sequences,
                  .num_decode_blocks = window == 17 ? 1 : 6},
                 seed++);
    }
  }
}

TEST_CASE("chunks_of_context_agree_with_plain_loops") {
  uint32_t seed = 150;
  for (const int32_t chunk : {1, 17, 64, 130, 1000}) {
    check_case({.group = 4,
                .head_dim = 64,
                .attention_chunk = chunk,
                .sequences = {rows_of(1, 400), rows_of(1, 5)},
                .num_decode_blocks = chunk == 17 ? 1 : 6},
               seed++);
    check_case({.group = 2,
                .head_dim = 32,
                .block_size = 8,
                .sliding_window = chunk == 130 ? 40 : 0,
                .attention_chunk = chunk,
                .sequences = {rows_of(70, 200), rows_of(40, 40)}},
               seed++);
  }
}

TEST_CASE("prefill_agrees_with_plain_loops") {
  const std::vector<SequenceRows> sequences = {rows_of(70, 70), rows_of(9, 140), rows_of(2, 2)};
  uint32_t seed = 200;
  for (const int32_t group : {1, 2, 3}) {
    check_case({.group = group, .num_kv_heads = 2, .head_dim = 64, .sequences = sequences}, seed++);
  }
  for (const int32_t head_dim : {16, 80, 128, 256}) {
    for (const bool f8 : {false, true}) {
      check_case({.dtype = head_dim == 80 ? DType::kF16 : DType::kBF16,
                  .cache_is_f8 = f8,
                  .group = 2,
                  .head_dim = head_dim,
                  .sequences = {rows_of(66, 70), rows_of(5, 130)}},
                 seed++);
    }
  }
  for (const int32_t window : {1, 30, 64, 100}) {
    check_case({.group = 2,
                .head_dim = 32,
                .block_size = window == 30 ? 24 : 8,
                .sliding_window = window,
                .softcap = 5.0F,
                .sequences = {rows_of(70, 200), rows_of(40, 40)}},
               seed++);
  }
}

TEST_CASE("scores that fall with the distance agree with plain loops, with all else of a score") {
  const std::vector<SequenceRows> sequences = {rows_of(1, 400), rows_of(70, 200), rows_of(1, 5)};
  uint32_t seed = 700;
  for (const int32_t group : {1, 2, 5, 20}) {
    for (const bool f8 : {false, true}) {
      check_case({.cache_is_f8 = f8,
                  .group = group,
                  .num_kv_heads = 2,
                  .head_dim = f8 ? 128 : 64,
                  .alibi = true,
                  .sequences = sequences},
                 seed++);
    }
  }
  for (const int32_t window : {0, 1, 50}) {
    for (const bool sinks : {false, true}) {
      check_case({.dtype = DType::kF16,
                  .group = 4,
                  .head_dim = 80,
                  .sliding_window = window,
                  .softcap = sinks ? 0.0F : 5.0F,
                  .alibi = true,
                  .sinks = sinks,
                  .sequences = sequences,
                  .num_padding_rows = 2,
                  .num_decode_blocks = 9},
                 seed++);
    }
  }
  check_case({.group = 2, .head_dim = 256, .alibi = true, .sinks = true, .sequences = sequences},
             seed++);
}

TEST_CASE("random_mixed_steps_agree_with_plain_loops") {
  std::mt19937 random(3);
  const auto pick = [&](std::vector<int32_t> from) {
    return from[std::uniform_int_distribution<size_t>(0, from.size() - 1)(random)];
  };
  for (uint32_t seed = 300; seed < 312; ++seed) {
    AttentionSetup setup = {.dtype = pick({0, 1}) == 0 ? DType::kBF16 : DType::kF16,
                            .cache_is_f8 = pick({0, 0, 1}) == 1,
                            .group = pick({1, 2, 3, 4, 7, 8, 12}),
                            .num_kv_heads = pick({1, 2}),
                            .head_dim = pick({16, 64, 80, 128}),
                            .block_size = pick({8, 16, 24, 40}),
                            .sliding_window = pick({0, 0, 50}),
                            .softcap = static_cast<float>(pick({0, 0, 20})),
                            .num_padding_rows = pick({0, 1, 3}),
                            .num_decode_blocks = pick({1, 3, 9})};
    for (int32_t i = pick({1, 2, 3}); i > 0; --i) {
      const int32_t rows = pick({1, 1, 2, 17, 65});
      setup.sequences.push_back(rows_of(rows, rows + pick({0, 1, 40, 130, 300})));
    }
    check_case(setup, seed);
  }
}

// Rows of one sequence's last tokens, cut into steps in several ways.
void check_cuts(AttentionSetup setup, uint32_t seed) {
  constexpr int32_t kContext = 150;
  constexpr int32_t kRows = 90;
  setup.deterministic = true;
  setup.sequences = {rows_of(kRows, kContext)};
  const AttentionCase c(setup, seed);
  const std::vector<float> whole = c.run();
  const auto width = static_cast<size_t>(setup.width());
  for (const auto& [begin, end] : std::vector<std::pair<int32_t, int32_t>>{
           {0, 1}, {17, 18}, {89, 90}, {3, 30}, {20, 85}, {26, 90}}) {
    const std::vector<float> part = c.run({{.slot = 0,
                                            .first_row = begin,
                                            .num_rows = end - begin,
                                            .context_len = kContext - kRows + end}},
                                          true);
    const auto first = static_cast<size_t>(begin) * width;
    const auto last = static_cast<size_t>(end) * width;
    INFO("rows " << begin << " to " << end);
    CHECK(std::equal(part.begin() + static_cast<int64_t>(first),
                     part.begin() + static_cast<int64_t>(last),
                     whole.begin() + static_cast<int64_t>(first)));
  }
}

TEST_CASE("a_rows_bits_do_not_depend_on_its_chunk") {
  check_cuts({.group = 2, .head_dim = 64}, 400);
  check_cuts({.group = 1, .head_dim = 32, .sliding_window = 40}, 401);
  check_cuts({.group = 1, .head_dim = 32, .attention_chunk = 30}, 403);
  check_cuts({.cache_is_f8 = true, .group = 2, .head_dim = 80, .softcap = 10.0F}, 402);
  check_cuts({.group = 2, .head_dim = 64, .alibi = true}, 403);
  check_cuts({.group = 3, .head_dim = 288, .sliding_window = 40, .sinks = true}, 404);
  check_cuts({.cache_is_f8 = true, .group = 2, .head_dim = 512, .shared_bytes = 100 << 10}, 405);
}

TEST_CASE("a_captured_step_with_nothing_to_do_writes_nothing") {
  const AttentionCase c({.group = 4, .head_dim = 64, .sequences = {rows_of(1, 100)}}, 500);
  c.run({}, false);  // checks what is untouched
}

TEST_CASE("the_decode_grid_is_as_large_as_can_be_at_work") {
  CHECK(decode_grid_blocks(132, 228 << 10) == 264);  // H100
  CHECK(decode_grid_blocks(108, 164 << 10) == 108);  // A100
  CHECK(decode_grid_blocks(142, 100 << 10) == 142);  // L40S
}

TEST_CASE("shapes_without_kernels_are_refused") {
  CHECK_NOTHROW(check_attention(128, 32, 8));
  CHECK_NOTHROW(check_attention(16, 32, 1));
  CHECK_THROWS_AS(check_attention(120, 32, 8), Error);
  CHECK_NOTHROW(check_attention(512, 32, 8));
  CHECK_THROWS_AS(check_attention(528, 32, 8), Error);
  CHECK_THROWS_AS(check_attention(64, 33, 1), Error);
  CHECK_THROWS_AS(check_attention(64, 9, 2), Error);
}

}  // namespace
}  // namespace tgi::cuda
