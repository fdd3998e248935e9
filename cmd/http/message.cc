#include "cmd/http/message.h"

#include <strings.h>

namespace tgi::http {

std::string_view Request::header(std::string_view name) const {
  for (const Header& each : headers) {
    if (each.name.size() == name.size() &&
        ::strncasecmp(each.name.data(), name.data(), name.size()) == 0) {
      return each.value;
    }
  }
  return {};
}

std::optional<std::string> Request::query_value(std::string_view name) const {
  for (const Header& each : query) {
    if (each.name == name) return each.value;
  }
  return std::nullopt;
}

Response plain_text(int status, std::string text) {
  return {.status = status,
          .content_type = text.empty() ? "" : "text/plain; charset=utf-8",
          .body = std::move(text)};
}

}  // namespace tgi::http
