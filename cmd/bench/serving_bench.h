// tgi bench --url, --serving: load of a wanted shape on a server, and what its clients would see.
#pragma once

#include "cmd/bench.h"

namespace tgi::bench {

// Exit status 130 after Ctrl-C, with what was measured until then; that of kUnavailable when not
// one request was answered.
int run_serving_bench(const BenchFlags& flags, Session& session);

}  // namespace tgi::bench
