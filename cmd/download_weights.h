// tgi download-weights: brings a model to this machine and says where it is.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct DownloadWeightsFlags {
  std::string model;
  std::optional<std::string> revision;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::optional<std::string> cache_dir;
  std::optional<std::string> token;
  bool offline = false;
  bool merge_lora = false;
  bool quiet = false;
  bool json = false;
};

void add_download_weights_flags(CLI::App& app, DownloadWeightsFlags& flags);
int run_download_weights(const DownloadWeightsFlags& flags, const CommonFlags& common);

}  // namespace tgi
