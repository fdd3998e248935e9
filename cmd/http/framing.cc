#include "cmd/http/framing.h"

#include <strings.h>

#include <algorithm>

namespace tgi::http {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

bool is_digits(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<Header> headers_of(std::string_view head) {
  std::vector<Header> out;
  for (size_t at = head.find('\n'); at < head.size();) {
    const size_t end = std::min(head.find('\n', at + 1), head.size());
    const std::string_view line = head.substr(at + 1, end - at - 1);
    if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
      out.push_back({std::string(trimmed(line.substr(0, colon))),
                     std::string(trimmed(line.substr(colon + 1)))});
    }
    at = end;
  }
  return out;
}

std::string framing_problem(const httplib::Request& request, const std::vector<Header>& headers) {
  const size_t num_lengths = request.get_header_value_count("Content-Length");
  const size_t num_encodings = request.get_header_value_count("Transfer-Encoding");
  const auto num_came = [&](const char* name) {
    return static_cast<size_t>(std::count_if(
        headers.begin(), headers.end(),
        [&](const Header& header) { return ::strcasecmp(header.name.c_str(), name) == 0; }));
  };
  if (num_came("Content-Length") != num_lengths || num_came("Transfer-Encoding") != num_encodings) {
    return "Content-Length or Transfer-Encoding is malformed";
  }
  if (num_lengths + num_encodings > 1) {
    return "expected one Content-Length or one Transfer-Encoding header, got both or several";
  }
  if (num_encodings == 1 &&
      ::strcasecmp(request.get_header_value("Transfer-Encoding").c_str(), "chunked") != 0) {
    return "Transfer-Encoding: expected chunked";
  }
  const std::string length = request.get_header_value("Content-Length");
  if (num_lengths == 1 && (!is_digits(length) || length.size() > 18)) {
    return "Content-Length: expected a number";
  }
  return "";
}

}  // namespace tgi::http
