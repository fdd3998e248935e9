// What probing and load over HTTP share: the settings of a request, and failures in our words.
#pragma once

#include <string>
#include <string_view>

#include "cmd/curl/transfer.h"

namespace tgi::bench {

struct HttpTarget;

// Address, headers, limits, TLS. stream: the answer is to come as events.
curl::Settings request_settings(const HttpTarget& target, std::string_view path, bool stream);

// "cannot connect", "host not found", "timeout", "tls", "connection lost", "transfer".
std::string error_kind(curl::Failure failure);

}  // namespace tgi::bench
