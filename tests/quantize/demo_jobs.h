// Jobs that quantise the demo model.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/quantize/quantizer.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/demo_model.h"
#include "tests/temp_folder.h"

namespace tgi {

inline QuantizeOptions demo_options(const TempFolder& folder,
                                    const std::string& format,
                                    const std::string& name = "out") {
  QuantizeOptions options;
  options.model = "demo";
  options.folder = folder.file(name);
  options.format = format;
  // What the demo model has learned to write; scripts/make_demo_text --seed 77 --documents 14, a
  // text in a line.
  options.calibration = {.file = std::string(TGI_SOURCE_DIR) + "/tests/quantize/stories.jsonl",
                         .num_sequences = 14,
                         .sequence_length = 128};
  return options;
}

inline QuantizeResult quantize_demo(
    const QuantizeOptions& options,
    std::function<void(const QuantizeProgress&)> on_progress = nullptr,
    std::stop_token stop = {}) {
  const auto files = open_demo_model();
  return quantize_model({.files = *files,
                         .options = options,
                         .backend = find_backend("cpu"),
                         .num_threads = 1,
                         .on_progress = std::move(on_progress),
                         .stop = std::move(stop)});
}

inline std::string error_of(const QuantizeOptions& options) {
  try {
    (void)quantize_demo(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tgi
