// tgi bench: how fast the engine is as a client sees it over the socket, batch by batch (the
// default), or how a server behaves under load: our own daemon (--serving), or any that speaks
// TGI's or OpenAI's interface (--url). This file has the flags; the work is in cmd/bench/.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cmd/sampling_flags.h"
#include "cmd/session.h"

namespace tgi {

struct BenchFlags {
  int64_t prompt_length = 512;  // tokens
  int64_t decode_length = 128;  // tokens
  int64_t warmups = 1;
  uint64_t seed = 1;
  bool json = false;
  bool quiet = false;
  SamplingFlags sampling;

  // The engine, batch by batch.
  std::vector<int> batch_sizes = {1, 4, 16};
  int runs = 5;

  // What was measured before.
  bool history = false;
  int64_t history_limit = 20;

  // A server under load.
  std::string url;       // "": the daemon
  bool serving = false;  // the daemon under load
  std::string api = "openai-chat";
  std::string model;
  std::string api_key;
  bool insecure = false;
  bool ignore_eos = false;
  double timeout = 600;  // seconds
  std::optional<int64_t> concurrency;
  std::optional<int64_t> requests;
  std::optional<double> rate;      // a second
  std::optional<double> duration;  // seconds
  std::string trace;
  double trace_speed = 1;
  double trace_scale = 1;
  std::optional<int64_t> max_total_tokens;
  int64_t shared_prefix = 0;  // tokens
  std::optional<double> tokens_per_word;
  std::string goodput;
  std::string csv;
};

void add_bench_flags(CLI::App& app, BenchFlags& flags);
int run_bench(const BenchFlags& flags, const CommonFlags& common);

}  // namespace tgi
