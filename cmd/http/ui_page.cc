#include "cmd/http/ui_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cmd/http/api_error.h"
#include "cmd/http/info_api.h"
#include "cmd/http/ui_files.h"

namespace tgi::http {
namespace {

constexpr std::string_view kFilesPath = "/ui/files/";

// Nothing but this server's own files is loaded or asked, no script or style stands in a page, and
// no other page may show this one in a frame (Content Security Policy Level 3).
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// FNV-1a with 64 bits: a name for the bytes, not a protection of them.
uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

// Whether a list like "gzip, deflate;q=0.5" takes gzip (RFC 9110, section 12.5.3).
bool accepts_gzip(std::string_view header) {
  while (!header.empty()) {
    const std::string_view item = header.substr(0, header.find(','));
    header.remove_prefix(std::min(item.size() + 1, header.size()));
    const size_t begin = std::min(item.find_first_not_of(" \t"), item.size());
    const std::string_view name = item.substr(begin, item.find_first_of("; \t", begin) - begin);
    if (name != "gzip" && name != "*") continue;
    const size_t weight = item.find("q=");
    return weight == std::string_view::npos ||
           item.substr(weight + 2).find_first_of("123456789") != std::string_view::npos;
  }
  return false;
}

Response serve(const UiFile& file, const Request& request) {
  const bool compressed = accepts_gzip(request.header("accept-encoding"));
  const std::string tag =
      fmt::format("\"{:016x}{}\"", hash_of(file.gzip), compressed ? "-gzip" : "");
  Response response{.status = 200};
  response.headers = {{"ETag", tag},
                      {"Cache-Control", "no-cache"},  // kept, and asked about by its tag
                      {"Vary", "Accept, Accept-Encoding"},
                      {"Content-Security-Policy", std::string(kContentSecurityPolicy)},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"}};
  if (request.header("if-none-match").find(tag) != std::string_view::npos) {
    response.status = 304;
    return response;
  }
  if (compressed) response.headers.push_back({"Content-Encoding", "gzip"});
  response.content_type = file.content_type;
  response.body = compressed ? std::string(file.gzip) : gunzip(file.gzip);
  return response;
}

}  // namespace

Response ui_page(std::shared_ptr<Scope> /*scope*/, const Request& request) {
  return serve(find_ui_file("index.html").value(), request);
}

Response docs_page(std::shared_ptr<Scope> /*scope*/, const Request& request) {
  return serve(find_ui_file("docs.html").value(), request);
}

Response ui_file(std::shared_ptr<Scope> /*scope*/, const Request& request) {
  const std::string name = request.path.substr(kFilesPath.size());
  const std::optional<UiFile> file = find_ui_file(name);
  if (!file) throw ApiError(404, "not_found", "the page has no file of this name");
  return serve(*file, request);
}

Response ui_moved(std::shared_ptr<Scope> /*scope*/, const Request& /*request*/) {
  Response response{.status = 308};
  response.headers = {{"Location", "../ui"}};
  return response;
}

Response page_or_health(std::shared_ptr<Scope> scope, const Request& request) {
  if (request.header("accept").find("text/html") != std::string_view::npos) {
    return ui_page(std::move(scope), request);
  }
  return health(std::move(scope), request);
}

Response recent_requests(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  Response response = json_response(200, {{"requests", scope->service().log.recent()}});
  response.headers.push_back({"Cache-Control", "no-store"});
  return response;
}

}  // namespace tgi::http
