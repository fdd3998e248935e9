#include "cmd/curl/url.h"

#include <curl/curl.h>

#include "base/error.h"

namespace tgi::curl {
namespace {

CURLUPart libcurl_part(UrlPart part) {
  switch (part) {
    case UrlPart::kScheme:
      return CURLUPART_SCHEME;
    case UrlPart::kUser:
      return CURLUPART_USER;
    case UrlPart::kPassword:
      return CURLUPART_PASSWORD;
    case UrlPart::kHost:
      return CURLUPART_HOST;
    case UrlPart::kPort:
      return CURLUPART_PORT;
    case UrlPart::kPath:
      return CURLUPART_PATH;
    case UrlPart::kQuery:
      return CURLUPART_QUERY;
    case UrlPart::kFragment:
      return CURLUPART_FRAGMENT;
  }
  throw Error(Code::kInternal, "no part of an address");
}

std::string text_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK || text == nullptr) return "";
  std::string out(text);
  curl_free(text);
  return out;
}

}  // namespace

void Url::Free::operator()(Curl_URL* url) const {
  curl_url_cleanup(url);
}

std::optional<Url> Url::parse(const std::string& text) {
  Handle handle(curl_url());
  TGI_CHECK(handle != nullptr);
  if (curl_url_set(handle.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return std::nullopt;
  return Url(std::move(handle));
}

std::string Url::part(UrlPart part) const {
  return text_of(handle_.get(), libcurl_part(part));
}

std::string Url::port_or_default() const {
  return text_of(handle_.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

std::string Url::text() const {
  return text_of(handle_.get(), CURLUPART_URL);
}

void Url::set(UrlPart part, const std::string& value) {
  curl_url_set(handle_.get(), libcurl_part(part), value.c_str(), 0);
}

void Url::clear(UrlPart part) {
  curl_url_set(handle_.get(), libcurl_part(part), nullptr, 0);
}

bool Url::follow(const std::string& reference) {
  return curl_url_set(handle_.get(), CURLUPART_URL, reference.c_str(), 0) == CURLUE_OK;
}

}  // namespace tgi::curl
