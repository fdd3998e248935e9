// ReferenceDevice: the ops of engine/device/stream_ops.h.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/cpu/reference_device.h"
#include "engine/cpu/reference_values.h"

namespace tgi {
namespace {

std::vector<double> coefficients(const StreamRouting& routing, int64_t row) {
  std::vector<double> out(static_cast<size_t>(routing.matrix->cols / routing.count), 0.0);
  for (int64_t i = 0; i < routing.matrix->cols; ++i) {
    const double routed =
        std::tanh(at(routing.routed, row, i % routing.count) * static_cast<double>(routing.scale));
    out[static_cast<size_t>(i / routing.count)] += at(*routing.matrix, 0, i) * routed;
  }
  return out;
}

double mean_square(const Tensor& x, int64_t row, double mean = 0.0) {
  double sum = 0.0;
  for (int64_t col = 0; col < x.cols; ++col) {
    sum += (at(x, row, col) - mean) * (at(x, row, col) - mean);
  }
  return sum / static_cast<double>(x.cols);
}

double number(const StreamConnection& connection, int64_t row, int64_t index, int64_t kind) {
  const double square = mean_square(connection.streams, row) + double{connection.norm_eps};
  return at(connection.made, row, index) / std::sqrt(square) * at(*connection.scales, 0, kind) +
         at(*connection.base, 0, index);
}

// (count, count): from stream j to stream k.
std::vector<double> mix_of(const StreamConnection& connection, int64_t row, int32_t turns) {
  const int64_t count = connection.count;
  std::vector<double> mix(static_cast<size_t>(count * count), 0.0);
  const auto cell = [&](int64_t j, int64_t k) -> double& {
    return mix[static_cast<size_t>(j * count + k)];
  };
  for (int64_t j = 0; j < count; ++j) {
    cell(j, j) = 1.0;
    if (turns == 0) continue;
    double highest = -HUGE_VAL;
    for (int64_t k = 0; k < count; ++k) {
      cell(j, k) = number(connection, row, (2 + j) * count + k, 2);
      highest = std::max(highest, cell(j, k));
    }
    double sum = 0.0;
    for (int64_t k = 0; k < count; ++k) sum += cell(j, k) = std::exp(cell(j, k) - highest);
    for (int64_t k = 0; k < count; ++k) cell(j, k) = cell(j, k) / sum + double{connection.eps};
  }
  for (int32_t step = 0; step < 2 * turns - 1; ++step) {
    const bool divides_columns = step % 2 == 0;
    for (int64_t a = 0; a < count; ++a) {
      const auto each = [&](int64_t b) -> double& {
        return divides_columns ? cell(b, a) : cell(a, b);
      };
      double sum = double{connection.eps};
      for (int64_t b = 0; b < count; ++b) sum += each(b);
      for (int64_t b = 0; b < count; ++b) each(b) /= sum;
    }
  }
  return mix;
}

}  // namespace

void ReferenceDevice::predict_streams(const PredictStreamsArgs& args) {
  const int64_t count = args.routing.count;
  const int64_t cols = args.streams.cols / count;
  std::vector<double> before(static_cast<size_t>(count));
  for (int64_t row = 0; row < args.streams.rows; ++row) {
    const std::vector<double> weights = coefficients(args.routing, row);
    for (int64_t col = 0; col < cols; ++col) {
      for (int64_t j = 0; j < count; ++j) {
        before[static_cast<size_t>(j)] = at(args.streams, row, j * cols + col);
      }
      for (int64_t i = 0; i < count; ++i) {
        double value = before[static_cast<size_t>(i)];
        for (int64_t j = 0; j < count; ++j) {
          value += weights[static_cast<size_t>(i * count + j)] * before[static_cast<size_t>(j)];
        }
        put(args.streams, row, i * cols + col, value);
      }
    }
  }
}

void ReferenceDevice::correct_streams(const CorrectStreamsArgs& args) {
  const int64_t count = args.routing.count;
  const int64_t cols = args.x.cols;
  for (int64_t row = 0; row < args.streams.rows; ++row) {
    const std::vector<double> weights = coefficients(args.routing, row);
    for (int64_t col = 0; col < cols; ++col) {
      const double change = at(args.x, row, col) - at(args.streams, row, args.active * cols + col);
      for (int64_t i = 0; i < count; ++i) {
        put(args.streams, row, i * cols + col,
            at(args.streams, row, i * cols + col) +
                (1.0 + weights[static_cast<size_t>(i)]) * change);
      }
      const double scale = args.scales == nullptr ? 1.0 : at(*args.scales, 0, col);
      put(args.out, row, col, at(args.streams, row, args.active * cols + col) * scale);
    }
  }
}

void ReferenceDevice::collapse_streams(const CollapseStreamsArgs& args) {
  const StreamConnection& connection = args.connection;
  for (int64_t row = 0; row < args.out.rows; ++row) {
    for (int64_t col = 0; col < args.out.cols; ++col) {
      double sum = 0.0;
      for (int64_t i = 0; i < connection.count; ++i) {
        const double weight = sigmoid(number(connection, row, i, 0)) + double{connection.eps};
        sum += weight * at(connection.streams, row, i * args.out.cols + col);
      }
      put(args.out, row, col, sum);
    }
  }
}

void ReferenceDevice::expand_streams(const ExpandStreamsArgs& args) {
  const StreamConnection& connection = args.connection;
  const int64_t count = connection.count;
  const int64_t cols = args.x.cols;
  for (int64_t row = 0; row < args.x.rows; ++row) {
    const std::vector<double> mix = mix_of(connection, row, args.mixing_turns);
    std::vector<double> weights;
    for (int64_t k = 0; k < count; ++k) {
      weights.push_back(double{args.magnitude} * sigmoid(number(connection, row, count + k, 1)) +
                        double{args.branch_eps});
    }
    for (int64_t col = 0; col < cols; ++col) {
      std::vector<double> before;
      for (int64_t j = 0; j < count; ++j)
        before.push_back(at(connection.streams, row, j * cols + col));
      for (int64_t k = 0; k < count; ++k) {
        double sum = weights[static_cast<size_t>(k)] * at(args.x, row, col);
        for (int64_t j = 0; j < count; ++j) {
          sum += mix[static_cast<size_t>(j * count + k)] * before[static_cast<size_t>(j)];
        }
        put(connection.streams, row, k * cols + col, sum);
      }
    }
  }
}

void ReferenceDevice::match_rms(const MatchRmsArgs& args) {
  for (int64_t row = 0; row < args.x.rows; ++row) {
    const double own = mean_square(args.x, row);
    const double least = static_cast<double>(args.least_square);
    const double factor = std::sqrt(mean_square(args.like, row) / (own < least ? least : own));
    for (int64_t col = 0; col < args.x.cols; ++col) {
      put(args.x, row, col, at(args.x, row, col) * factor);
    }
  }
}

void ReferenceDevice::statistical_top_k(const StatisticalTopKArgs& args) {
  for (int64_t row = 0; row < args.x.rows; ++row) {
    double mean = 0.0;
    for (int64_t col = 0; col < args.x.cols; ++col) mean += at(args.x, row, col);
    mean /= static_cast<double>(args.x.cols);
    const double deviation = std::sqrt(mean_square(args.x, row, mean));
    const double cutoff = mean + deviation * static_cast<double>(args.deviations);
    for (int64_t col = 0; col < args.x.cols; ++col) {
      const double above = at(args.x, row, col) - cutoff;
      put(args.x, row, col, above < 0.0 ? 0.0 : above);
    }
  }
}

}  // namespace tgi
