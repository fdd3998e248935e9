#include "engine/model/host_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

// The numbers as floats, row by row, changed by `change`; `what`: what is done, for who can't have
// it.
template <typename Change>
HostWeight change_values(const HostWeight& piece, std::string_view what, Change change) {
  if (piece.format != "dense") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: {}, which is not supported where they are stored as integers",
                            piece.name, what));
  }
  const WeightPart& part = piece.parts.at(0);
  if (part.random) return piece;  // there is nothing to be faithful to
  const auto rows = static_cast<size_t>(piece.rows);
  const auto cols = static_cast<size_t>(piece.cols);
  auto values = std::make_shared<std::vector<float>>(rows * cols);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t col = 0; col < cols; ++col) {
      (*values)[row * cols + col] =
          weight_element(part, static_cast<int64_t>(row), static_cast<int64_t>(col));
    }
  }
  change(std::span(*values));
  HostWeight out = piece;
  out.parts = {part};
  out.parts[0].data = reinterpret_cast<const std::byte*>(values->data());
  out.parts[0].dtype = DType::kF32;
  out.parts[0].row_stride = piece.cols;
  out.parts[0].col_stride = 1;
  out.owner = std::move(values);
  return out;
}

template <typename Change>
HostWeight change_rows(const HostWeight& piece, std::string_view what, Change change) {
  return change_values(piece, what, [&](std::span<float> rest) {
    const auto cols = static_cast<size_t>(piece.cols);
    for (; !rest.empty(); rest = rest.subspan(cols)) change(rest.first(cols));
  });
}

HostWeight divide_rows(const HostWeight& piece) {
  return change_rows(piece, "its rows are divided by their lengths", [](std::span<float> row) {
    double sum = 0.0;
    for (const float x : row) sum += static_cast<double>(x) * static_cast<double>(x);
    // As torch's normalize does.
    const auto length = static_cast<float>(std::max(std::sqrt(sum), 1e-12));
    for (float& x : row) x /= length;
  });
}

HostWeight divide_columns(const HostWeight& piece) {
  const auto cols = static_cast<size_t>(piece.cols);
  return change_values(
      piece, "its columns are divided by their lengths", [&](std::span<float> values) {
        std::vector<double> lengths(cols);
        for (size_t i = 0; i < values.size(); ++i) {
          lengths[i % cols] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        }
        // As Ling's code has it.
        for (double& length : lengths) length = std::sqrt(length) + 1e-7;
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<float>(static_cast<double>(values[i]) / lengths[i % cols]);
        }
      });
}

}  // namespace

HostWeight transpose(HostWeight piece) {
  std::swap(piece.rows, piece.cols);
  WeightPart& part = piece.parts.at(0);
  std::swap(part.rows, part.cols);
  std::swap(part.row_stride, part.col_stride);
  return piece;
}

HostWeight divided(const HostWeight& piece, HeadDivision by) {
  if (by == HeadDivision::kRows) return divide_rows(piece);
  if (by == HeadDivision::kColumns) return divide_columns(piece);
  return piece;
}

void check_router(const HostWeight& piece) {
  if (piece.format != "dense" || piece.parts.at(0).random) return;
  const WeightPart& part = piece.parts.at(0);
  for (int64_t row = 0; row < piece.rows; ++row) {
    for (int64_t col = 0; col < piece.cols; ++col) {
      const float value = weight_element(part, row, col);
      if (std::isfinite(value)) continue;
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: the number in row {}, column {} is {}, with which no expert can "
                              "be chosen; the file is damaged",
                              piece.name, row, col, value));
    }
  }
}

HostWeight add_to_rows(const HostWeight& piece, std::span<const float> added) {
  return change_rows(piece, "a row is added to its rows", [&](std::span<float> row) {
    for (size_t i = 0; i < row.size(); ++i) row[i] += added[i];
  });
}

void norm_rows(std::span<float> rows,
               std::span<const float> weight,
               std::span<const float> bias,
               float eps) {
  for (; !rows.empty(); rows = rows.subspan(weight.size())) {
    const std::span<float> row = rows.first(weight.size());
    const auto count = static_cast<double>(row.size());
    double mean = 0.0;
    for (const float x : row) mean += static_cast<double>(x) / count;
    double variance = 0.0;
    for (const float x : row) variance += std::pow(static_cast<double>(x) - mean, 2) / count;
    const double scale = 1.0 / std::sqrt(variance + static_cast<double>(eps));
    for (size_t i = 0; i < row.size(); ++i) {
      const double normed = (static_cast<double>(row[i]) - mean) * scale;
      row[i] = static_cast<float>(normed * static_cast<double>(weight[i]) +
                                  static_cast<double>(bias[i]));
    }
  }
}

std::vector<float> make_sinusoids(const SinusoidConfig& config,
                                  int32_t num_positions,
                                  int32_t cols) {
  const int32_t half = cols / 2;
  std::vector<float> out;
  out.reserve(static_cast<size_t>(num_positions) * static_cast<size_t>(cols));
  for (int32_t row = 0; row < num_positions; ++row) {
    const double position = double{1} * (config.first_position + row);
    const auto add = [&](double (*wave)(double)) {
      for (int32_t i = 0; i < half; ++i) {
        const double frequency = std::pow(10000.0, -static_cast<double>(i) / config.steps);
        out.push_back(static_cast<float>(wave(position * frequency)));
      }
    };
    add([](double x) { return std::sin(x); });
    add([](double x) { return std::cos(x); });
    out.resize(static_cast<size_t>(row + 1) * static_cast<size_t>(cols));  // of odd ones the last
  }
  return out;
}

}  // namespace tgi
