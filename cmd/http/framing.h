// The head of a request as it came, where the library would tell it otherwise: it decodes %XX in
// values, adds headers of its own, and passes over lines it does not like.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/message.h"

namespace tgi::http {

// `head`: request line and headers.
std::vector<Header> headers_of(std::string_view head);

// Lines of headers that are none (RFC 9112, section 5): others on the way may read them as what the
// library passes over. What is wrong with the first of them, or "".
std::string head_problem(std::string_view head);

// What the library read, by which it decides where the request ends.
struct Framing {
  std::string version;
  std::string target;
  std::vector<std::string> lengths;    // each Content-Length
  std::vector<std::string> encodings;  // each Transfer-Encoding
};

// Framing that two parsers could read differently is refused: what is wrong with it, or "".
// `headers`: those of the request, as they came.
std::string framing_problem(const Framing& framing, const std::vector<Header>& headers);

// Whether another request may follow on the connection (RFC 9112, section 9.3): names of options
// have no case and stand in lists, and HTTP/1.0 has to ask for it.
bool keeps_connection(bool is_http_1_0, const std::vector<Header>& headers);

// How many bytes of a request target in absolute form (RFC 9112, section 3.2.2) stand before the
// path: "http://host:80" of "http://host:80/info"; 0 for other targets.
size_t authority_length(std::string_view target);

bool is_digits(const std::string& text);

}  // namespace tgi::http
