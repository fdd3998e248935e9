// GPTQ against the paper's algorithm in plain double precision, and against what it is for.
#include "engine/quantize/gptq.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/quantize/random_matrix.h"

namespace tgi {
namespace {

using Square = std::vector<std::vector<double>>;

// Gauss-Jordan; the matrix is positive definite.
Square inverse(Square a) {
  const size_t n = a.size();
  Square out(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) out[i][i] = 1.0;
  for (size_t i = 0; i < n; ++i) {
    const double pivot = a[i][i];
    for (size_t j = 0; j < n; ++j) {
      a[i][j] /= pivot;
      out[i][j] /= pivot;
    }
    for (size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = a[k][i];
      for (size_t j = 0; j < n; ++j) {
        a[k][j] -= factor * a[i][j];
        out[k][j] -= factor * out[i][j];
      }
    }
  }
  return out;
}

struct Plain {
  Square h;                       // without damping
  std::vector<float> importance;  // its diagonal
  std::vector<size_t> order;
  std::vector<Square> inverses;  // of the damped columns from each place of the order on
};

Plain prepare(const FloatMatrix& inputs, const GptqOptions& how) {
  const auto n = static_cast<size_t>(inputs.cols);
  Plain out;
  out.h.assign(n, std::vector<double>(n));
  for (int64_t token = 0; token < inputs.rows; ++token) {
    const auto x = inputs.row(token);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) out.h[i][j] += double{x[i]} * double{x[j]};
    }
  }
  double mean = 0.0;
  for (size_t i = 0; i < n; ++i) {
    out.importance.push_back(static_cast<float>(out.h[i][i]));
    mean += out.h[i][i] / static_cast<double>(n);
  }
  out.order.resize(n);
  std::iota(out.order.begin(), out.order.end(), size_t{0});
  if (how.act_order) {
    std::stable_sort(out.order.begin(), out.order.end(),
                     [&](size_t a, size_t b) { return out.importance[a] > out.importance[b]; });
  }
  for (size_t place = 0; place < n; ++place) {
    Square left;
    for (size_t i = place; i < n; ++i) {
      left.emplace_back();
      for (size_t j = place; j < n; ++j) left.back().push_back(out.h[out.order[i]][out.order[j]]);
      left.back()[i - place] += double{how.damping} * mean;
    }
    out.inverses.push_back(inverse(std::move(left)));
  }
  return out;
}

// One column after the other by equation 2 of the paper. Scales are chosen where a group begins, as
// in the program.
GroupedMatrix plain_gptq(const FloatMatrix& w, const FloatMatrix& inputs, const GptqOptions& how) {
  const Plain plain = prepare(inputs, how);
  const auto n = static_cast<size_t>(w.cols);
  const CodeOptions& codes = how.codes;
  const auto size = static_cast<size_t>(codes.group_size);
  GroupedMatrix out = make_grouped(w.rows, w.cols, codes);
  for (int64_t row = 0; row < w.rows; ++row) {
    std::vector<double> x(w.row(row).begin(), w.row(row).end());
    const auto choose = [&](size_t group) {
      const std::vector<float> values(x.begin() + static_cast<ptrdiff_t>(group * size),
                                      x.begin() + static_cast<ptrdiff_t>((group + 1) * size));
      const GroupScale scale = choose_scale(
          values, std::span<const float>(plain.importance).subspan(group * size, size), codes);
      const auto at = static_cast<size_t>(row * out.num_groups()) + group;
      out.scales[at] = scale.scale;
      if (!out.zeros.empty()) out.zeros[at] = scale.zero;
    };
    if (how.act_order) {
      for (size_t group = 0; group < n / size; ++group) choose(group);
    }
    for (size_t place = 0; place < n; ++place) {
      const size_t column = plain.order[place];
      if (!how.act_order && column % size == 0) choose(column / size);
      const auto at = static_cast<size_t>(row * out.num_groups()) + column / size;
      const GroupScale scale{.scale = out.scales[at],
                             .zero = out.zeros.empty() ? int8_t{0} : out.zeros[at]};
      const int8_t code = code_of(static_cast<float>(x[column]), scale, codes.bits);
      out.codes[static_cast<size_t>(row) * n + column] = code;
      const Square& inverted = plain.inverses[place];
      const double error = (x[column] - double{value_of(code, scale)}) / inverted[0][0];
      for (size_t i = place; i < n; ++i) x[plain.order[i]] -= error * inverted[0][i - place];
    }
  }
  return out;
}

GramMatrix gram_of(FloatMatrix& inputs) {
  GramMatrix gram(inputs.cols);
  gram.add(as_tensor(inputs), 2);
  return gram;
}

TEST_CASE("the same codes as the paper's algorithm in double precision") {
  FloatMatrix inputs = correlated_inputs(200, 64, 11);
  const FloatMatrix source = random_matrix(6, 64, 12);
  for (const bool symmetric : {true, false}) {
    for (const bool act_order : {false, true}) {
      for (const int32_t group_size : {16, 64}) {
        const GptqOptions options{
            .codes = {.bits = 4, .group_size = group_size, .symmetric = symmetric},
            .act_order = act_order,
            .num_threads = 2};
        FloatMatrix w = source;
        const GroupedMatrix got = GptqSolver(gram_of(inputs), options).quantize(w);
        const GroupedMatrix expected = plain_gptq(source, inputs, options);
        INFO("symmetric " << symmetric << ", act_order " << act_order << ", group " << group_size);
        CHECK(got.codes == expected.codes);
        CHECK(got.scales == expected.scales);
        CHECK(got.zeros == expected.zeros);
      }
    }
  }
}

TEST_CASE("columns beyond a block are brought up to date") {
  // More than one block of 128 columns: the error of the output is what tells.
  FloatMatrix inputs = correlated_inputs(700, 320, 21);
  const FloatMatrix source = random_matrix(40, 320, 22);
  for (const bool act_order : {false, true}) {
    const CodeOptions codes{.bits = 4, .group_size = 64};
    FloatMatrix w = source;
    const GptqSolver solver(gram_of(inputs),
                            {.codes = codes, .act_order = act_order, .num_threads = 2});
    const double gptq = output_error(source, dequantize(solver.quantize(w)), inputs);
    const double nearest =
        output_error(source, dequantize(round_to_nearest(source, {}, codes, 1)), inputs);
    INFO("gptq " << gptq << ", to nearest " << nearest);
    CHECK(gptq < 0.6 * nearest);
  }
}

TEST_CASE("a channel that is never used costs nothing") {
  FloatMatrix inputs = correlated_inputs(100, 32, 31);
  for (int64_t row = 0; row < inputs.rows; ++row) {
    inputs.row(row)[5] = 0.0F;
    inputs.row(row)[20] = 0.0F;
  }
  const FloatMatrix w = random_matrix(4, 32, 32);
  for (const bool act_order : {false, true}) {
    FloatMatrix copy = w;
    const GptqSolver solver(gram_of(inputs),
                            {.codes = {.bits = 4, .group_size = 32}, .act_order = act_order});
    const FloatMatrix back = dequantize(solver.quantize(copy));
    for (int64_t row = 0; row < w.rows; ++row) {
      CHECK(back.row(row)[5] == 0.0F);
      CHECK(back.row(row)[20] == 0.0F);
    }
  }
}

TEST_CASE("fewer tokens than channels still give a result") {
  FloatMatrix inputs = correlated_inputs(3, 64, 41);
  FloatMatrix w = random_matrix(4, 64, 42);
  const GptqSolver solver(gram_of(inputs), {.codes = {.bits = 4, .group_size = 32}});
  const FloatMatrix back = dequantize(solver.quantize(w));
  for (const float value : back.values) CHECK(std::isfinite(value));
}

TEST_CASE("the sum of outer products does not depend on how the text was cut") {
  FloatMatrix inputs = correlated_inputs(90, 200, 51);
  const GramMatrix whole = gram_of(inputs);
  GramMatrix parts(200);
  for (int64_t first = 0; first < 90; first += 45) {
    parts.add({inputs.values.data() + first * 200, DType::kF32, 45, 200, 200}, 1);
  }
  CHECK(parts.num_tokens() == 90);
  for (int64_t i = 0; i < 200; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const auto at = static_cast<size_t>(i * 200 + j);
      CHECK(parts.values()[at] == Approx(whole.values()[at]).margin(1e-2));
    }
  }
}

}  // namespace
}  // namespace tgi
