#include "cmd/curl/http_date.h"

#include <curl/curl.h>

namespace tgi::curl {

std::optional<std::time_t> parse_http_date(const std::string& text) {
  const time_t when = curl_getdate(text.c_str(), nullptr);
  if (when == -1) return std::nullopt;
  return when;
}

}  // namespace tgi::curl
