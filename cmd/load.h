// tgi load: puts a model into the daemon in place of the one that is there.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct LoadFlags {
  std::string model;
  std::string revision;
  bool offline = false;
  std::optional<std::string> load_format;
  std::optional<std::string> quantize;
  std::optional<int64_t> quantize_group_size;
  std::optional<std::string> dtype;
  std::optional<std::string> kv_cache_dtype;
  std::optional<std::string> backend;
  std::optional<int64_t> num_shard;
  std::optional<double> cuda_memory_fraction;
  bool deterministic = false;
};

void add_load_flags(CLI::App& app, LoadFlags& flags);
int run_load(const LoadFlags& flags, const CommonFlags& common);

}  // namespace tgi
