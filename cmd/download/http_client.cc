#include "cmd/download/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>

namespace tgi::download {
namespace {

constexpr int kMaxHops = 10;
constexpr size_t kMaxErrorBytes = size_t{64} << 10;
constexpr size_t kMaxBodyBytes = size_t{256} << 20;  // of a list of files
constexpr long kReceiveBufferBytes = 512L << 10;

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Clock = std::chrono::steady_clock;
using Url = std::unique_ptr<CURLU, FreeUrl>;

Url parse_url(const std::string& text) {
  Url url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return nullptr;
  return url;
}

std::string part_of(const Url& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK || text == nullptr) return "";
  std::string out(text);
  curl_free(text);
  return out;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return text;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

void init_curl_once() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw Error(Code::kInternal, curl_easy_strerror(result));
}

[[noreturn]] void throw_broken(const std::string& url, CURLcode result, const char* why) {
  const std::string host = origin_of(url);
  const char* said = *why != '\0' ? why : curl_easy_strerror(result);
  const std::string message = fmt::format("{}: {}", host, said);
  switch (result) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      throw Error(Code::kUnavailable,
                  message +
                      "; the certificate of this server is not trusted here (SSL_CERT_FILE names "
                      "other authorities)");
    case CURLE_COULDNT_RESOLVE_HOST:
      throw UnknownHost(message);
    case CURLE_COULDNT_RESOLVE_PROXY:
      throw Error(Code::kUnavailable,
                  message + "; see the variables https_proxy, http_proxy and ALL_PROXY");
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
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
  const Url url = parse_url(text);
  if (!url) return "";
  return lower(fmt::format("{}://{}:{}", part_of(url, CURLUPART_SCHEME),
                           part_of(url, CURLUPART_HOST),
                           part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT)));
}

std::string resolve_url(const std::string& from, const std::string& to) {
  const Url url = parse_url(from);
  if (!url || curl_url_set(url.get(), CURLUPART_URL, to.c_str(), 0) != CURLUE_OK) return "";
  return part_of(url, CURLUPART_URL);
}

std::string shown_url(const std::string& text) {
  const Url url = parse_url(text);
  if (!url) return text.substr(0, text.find('?'));
  for (const CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    curl_url_set(url.get(), part, nullptr, 0);
  }
  return part_of(url, CURLUPART_URL);
}

// One request and its answer. libcurl calls back into it, and nothing may be thrown through
// libcurl.
struct HttpClient::Hop {
  CURL* easy = nullptr;
  const BodySink* sink = nullptr;
  std::stop_token stop;
  HttpReply reply;
  bool begun = false;  // the sink has seen the headers
  Clock::time_point last_byte = Clock::now();
  std::chrono::seconds stall_timeout{};
  bool stalled = false;
  std::exception_ptr thrown;
  std::unique_ptr<curl_slist, FreeList> headers;
  std::array<char, CURL_ERROR_SIZE> why{};

  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
    TGI_CHECK(longer != nullptr);
    (void)headers.release();
    headers.reset(longer);
  }

  void begin() {
    if (begun) return;
    begun = true;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
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
};

size_t HttpClient::on_header(char* bytes, size_t size, size_t count, void* user) {
  Hop& hop = *static_cast<Hop*>(user);
  hop.last_byte = Clock::now();
  const std::string_view line(bytes, size * count);
  if (line.starts_with("HTTP/")) {
    hop.reply.headers.clear();  // after "100 Continue" or a proxy's answer
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  const size_t begin = line.find_first_not_of(" \t", colon + 1);
  const size_t end = line.find_last_not_of(" \t\r\n");
  hop.reply.headers[lower(std::string(line.substr(0, colon)))] =
      begin == std::string_view::npos || end < begin
          ? ""
          : std::string(line.substr(begin, end + 1 - begin));
  return line.size();
}

// Fewer bytes than it got break the transfer off.
size_t HttpClient::on_body(char* bytes, size_t size, size_t count, void* user) {
  Hop& hop = *static_cast<Hop*>(user);
  hop.last_byte = Clock::now();
  try {
    hop.take(std::as_bytes(std::span(bytes, size * count)));
    return size * count;
  } catch (...) {
    hop.thrown = std::current_exception();
    return 0;
  }
}

// libcurl asks this about once a second, and more often while bytes come. Its own watch over slow
// transfers works on an average and notices a standstill late.
int HttpClient::on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Hop& hop = *static_cast<Hop*>(user);
  hop.stalled = Clock::now() - hop.last_byte > hop.stall_timeout;
  return hop.stalled || hop.stop.stop_requested() ? 1 : 0;
}

HttpClient::HttpClient(HttpSettings settings) : settings_(std::move(settings)) {
  init_curl_once();
  easy_ = curl_easy_init();
  TGI_CHECK(easy_ != nullptr);
}

HttpClient::~HttpClient() {
  curl_easy_cleanup(easy_);
}

void HttpClient::set_options(Hop& hop,
                             const HttpRequest& request,
                             const std::string& url,
                             bool is_origin) {
  curl_easy_reset(easy_);  // keeps the connection
  curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  curl_easy_setopt(easy_, CURLOPT_NOBODY, request.head ? 1L : 0L);
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, kReceiveBufferBytes);
  curl_easy_setopt(easy_, CURLOPT_USERAGENT, settings_.user_agent.c_str());
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT, settings_.connect_timeout_s);
  if (!settings_.ca_file.empty()) {
    curl_easy_setopt(easy_, CURLOPT_CAINFO, settings_.ca_file.c_str());
  }
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, hop.why.data());
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, &hop);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, &hop);
  curl_easy_setopt(easy_, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy_, CURLOPT_XFERINFOFUNCTION, &on_progress);
  curl_easy_setopt(easy_, CURLOPT_XFERINFODATA, &hop);

  for (const std::string& header : request.headers) hop.add_header(header);
  if (request.last >= 0) {
    hop.add_header(fmt::format("Range: bytes={}-{}", request.first, request.last));
  }
  const Credentials& who = request.credentials;
  if (is_origin && !who.bearer.empty()) hop.add_header("Authorization: Bearer " + who.bearer);
  if (is_origin && !who.aws_key.empty()) {
    curl_easy_setopt(easy_, CURLOPT_AWS_SIGV4,
                     fmt::format("aws:amz:{}:s3", who.aws_region).c_str());
    curl_easy_setopt(easy_, CURLOPT_USERPWD,
                     fmt::format("{}:{}", who.aws_key, who.aws_secret).c_str());
    if (!who.aws_session.empty()) hop.add_header("x-amz-security-token: " + who.aws_session);
  }
  if (hop.headers) curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, hop.headers.get());
}

HttpReply HttpClient::one_hop(const HttpRequest& request,
                              const std::string& url,
                              bool is_origin,
                              const std::map<std::string, std::string>& first_hop,
                              std::stop_token stop,
                              const BodySink* sink) {
  Hop hop;
  hop.easy = easy_;
  hop.sink = sink;
  hop.stop = stop;
  hop.stall_timeout = std::chrono::seconds(settings_.stall_timeout_s);
  hop.reply.url = url;
  hop.reply.first_hop = first_hop;
  hop.reply.left_origin = !is_origin;
  set_options(hop, request, url, is_origin);
  const CURLcode result = curl_easy_perform(easy_);
  if (hop.thrown) std::rethrow_exception(hop.thrown);
  if (stop.stop_requested()) throw Error(Code::kCancelled, "the download was stopped");
  if (result == CURLE_ABORTED_BY_CALLBACK && hop.stalled) {
    throw NetworkError(
        fmt::format("{}: nothing came for {} s", origin_of(url), settings_.stall_timeout_s));
  }
  if (result != CURLE_OK) throw_broken(url, result, hop.why.data());
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
