// What the weight format that a config names makes of one matrix of files in memory, and what is
// said of a config or of weights that it can't read.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/files/file_source.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"

namespace tgi {

inline WeightProblems matrix_problems(const FileSource& files,
                                      const Json& config,
                                      const MatrixSpec& spec) {
  const auto checkpoint = open_checkpoint(files);
  WeightProblems problems;
  find_weight_format(JsonReader(config, "")).collect(config, *checkpoint, spec, problems);
  return problems;
}

// `storage`: without one, what the format asks for, the rest in bf16.
inline HostWeight read_block(const FileSource& files,
                             const Json& config,
                             const MatrixSpec& spec,
                             Range rows,
                             Range cols,
                             const std::optional<MatrixStorage>& storage = {}) {
  const auto checkpoint = open_checkpoint(files);
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  WeightProblems problems;
  const auto tensors = format.collect(config, *checkpoint, spec, problems);
  REQUIRE(problems.empty());
  return format.slice(
      config, *checkpoint, spec, tensors, rows, cols,
      storage ? *storage : storage_of(format.form_of(config, spec), cols, DType::kBF16));
}

// What is wrong with the numbers of the whole matrix; "": nothing.
inline std::string block_failure(const FileSource& files,
                                 const Json& config,
                                 const MatrixSpec& spec) {
  try {
    (void)read_block(files, config, spec, {0, spec.rows}, {0, spec.cols});
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

// What is wrong with the settings; "": nothing.
inline std::string claim_error(const Json& quantization) {
  const Json config = {{"quantization_config", quantization}};
  try {
    (void)find_weight_format(JsonReader(config, ""));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tgi
