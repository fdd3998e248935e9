#include "engine/guide/json/uri.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace tgi::guide {
namespace {

struct UriParts {
  std::string_view scheme;     // without ':'
  std::string_view authority;  // with "//"
  std::string_view path;
  std::string_view query;  // with '?'
};

UriParts split_uri(std::string_view uri) {
  UriParts parts;
  if (const size_t at = uri.find_first_of(":/?");
      at != std::string_view::npos && at > 0 && uri[at] == ':') {
    parts.scheme = uri.substr(0, at);
    uri.remove_prefix(at + 1);
  }
  if (const size_t at = uri.find('?'); at != std::string_view::npos) {
    parts.query = uri.substr(at);
    uri = uri.substr(0, at);
  }
  if (uri.substr(0, 2) == "//") {
    const size_t end = std::min(uri.find('/', 2), uri.size());
    parts.authority = uri.substr(0, end);
    uri.remove_prefix(end);
  }
  parts.path = uri;
  return parts;
}

std::string without_dots(std::string_view path) {
  std::vector<std::string_view> segments;
  bool ends_with_slash = false;
  const bool is_absolute = !path.empty() && path[0] == '/';
  size_t begin = is_absolute ? 1 : 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    ends_with_slash = segment == "." || segment == "..";
    if (segment == "..") {
      if (!segments.empty()) segments.pop_back();
    } else if (segment != ".") {
      segments.push_back(segment);
    }
    begin = end + 1;
  }
  std::string result = is_absolute ? "/" : "";
  for (size_t i = 0; i < segments.size(); ++i) {
    if (i > 0) result += '/';
    result += segments[i];
  }
  if (ends_with_slash && !segments.empty()) result += '/';
  return result;
}

}  // namespace

std::pair<std::string_view, std::string_view> split_fragment(std::string_view uri) {
  const size_t at = uri.find('#');
  if (at == std::string_view::npos) return {uri, {}};
  return {uri.substr(0, at), uri.substr(at + 1)};
}

std::string resolve_uri(std::string_view base, std::string_view reference) {
  if (reference.empty()) return std::string(base);
  const UriParts to = split_uri(reference);
  if (!to.scheme.empty() || base.empty()) return std::string(reference);
  const UriParts from = split_uri(base);
  std::string result;
  if (!from.scheme.empty()) result = std::string(from.scheme) + ":";
  if (!to.authority.empty()) return result.append(reference);
  result += from.authority;
  if (to.path.empty()) return result.append(from.path).append(to.query);
  if (to.path[0] == '/') return result.append(without_dots(to.path)).append(to.query);
  const size_t slash = from.path.rfind('/');
  std::string path =
      slash == std::string_view::npos ? std::string() : std::string(from.path.substr(0, slash + 1));
  if (path.empty() && !from.authority.empty()) path = "/";
  path += to.path;
  return result.append(without_dots(path)).append(to.query);
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr ==
            text.data() + i + 3) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace tgi::guide
