#include "cmd/download/run_fetch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/unique_fd.h"
#include "cmd/advised_error.h"
#include "cmd/download/converted.h"
#include "cmd/download/disk.h"
#include "cmd/download/hub_names.h"
#include "cmd/download/install_record.h"

namespace tgi::download {
namespace {

constexpr int kTickMs = 100;

// Whether `fd` (or -1) is readable; waits for it or for `done`.
bool is_stopped(int fd, const UniqueFd& done) {
  std::array<pollfd, 2> both = {{{.fd = fd, .events = POLLIN, .revents = 0},
                                 {.fd = done.get(), .events = POLLIN, .revents = 0}}};
  ::poll(both.data(), both.size(), kTickMs);
  return both[0].revents != 0;
}

// The daemon has no part in a download: what its code advises would lead astray.
[[noreturn]] void rethrow_with_advice(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable) throw;
    throw AdvisedError(
        error.code(), error.what(),
        "check the network, https_proxy and HF_ENDPOINT; with HF_HUB_OFFLINE=1 only what is "
        "here is used");
  }
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
  const UniqueFd over(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
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
      const uint64_t one = 1;
      (void)!::write(over.get(), &one, sizeof one);
    });
    // A fetch that is over at once shows nothing but what it says.
    while (!done) {
      if (is_stopped(cancel_fd, over)) {
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
  if (failed) rethrow_with_advice(failed);
  const std::string trouble = record_install(request, model);
  if (!trouble.empty() && kind != ProgressKind::kQuiet && kind != ProgressKind::kJson) {
    write(fmt::format("`tgi ls` will not know of it: {}\n", trouble));
  }
  return model;
}

std::optional<FetchedModel> find_usable(const FetchRequest& request) {
  std::optional<FetchedModel> model = find_model(request);
  if (!model || !needs_conversion(model->path)) return model;
  model->path = converted_folder(*model);
  return is_converted(model->path) ? model : std::nullopt;
}

FetchRequest request_for(const std::string& model) {
  FetchRequest request;
  request.variables = environment();
  request.settings = read_hub_settings(request.variables);
  std::error_code error;
  const bool is_here = std::filesystem::exists(model, error);
  request.model = is_here ? model : name_of_hub_address(model, request.settings.endpoint);
  return request;
}

ProgressKind kind_for_stderr() {
  return ::isatty(STDERR_FILENO) == 1 ? ProgressKind::kTerminal : ProgressKind::kLines;
}

}  // namespace tgi::download
