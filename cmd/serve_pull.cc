#include "cmd/serve_pull.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/unique_fd.h"
#include "cmd/download/hub_names.h"
#include "cmd/download/run_fetch.h"
#include "ipc/client.h"
#include "ipc/model_name.h"
#include "ipc/protocol.h"

namespace tgi {
namespace {

// ORG/NAME of what clients of ollama write as hf.co/ORG/NAME.
std::string without_host(std::string name) {
  for (const std::string_view host : {"hf.co/", "huggingface.co/"}) {
    if (name.starts_with(host)) name.erase(0, host.size());
  }
  return name;
}

// What a client names may be neither a folder of this machine nor any address.
download::FetchRequest request_of(const std::string& name, const ResolveOptions& resolve) {
  const std::string asked = without_host(name);
  const bool is_of_hub = asked.find('/') != std::string::npos && download::is_remote(asked) &&
                         download::parse_hub_name(asked).has_value();
  if (!is_of_hub) {
    throw Error(Code::kNotFound,
                fmt::format("model '{}' not found: expected ORG/NAME[@REVISION] or "
                            "ORG/NAME:QUANTISATION of the hub, hf.co/ may stand before it",
                            name.substr(0, 200)));
  }
  download::FetchRequest request = download::request_for(asked);
  request.offline = resolve.offline;
  if (!resolve.cache_dir.empty()) {
    request.cache_dir = download::expand_path(resolve.cache_dir, request.variables);
  }
  return request;
}

// The events of a download, one a line, as numbers for `tell`. False: nobody wants them any more.
bool tell_of(const std::string& events, const http::PullProgress& tell) {
  std::istringstream lines(events);
  for (std::string line; std::getline(lines, line);) {
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) continue;
    const bool is_plan = event.value("event", "") == "plan";
    if (!is_plan && event.value("event", "") != "progress") continue;
    const auto total = event.value(is_plan ? "bytes" : "total_bytes", int64_t{0});
    if (!tell(is_plan ? 0 : event.value("bytes", int64_t{0}), total)) return false;
  }
  return true;
}

// Without one nothing could end the pull that is waited for.
UniqueFd new_event() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (fd) return fd;
  throw Error(
      Code::kOverloaded,
      fmt::format("eventfd: {}; ask again when other requests have ended", std::strerror(errno)));
}

// Ends a download while nothing is told of it too, as while the hub lists its files: when the
// gateway ends, or the client is gone.
class EndWatch {
 public:
  EndWatch(int stop_fd, int cut_off_fd, int peer_fd)
      : over_(new_event()), thread_([stop_fd, cut_off_fd, peer_fd, over = over_.get()] {
          std::array<pollfd, 3> ends = {{{.fd = cut_off_fd, .events = POLLIN, .revents = 0},
                                         {.fd = peer_fd, .events = POLLRDHUP, .revents = 0},
                                         {.fd = over, .events = POLLIN, .revents = 0}}};
          while (::poll(ends.data(), ends.size(), -1) < 0 && errno == EINTR) {
          }
          (void)::eventfd_write(stop_fd, 1);
        }) {}
  ~EndWatch() { (void)::eventfd_write(over_.get(), 1); }
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

 private:
  const UniqueFd over_;
  const std::jthread thread_;
};

}  // namespace

std::function<void(const std::string& name, int peer_fd, const http::PullProgress& tell)>
make_puller(const ResolveOptions& resolve, const std::string& socket, int cut_off_fd) {
  const auto one_at_a_time = std::make_shared<std::mutex>();
  return [=](const std::string& name, int peer_fd, const http::PullProgress& tell) {
    const download::FetchRequest request = request_of(name, resolve);
    ipc::check_model_name(name);  // that the daemon will know it by
    const std::unique_lock alone(*one_at_a_time, std::try_to_lock);
    if (!alone.owns_lock()) {
      throw Error(Code::kOverloaded,
                  "another model is being downloaded; ask again when it is here");
    }
    const UniqueFd stop = new_event();
    const auto write = [&](const std::string& events) {
      if (!tell_of(events, tell)) (void)::eventfd_write(stop.get(), 1);
    };
    const download::FetchedModel model = [&] {
      const EndWatch watch(stop.get(), cut_off_fd, peer_fd);
      return download::run_fetch(request, download::ProgressKind::kJson, stop.get(), write);
    }();
    const ipc::Client client({.socket_path = socket});
    client.call(ipc::kLoad, ipc::to_json(ipc::LoadParams{
                                .model = model.path, .name = name, .on_demand = true}));
  };
}

}  // namespace tgi
