// tgi quantize: lets the daemon write a quantised checkpoint of a model.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct QuantizeFlags {
  std::string model;
  std::string output;
  std::string format;
  std::optional<int64_t> group_size;
  std::optional<std::string> calibration;
  std::optional<int64_t> num_sequences;
  std::optional<int64_t> sequence_length;
  bool act_order = false;
  std::optional<double> damping;
  bool force = false;
  bool quiet = false;
  bool json = false;
};

void add_quantize_flags(CLI::App& app, QuantizeFlags& flags);
int run_quantize(const QuantizeFlags& flags, const CommonFlags& common);

}  // namespace tgi
