#include "cmd/http/framing.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "cmd/http/log_text.h"

namespace tgi::http {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// Whether the text may be a host with a port (RFC 3986, section 3.2): no path, no user, and no %XX,
// which no name of a machine that listens here needs.
bool is_authority(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-._~:[]!$&'()*+,;=").find(static_cast<char>(c)) !=
               std::string_view::npos;
  });
}

// RFC 9112, section 3.2.
std::string host_problem(const std::string& version, const std::vector<Header>& headers) {
  const auto is_host = [](const Header& header) { return same_name(header.name, "Host"); };
  const auto count = std::count_if(headers.begin(), headers.end(), is_host);
  if (count == 0 && version == "HTTP/1.0") return "";
  if (count != 1) return fmt::format("expected one Host header, got {}", count);
  if (!is_authority(std::find_if(headers.begin(), headers.end(), is_host)->value)) {
    return "Host: expected a name or an address, with or without a port";
  }
  return "";
}

// What a name is made of (RFC 9110, section 5.6.2).
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || (c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
  });
}

bool is_control(unsigned char c) {
  return (c < ' ' && c != '\t') || c == 0x7f;
}

// `line`: of a header, without its newline.
std::string line_problem(std::string_view line) {
  if (!line.ends_with('\r')) {
    return fmt::format("a header: expected its line to end in CR LF, got LF: {}", printable(line));
  }
  line.remove_suffix(1);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return fmt::format("a header: expected NAME: VALUE in one line, got {}", printable(line));
  }
  const auto control = std::find_if(line.begin(), line.end(), is_control);
  if (control == line.end()) return "";
  return fmt::format("header {}: expected no control characters in its value, got byte 0x{:02x}",
                     printable(line.substr(0, colon)), static_cast<unsigned char>(*control));
}

std::string target_problem(std::string_view target) {
  const size_t length = authority_length(target);
  if (length == 0) return "";
  const std::string_view authority = target.substr(0, length);
  const std::string_view host = authority.substr(authority.find("://") + 3);
  return host.empty() || !is_authority(host) ? "the request target has no valid host" : "";
}

}  // namespace

bool keeps_connection(bool is_http_1_0, const std::vector<Header>& headers) {
  bool asks_to_close = false;
  bool asks_to_keep = false;
  for (const Header& header : headers) {
    if (!same_name(header.name, "Connection")) continue;
    for (std::string_view rest = header.value; !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      const std::string_view option = trimmed(rest.substr(0, end));
      asks_to_close = asks_to_close || same_name(option, "close");
      asks_to_keep = asks_to_keep || same_name(option, "keep-alive");
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return !asks_to_close && (!is_http_1_0 || asks_to_keep);
}

size_t authority_length(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_name(target.substr(0, scheme.size()), scheme)) continue;
    return std::min(target.find_first_of("/?", scheme.size()), target.size());
  }
  return 0;
}

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

std::string head_problem(std::string_view head) {
  for (size_t at = head.find('\n'); at < head.size();) {
    const size_t end = std::min(head.find('\n', at + 1), head.size());
    const std::string_view line = head.substr(at + 1, end - at - 1);
    if (line == "\r" || line.empty()) return "";
    if (std::string problem = line_problem(line); !problem.empty()) return problem;
    at = end;
  }
  return "";
}

std::string framing_problem(const Framing& framing, const std::vector<Header>& headers) {
  const auto num_came = [&](const char* name) {
    return static_cast<size_t>(
        std::count_if(headers.begin(), headers.end(),
                      [&](const Header& header) { return same_name(header.name, name); }));
  };
  if (num_came("Content-Length") != framing.lengths.size() ||
      num_came("Transfer-Encoding") != framing.encodings.size()) {
    return "Content-Length or Transfer-Encoding is malformed";
  }
  if (framing.lengths.size() + framing.encodings.size() > 1) {
    return "expected one Content-Length or one Transfer-Encoding header, got both or several";
  }
  for (const std::string& encoding : framing.encodings) {
    if (!same_name(encoding, "chunked")) return "Transfer-Encoding: expected chunked";
  }
  for (const std::string& length : framing.lengths) {
    if (!is_digits(length) || length.size() > 18) return "Content-Length: expected a number";
  }
  if (std::string problem = host_problem(framing.version, headers); !problem.empty()) {
    return problem;
  }
  return target_problem(framing.target);
}

}  // namespace tgi::http
