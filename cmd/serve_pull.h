// Models that clients of `tgi serve --allow-pull` have downloaded.
#pragma once

#include <functional>
#include <string>

#include "cmd/http/service.h"
#include "cmd/model_path.h"

namespace tgi {

// What Service::pull is: the daemon at `socket` loads what was brought when requests ask for it.
// `cut_off_fd`, when it is readable, ends a download.
std::function<void(const std::string& name, int peer_fd, const http::PullProgress& tell)>
make_puller(const ResolveOptions& resolve, const std::string& socket, int cut_off_fd);

}  // namespace tgi
