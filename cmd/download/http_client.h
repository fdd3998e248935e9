// HTTP for downloads: one exchange at a time on one connection, HTTP/2 where the
// server has it, proxies by the usual variables. Redirects are followed here and not by the
// library, so that credentials go to the origin they belong to and to no other host. Nothing is
// retried here; see retry.h. One thread per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cmd/curl/transfer.h"

namespace tgi::download {

struct HttpSettings {
  std::string user_agent;
  long connect_timeout_s = 10;
  long stall_timeout_s = 10;  // without a byte for so long, a transfer broke
  std::string ca_file;        // empty: the system's
  bool use_proxy = true;      // as the usual variables say
};

// What makes a request somebody's. Sent to the origin (scheme, host, port) of the first address
// only.
struct Credentials {
  std::string bearer;  // empty: none
  // Credentials of an S3 store, to sign with. Empty key: none.
  std::string aws_key;
  std::string aws_secret;
  std::string aws_region;
  std::string aws_session;
};

struct HttpRequest {
  std::string url;
  bool head = false;
  bool stay = false;  // a redirect to another origin is the answer and not followed
  Credentials credentials;
  std::vector<std::string> headers;  // "Name: value", to every host
  // Bytes first..last are asked for when last >= 0.
  int64_t first = 0;
  int64_t last = -1;
};

struct HttpReply {
  int status = 0;
  std::string url;                               // that answered, after redirects
  std::map<std::string, std::string> headers;    // of the last hop, names in lower case
  std::map<std::string, std::string> first_hop;  // of the first one; empty when it is the last
  bool left_origin = false;  // the answer came from another origin than the one that was asked
  std::string body;          // of an error its first 64 KiB; of a success when there is no sink

  std::string header(const std::string& name) const;        // empty: not there
  std::string first_header(const std::string& name) const;  // of the first hop
  bool ok() const { return status >= 200 && status < 300; }
};

// Gets the body of a success. `begin` sees status and headers before the first byte, also of an
// empty body. Both may throw, which ends the exchange.
struct BodySink {
  std::function<void(const HttpReply& head)> begin;
  std::function<void(std::span<const std::byte>)> take;
};

// The connection failed or broke, TLS failed, or nothing came for too long. Another try may help.
class NetworkError : public Error {
 public:
  explicit NetworkError(const std::string& message) : Error(Code::kUnavailable, message) {}
};

// The name of the host is not known: mostly a wrong name or no network, and seldom better a moment
// later.
class UnknownHost : public NetworkError {
 public:
  using NetworkError::NetworkError;
};

class HttpClient {
 public:
  explicit HttpClient(HttpSettings settings) : settings_(std::move(settings)) {}

  // Any status is an answer. Throws NetworkError; kCancelled when `stop` was requested;
  // kInvalidArgument for addresses that are not followed (no http(s), from https to http); what the
  // sink throws.
  HttpReply exchange(const HttpRequest& request,
                     std::stop_token stop,
                     const BodySink* sink = nullptr);

 private:
  struct Hop;
  HttpReply one_hop(const HttpRequest& request,
                    const std::string& url,
                    bool is_origin,
                    const std::map<std::string, std::string>& first_hop,
                    std::stop_token stop,
                    const BodySink* sink);
  curl::Settings settings_of(const HttpRequest& request,
                             const std::string& url,
                             bool is_origin) const;

  const HttpSettings settings_;
  curl::Transfer transfer_;
};

// "https://host:443" of an address; empty when it is none.
std::string origin_of(const std::string& url);

// `to` as seen from `from`; absolute addresses stay. Empty when it can't be understood.
std::string resolve_url(const std::string& from, const std::string& to);

// An address as it may be shown: without query (which may be a signature) and user.
std::string shown_url(const std::string& url);

}  // namespace tgi::download
