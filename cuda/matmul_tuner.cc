#include "cuda/matmul_tuner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"

namespace tgi::cuda {
namespace {

constexpr int kRuns = 5;

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

std::string hex(const CublasAlgorithm& algorithm) {
  std::string out;
  for (const uint64_t word : algorithm) out += fmt::format("{:016x}", word);
  return out;
}

std::optional<CublasAlgorithm> from_hex(const std::string& text) {
  CublasAlgorithm out{};
  if (text.size() != 16 * out.size()) return std::nullopt;
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string word = text.substr(16 * i, 16);
    if (word.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
    out[i] = std::stoull(word, nullptr, 16);
  }
  return out;
}

}  // namespace

MatmulShape shape_of(const MatmulLaunch& launch) {
  return {.rows = launch.x.rows,
          .outputs = launch.outputs,
          .cols = launch.x.cols,
          .alignment = alignment_of(launch),
          .dtype = launch.x.dtype,
          .out_dtype = launch.out.dtype,
          .packed = 0};
}

MatmulShape packed_matmul_shape(const PackedLaunch& launch) {
  return {.rows = row_bucket(launch.x.rows),
          .outputs = launch.shape.outputs,
          .cols = launch.shape.cols,
          .alignment = kMaxAlignment,
          .dtype = launch.x.dtype,
          .out_dtype = launch.out.dtype,
          .packed = launch.shape.kind()};
}

int32_t unpacked_outputs(const PackedShape& shape, size_t max_bytes) {
  const auto fit_in = [&](size_t bytes) {
    return static_cast<int64_t>(bytes / (static_cast<size_t>(shape.cols) * 2));
  };
  const int64_t wanted = std::max<int64_t>(fit_in(size_t{64} << 20), 4096);
  const int64_t fit = std::min(wanted, fit_in(max_bytes));
  const int64_t unit = fit < 128 ? kPanelOutputs : 128;
  const int64_t most = std::max<int64_t>(fit / unit * unit, unit);
  const int64_t parts = (shape.outputs + most - 1) / most;
  return static_cast<int32_t>(std::min(most, round_up((shape.outputs + parts - 1) / parts, unit)));
}

int64_t unpacked_bytes(const PackedShape& shape) {
  return int64_t{std::min(unpacked_outputs(shape), shape.outputs)} * shape.cols * 2;
}

int64_t row_bucket(int64_t rows) {
  if (rows <= 8)
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 1))));
  if (rows <= 32) return round_up(rows, 8);
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows - 1)));
  return round_up(rows, power / 4);
}

std::vector<int64_t> row_buckets(int64_t max_rows) {
  std::vector<int64_t> out;
  for (int64_t rows = 1; rows <= max_rows; rows = out.back() + 1) {
    out.push_back(row_bucket(rows));
  }
  return out;
}

MatmulTuner::MatmulTuner(std::string path, std::string combination)
    : path_(std::move(path)), combination_(std::move(combination)) {
  if (!path_.empty()) load();
}

void MatmulTuner::load() {
  std::ifstream file(path_);
  std::string line;
  try {
    if (!std::getline(file, line)) return;
    const Json head = parse_json(line);
    if (JsonReader(head, "head").string("combination") != combination_) return;
    while (std::getline(file, line)) {
      const Json json = parse_json(line);
      const JsonReader row(json, "row");
      const auto dtype = dtype_from_name(row.string("dtype"));
      const auto out_dtype = dtype_from_name(row.string("out_dtype"));
      MatmulChoice choice;
      choice.microseconds = row.number("us");
      if (row.has("algorithm")) {
        choice.algorithm = from_hex(row.string("algorithm"));
        if (!choice.algorithm) continue;
      }
      if (!dtype || !out_dtype) continue;
      choices_[{.rows = row.integer("rows"),
                .outputs = row.integer("outputs"),
                .cols = row.integer("cols"),
                .alignment = row.integer("alignment"),
                .dtype = *dtype,
                .out_dtype = *out_dtype,
                .packed = static_cast<uint32_t>(row.integer("packed"))}] = choice;
    }
  } catch (const Error& error) {
    log_warn("the measured times of matmuls can't be read, and are measured again",
             {{"file", path_}, {"error", error.what()}});
    choices_.clear();
  }
}

const MatmulChoice* MatmulTuner::find(const MatmulShape& shape) const {
  if (const auto it = choices_.find(shape); it != choices_.end()) return &it->second;
  const auto it = adopted_.find(shape);
  return it == adopted_.end() ? nullptr : &it->second;
}

const MatmulChoice& MatmulTuner::choose(
    const MatmulShape& shape,
    const std::vector<std::optional<CublasAlgorithm>>& candidates,
    const std::function<double(const std::optional<CublasAlgorithm>&)>& run) {
  if (candidates.size() == 1)
    return choices_[shape] = {.algorithm = candidates[0], .microseconds = 0.0};
  std::optional<MatmulChoice> best;
  for (const std::optional<CublasAlgorithm>& candidate : candidates) {
    try {
      (void)run(candidate);  // the first run pays for what a kernel loads
      std::vector<double> times;
      for (int i = 0; i < kRuns; ++i) times.push_back(run(candidate));
      std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
      const double median = times[kRuns / 2];
      if (!best || median < best->microseconds)
        best = {.algorithm = candidate, .microseconds = median};
    } catch (const Error& error) {
      if (error.code() != Code::kUnsupported) throw;
    }
  }
  if (!best) {
    throw Error(Code::kUnsupported, fmt::format("no kernel multiplies ({}, {}) by ({}, {})",
                                                shape.rows, shape.cols, shape.outputs, shape.cols));
  }
  changed_ = true;
  return choices_[shape] = *best;
}

void MatmulTuner::save() {
  if (path_.empty() || !changed_) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  // Two processes may save at once: each writes its own file, the last rename stands.
  const std::string beside = fmt::format("{}.{}", path_, ::getpid());
  std::ofstream file(beside);
  file << Json{{"combination", combination_}}.dump() << '\n';
  for (const auto& [shape, choice] : choices_) {
    Json row = {{"rows", shape.rows},
                {"outputs", shape.outputs},
                {"cols", shape.cols},
                {"alignment", shape.alignment},
                {"dtype", dtype_name(shape.dtype)},
                {"out_dtype", dtype_name(shape.out_dtype)},
                {"packed", shape.packed},
                {"us", choice.microseconds}};
    if (choice.algorithm) row["algorithm"] = hex(*choice.algorithm);
    file << row.dump() << '\n';
  }
  file.close();
  if (file.fail() || std::rename(beside.c_str(), path_.c_str()) != 0) {
    std::remove(beside.c_str());
    log_warn("the measured times of matmuls can't be kept", {{"file", path_}});
    return;
  }
  changed_ = false;
}

}  // namespace tgi::cuda
