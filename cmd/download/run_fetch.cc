#include "cmd/download/run_fetch.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>

#include "cmd/download/converted.h"
#include "cmd/download/install_record.h"

namespace tgi::download {
namespace {

constexpr int kTickMs = 100;

bool is_readable(int fd, int timeout_ms) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};  // one of -1 is only slept on
  return ::poll(&one, 1, timeout_ms) > 0;
}

}  // namespace

FetchedModel run_fetch(const FetchRequest& request,
                       ProgressKind kind,
                       int cancel_fd,
                       const std::function<void(const std::string&)>& write) {
  Progress progress(kind, write);
  FetchJob job(request.model);
  FetchedModel model;
  std::exception_ptr failed;
  std::atomic<bool> done = false;
  {
    std::jthread work([&](std::stop_token stop) {
      try {
        model = fetch_model(request, progress, stop);
        use_converted(model, request, progress, stop);
      } catch (...) {
        failed = std::current_exception();
      }
      done = true;
      done.notify_all();
    });
    // A fetch that is over at once shows nothing but what it says.
    while (!done) {
      if (is_readable(cancel_fd, kTickMs)) {
        work.request_stop();
        done.wait(false);
      }
      if (!done) progress.tick();
      const auto [done_bytes, total_bytes] = progress.done_and_total_bytes();
      job.tick(done_bytes, total_bytes);
    }
  }
  progress.finish();
  job.end(failed);
  if (failed) std::rethrow_exception(failed);
  const std::string trouble = record_install(request, model);
  if (!trouble.empty() && kind != ProgressKind::kQuiet && kind != ProgressKind::kJson) {
    write(fmt::format("`tgi ls` will not know of it: {}\n", trouble));
  }
  return model;
}

FetchRequest request_for(const std::string& model) {
  FetchRequest request;
  request.model = model;
  request.variables = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  request.settings = read_hub_settings(request.variables);
  return request;
}

ProgressKind kind_for_stderr() {
  return ::isatty(STDERR_FILENO) == 1 ? ProgressKind::kTerminal : ProgressKind::kLines;
}

}  // namespace tgi::download
