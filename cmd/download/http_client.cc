#include "cmd/download/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/ascii.h"
#include "cmd/curl/url.h"

namespace tgi::download {
namespace {

constexpr int kMaxHops = 10;
constexpr size_t kMaxErrorBytes = size_t{64} << 10;
constexpr size_t kMaxBodyBytes = size_t{256} << 20;  // of a list of files
constexpr long kReceiveBufferBytes = 512L << 10;

using Clock = std::chrono::steady_clock;
using curl::Failure;
using curl::Url;
using curl::UrlPart;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

[[noreturn]] void throw_broken(const std::string& url, const curl::Outcome& outcome) {
  const std::string message = fmt::format("{}: {}", origin_of(url), outcome.detail);
  switch (outcome.failure) {
    case Failure::kNotTrusted:
      throw Error(Code::kUnavailable,
                  message +
                      "; the certificate of this server is not trusted here (SSL_CERT_FILE names "
                      "other authorities)");
    case Failure::kUnknownHost:
      throw UnknownHost(message);
    case Failure::kUnknownProxy:
      throw Error(Code::kUnavailable,
                  message + "; see the variables https_proxy, http_proxy and ALL_PROXY");
    case Failure::kBadUrl:
      throw Error(Code::kInvalidArgument, message);
    default:
      throw NetworkError(message);
  }
}

}  // namespace

std::string HttpReply::header(const std::string& name) const {
  const auto at = headers.find(name);
  return at == headers.end() ? "" : at->second;
}

std::string HttpReply::first_header(const std::string& name) const {
  if (first_hop.empty()) return header(name);
  const auto at = first_hop.find(name);
  return at == first_hop.end() ? "" : at->second;
}

std::string origin_of(const std::string& text) {
  const std::optional<Url> url = Url::parse(text);
  if (!url) return "";
  return ascii_lower(fmt::format("{}://{}:{}", url->part(UrlPart::kScheme),
                                 url->part(UrlPart::kHost), url->port_or_default()));
}

std::string resolve_url(const std::string& from, const std::string& to) {
  std::optional<Url> url = Url::parse(from);
  if (!url || !url->follow(to)) return "";
  return url->text();
}

std::string shown_url(const std::string& text) {
  std::optional<Url> url = Url::parse(text);
  if (!url) return text.substr(0, text.find('?'));
  for (const UrlPart part :
       {UrlPart::kUser, UrlPart::kPassword, UrlPart::kQuery, UrlPart::kFragment}) {
    url->clear(part);
  }
  return url->text();
}

// One request and its answer.
struct HttpClient::Hop final : curl::Receiver {
  const curl::Transfer& transfer;
  const BodySink* sink = nullptr;
  std::stop_token stop;
  std::chrono::seconds stall_timeout{};
  HttpReply reply{};
  bool begun = false;  // the sink has seen the headers
  Clock::time_point last_byte = Clock::now();
  bool stalled = false;

  Hop(const curl::Transfer& transfer_,
      const BodySink* sink_,
      std::stop_token stop_,
      long stall_timeout_s)
      : transfer(transfer_), sink(sink_), stop(std::move(stop_)), stall_timeout(stall_timeout_s) {}

  void begin() {
    if (begun) return;
    begun = true;
    reply.status = transfer.status();
    if (sink != nullptr && reply.ok() && sink->begin) sink->begin(reply);
  }

  void take(std::span<const std::byte> bytes) {
    begin();
    if (sink != nullptr && reply.ok()) return sink->take(bytes);
    const size_t limit = reply.ok() ? kMaxBodyBytes : kMaxErrorBytes;
    const size_t room = limit - std::min(limit, reply.body.size());
    if (reply.ok() && bytes.size() > room) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: expected an answer of at most {} bytes",
                                                      shown_url(reply.url), limit));
    }
    reply.body.append(reinterpret_cast<const char*>(bytes.data()), std::min(room, bytes.size()));
  }

  bool on_body(std::string_view bytes) override {
    last_byte = Clock::now();
    take(std::as_bytes(std::span(bytes)));
    return true;
  }

  void on_header(std::string_view line) override {
    last_byte = Clock::now();
    if (line.starts_with("HTTP/")) {
      reply.headers.clear();  // after "100 Continue" or a proxy's answer
      return;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const size_t first = line.find_first_not_of(" \t", colon + 1);
    const size_t last = line.find_last_not_of(" \t\r\n");
    reply.headers[ascii_lower(std::string(line.substr(0, colon)))] =
        first == std::string_view::npos || last < first
            ? ""
            : std::string(line.substr(first, last + 1 - first));
  }

  // libcurl's own watch over slow transfers works on an average and notices a standstill late.
  bool keep_going() override {
    stalled = Clock::now() - last_byte > stall_timeout;
    return !stalled && !stop.stop_requested();
  }
};

curl::Settings HttpClient::settings_of(const HttpRequest& request,
                                       const std::string& url,
                                       bool is_origin) const {
  curl::Settings out{.url = url,
                     .head = request.head,
                     .headers = request.headers,
                     .user_agent = settings_.user_agent,
                     .version = curl::HttpVersion::k2OverTls,
                     .aws = {},
                     .use_proxy = settings_.use_proxy,
                     .ca_file = settings_.ca_file,
                     .connect_timeout = std::chrono::seconds(settings_.connect_timeout_s),
                     .receive_buffer_bytes = kReceiveBufferBytes,
                     .tell_headers = true,
                     .ask_keep_going = true};
  if (request.last >= 0) {
    out.headers.push_back(fmt::format("Range: bytes={}-{}", request.first, request.last));
  }
  const Credentials& who = request.credentials;
  if (is_origin && !who.bearer.empty()) {
    out.headers.push_back("Authorization: Bearer " + who.bearer);
  }
  if (is_origin && !who.aws_key.empty()) {
    out.aws =
        curl::AwsSignature{.key = who.aws_key, .secret = who.aws_secret, .region = who.aws_region};
    if (!who.aws_session.empty()) {
      out.headers.push_back("x-amz-security-token: " + who.aws_session);
    }
  }
  return out;
}

HttpReply HttpClient::one_hop(const HttpRequest& request,
                              const std::string& url,
                              bool is_origin,
                              const std::map<std::string, std::string>& first_hop,
                              std::stop_token stop,
                              const BodySink* sink) {
  Hop hop(transfer_, sink, stop, settings_.stall_timeout_s);
  hop.reply.url = url;
  hop.reply.first_hop = first_hop;
  hop.reply.left_origin = !is_origin;
  transfer_.prepare(settings_of(request, url, is_origin), hop);
  const curl::Outcome outcome = transfer_.perform();
  if (stop.stop_requested()) throw Error(Code::kCancelled, "the download was stopped");
  if (outcome.failure == Failure::kStopped && hop.stalled) {
    throw NetworkError(
        fmt::format("{}: nothing came for {} s", origin_of(url), settings_.stall_timeout_s));
  }
  if (!outcome.ok()) throw_broken(url, outcome);
  hop.begin();
  return std::move(hop.reply);
}

HttpReply HttpClient::exchange(const HttpRequest& request,
                               std::stop_token stop,
                               const BodySink* sink) {
  const std::string origin = origin_of(request.url);
  std::string url = request.url;
  std::map<std::string, std::string> first_hop;
  for (int hop = 0; hop < kMaxHops; ++hop) {
    const bool is_origin = origin_of(url) == origin;
    HttpReply reply = one_hop(request, url, is_origin, first_hop, stop, sink);
    if (hop == 0) first_hop = reply.headers;
    const std::string location = reply.header("location");
    if (!is_redirect(reply.status) || location.empty()) return reply;
    const std::string next = resolve_url(url, location);
    if (request.stay && origin_of(next) != origin) return reply;
    const bool is_http = next.starts_with("http://") || next.starts_with("https://");
    if (!is_http || (url.starts_with("https://") && !next.starts_with("https://"))) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{} leads to {}, which is not followed: only http and https are, and "
                              "never from https to http",
                              shown_url(url), shown_url(location)));
    }
    url = next;
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: leads from one address to another more than {} times",
                          shown_url(request.url), kMaxHops));
}

}  // namespace tgi::download
