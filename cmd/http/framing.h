// The head of a request as it came, where the library would tell it otherwise: it decodes %XX in
// values, adds headers of its own, and passes over lines it does not like.
#pragma once

#include <httplib.h>

#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/message.h"

namespace tgi::http {

// `head`: request line and headers.
std::vector<Header> headers_of(std::string_view head);

// Framing that two parsers could read differently is refused: what is wrong with it, or "".
// `headers`: those of the request, as they came.
std::string framing_problem(const httplib::Request& request, const std::vector<Header>& headers);

bool is_digits(const std::string& text);

}  // namespace tgi::http
