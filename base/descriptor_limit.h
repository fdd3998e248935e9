// The soft limit of open descriptors, raised to the hard one: the usual 1024 is for programs that
// use select, and a server or a load generator needs one or two for each client. What can't be
// raised shows later as connections that fail.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <cstdint>

namespace tgi {

// Returns the limit that holds from now on.
inline int64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return INT_MAX;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
}

}  // namespace tgi
