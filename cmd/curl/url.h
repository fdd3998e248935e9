// An address, in its parts (RFC 3986). One thread per object.
#pragma once

#include <memory>
#include <optional>
#include <string>

struct Curl_URL;  // libcurl's

namespace tgi::curl {

enum class UrlPart { kScheme, kUser, kPassword, kHost, kPort, kPath, kQuery, kFragment };

class Url {
 public:
  // Nothing when it is none.
  static std::optional<Url> parse(const std::string& text);

  std::string part(UrlPart part) const;  // empty: not there
  std::string port_or_default() const;   // that of the scheme, where none is named
  std::string text() const;              // the whole of it
  void set(UrlPart part, const std::string& value);
  void clear(UrlPart part);

  // Goes on to `reference`, absolute or as seen from here. False, and nothing changed, when it
  // can't be understood.
  [[nodiscard]] bool follow(const std::string& reference);

 private:
  struct Free {
    void operator()(Curl_URL* url) const;
  };
  using Handle = std::unique_ptr<Curl_URL, Free>;

  explicit Url(Handle handle) : handle_(std::move(handle)) {}

  Handle handle_;
};

}  // namespace tgi::curl
