// A load test in words: tables, JSON, and a CSV file with one row a request.
#pragma once

#include <optional>
#include <string>

#include "cmd/bench/load_driver.h"
#include "cmd/bench/serving_stats.h"
#include "ipc/protocol.h"

namespace tgi::bench {

struct ServingReport {
  std::string server;               // an address or a socket
  std::string api;                  // "socket" or the name of an Api
  std::string model;                // "" when unknown
  std::string load;                 // "8 at once, 100 requests"
  std::optional<std::string> note;  // about the prompts
  std::optional<GoodputTarget> target;
  ServingStats stats;
};

std::string serving_tables(const ServingReport& report);
std::string serving_json(const ServingReport& report);

std::string serving_csv(const LoadResult& load, const std::optional<GoodputTarget>& target);

}  // namespace tgi::bench
