// tgi ps -w: what each model is doing, again and again, until Ctrl-C. On a terminal a table that is
// drawn over, elsewhere a line for each model and moment.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cmd/session.h"

namespace tgi {

// What is known of a model at a moment. Sums are since it was loaded.
struct ModelMoment {
  std::string name;
  std::string phase;
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_blocks = 0;
  int64_t num_blocks_used = 0;
  int64_t num_blocks_cached = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_generated_tokens = 0;
  int64_t num_decode_steps = 0;   // without prompt tokens
  double decode_seconds = 0;      // that they took
  int64_t num_prefill_steps = 0;  // with prompt tokens
  double prefill_seconds = 0;
};

struct Moment {
  double seconds = 0;  // of a steady clock
  std::vector<ModelMoment> models;
};

Moment moment_of(const ipc::Status& status,
                 const std::vector<ipc::MetricFamily>& families,
                 double seconds);

// The table's head, and a line for each model that `now` has: rates since `before`, "-" where there
// are none. Names take so many characters: of longer ones the end is shown.
std::string watch_head(size_t name_width);
std::vector<std::string> watch_lines(const Moment& before, const Moment& now, size_t name_width);

// Returns 0 after Ctrl-C. Throws when the daemon goes away.
int watch_daemon(Session& session, double interval_seconds, bool json);

}  // namespace tgi
