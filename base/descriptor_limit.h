// The soft limit of open descriptors, raised to the hard one: the usual 1024 is for programs that
// use select, and a server or a load generator needs one or two for each client. What can't be
// raised shows later as connections that fail.
#pragma once

#include <sys/resource.h>

namespace tgi {

inline void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace tgi
