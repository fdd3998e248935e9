#include "base/current_error.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <system_error>

namespace tgi {

Error current_error() {
  try {
    throw;
  } catch (const Error& known) {
    return known;
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "no memory left"};
  } catch (const std::system_error& error) {
    // Of what is called here only a thread fails so.
    if (error.code() != std::errc::resource_unavailable_try_again) {
      return {Code::kInternal, error.what()};
    }
    return {Code::kOutOfMemory,
            fmt::format("no further thread can be started ({}): raise the limit of processes and "
                        "threads (ulimit -u, TasksMax= of a service, --pids-limit of a container) "
                        "or of memory (ulimit -v)",
                        error.what())};
  } catch (const std::exception& other) {
    return {Code::kInternal, other.what()};
  } catch (...) {
    return {Code::kInternal, "unknown exception"};
  }
}

}  // namespace tgi
