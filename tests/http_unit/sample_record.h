// A streamed request that went well, and what the daemon's metrics method would answer, for the
// tests of this folder.
#pragma once

#include "cmd/http/metrics.h"
#include "cmd/http/request_record.h"

namespace tgi::http {

// Arrived at 2026-01-02 03:04:05.5 UTC: validation 2 ms, queue 3 ms, prefill 20 ms, decode 100 ms.
RequestRecord sample_record();

// Every family the daemon has, by name and type, with labels as it uses them.
EngineReport sample_report();

}  // namespace tgi::http
