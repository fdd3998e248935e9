// tgi ps: what the daemon is doing. Never starts one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct PsFlags {
  bool json = false;
  bool watch = false;
  bool ready = false;
  double interval_seconds = 1;
};

void add_ps_flags(CLI::App& app, PsFlags& flags);
int run_ps(const PsFlags& flags, const CommonFlags& common);

std::string format_status(const ipc::Status& status);

// "1.5 GiB", "12.0 MiB", "800 B".
std::string format_bytes(int64_t bytes);

// "12.3 s", "13 min 12 s", "2 h 5 min".
std::string format_duration(double seconds);

// "256", "192, with values of 128"
std::string format_head_size(const ipc::KvHeads& heads);

}  // namespace tgi
