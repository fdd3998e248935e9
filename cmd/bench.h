// tgi bench: how fast the daemon prefills and decodes, as a client sees it over the socket, and
// what part of the machine's memory bandwidth decoding reaches.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct BenchFlags {
  int64_t prompt_length = 512;
  int64_t decode_length = 128;
  std::vector<int> batch_sizes = {1, 4, 16};
  int runs = 5;
  bool json = false;
};

void add_bench_flags(CLI::App& app, BenchFlags& flags);
int run_bench(const BenchFlags& flags, const CommonFlags& common);

}  // namespace tgi
