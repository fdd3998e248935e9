// How many requests and connections a gateway may take with the descriptors it may open, so that a
// crowd is told 429 by the limits below and never meets "Too many open files".
#pragma once

#include <cstdint>
#include <string>

namespace tgi::http {

struct DescriptorBudget {
  int64_t num_requests = 0;     // to generate, at once, in the background as well
  int64_t num_connections = 0;  // of clients
  std::string notice{};         // what to tell the user; "" when all that is asked fits
};

// `limit`: of open descriptors. `num_requests`: asked for at once. Throws kInvalidArgument when too
// few are left to serve anybody.
DescriptorBudget plan_descriptors(int64_t limit, int64_t num_requests);

}  // namespace tgi::http
