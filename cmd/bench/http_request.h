// What probing and load over HTTP share: libcurl's options, and its errors in our words.
#pragma once

#include <curl/curl.h>

#include <string>
#include <string_view>

namespace tgi::bench {

struct HttpTarget;

void init_curl();  // once a process; more does no harm

// The list is to be freed with curl_slist_free_all.
curl_slist* make_headers(const HttpTarget& target, bool stream);

// Address, headers, limits, TLS. `headers` must outlive the transfer.
void set_common_options(CURL* easy,
                        const HttpTarget& target,
                        std::string_view path,
                        curl_slist* headers);

// "cannot connect", "host not found", "timeout", "tls", "connection lost", "transfer".
std::string error_kind(CURLcode result);

}  // namespace tgi::bench
