#include "cmd/bench/http_request.h"

#include <fmt/format.h>
#include <poll.h>

#include <charconv>
#include <memory>

#include "base/error.h"
#include "cmd/bench/http_transport.h"
#include "ipc/client.h"

namespace tgi::bench {
namespace {

constexpr long kConnectTimeoutMs = 10'000;
constexpr size_t kMaxReplyBytes = size_t{1} << 20;
constexpr size_t kShownBytes = 300;

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::string url_part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK || text == nullptr) return "";
  std::string out(text);
  curl_free(text);
  return out;
}

struct Collected {
  HttpReply reply;
  int cancel_fd = -1;
};

size_t on_reply_body(char* bytes, size_t size, size_t count, void* user) {
  HttpReply& reply = static_cast<Collected*>(user)->reply;
  const size_t room = kMaxReplyBytes - reply.body.size();
  reply.body.append(bytes, std::min(room, size * count));
  return size * count;
}

size_t on_reply_header(char* bytes, size_t size, size_t count, void* user) {
  constexpr std::string_view kName = "x-prompt-tokens:";
  std::string line(bytes, size * count);
  for (char& c : line) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (line.starts_with(kName)) {
    const size_t begin = std::min(line.find_first_not_of(' ', kName.size()), line.size());
    int64_t value = 0;
    if (std::from_chars(line.data() + begin, line.data() + line.size(), value).ec == std::errc()) {
      static_cast<Collected*>(user)->reply.num_prompt_tokens = value;
    }
  }
  return size * count;
}

bool is_readable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return fd >= 0 && ::poll(&one, 1, 0) > 0;
}

// libcurl asks this about once a second, and more often while bytes come.
int on_transfer(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return is_readable(static_cast<Collected*>(user)->cancel_fd) ? 1 : 0;
}

}  // namespace

void init_curl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw Error(Code::kInternal, curl_easy_strerror(result));
}

std::string base_url(const std::string& text) {
  init_curl();
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  const CURLUcode parsed = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0);
  const std::string scheme = url_part(url.get(), CURLUPART_SCHEME);
  if (parsed != CURLUE_OK || (scheme != "http" && scheme != "https")) {
    throw Error(Code::kInvalidArgument,
                fmt::format("--url: expected http://HOST:PORT or https://HOST, got \"{}\"", text));
  }
  if (!url_part(url.get(), CURLUPART_USER).empty()) {
    throw Error(Code::kInvalidArgument,
                "--url: a user's name in the address is not used; give a key with --api-key");
  }
  std::string port = url_part(url.get(), CURLUPART_PORT);
  if (!port.empty()) port.insert(0, ":");
  std::string path = url_part(url.get(), CURLUPART_PATH);
  while (path.ends_with('/')) path.pop_back();
  if (path.ends_with("/v1")) path.resize(path.size() - 3);
  while (path.ends_with('/')) path.pop_back();
  return fmt::format("{}://{}{}{}", scheme, url_part(url.get(), CURLUPART_HOST), port, path);
}

curl_slist* make_headers(const HttpTarget& target, bool stream) {
  curl_slist* list = nullptr;
  list = curl_slist_append(list, "Content-Type: application/json");
  list = curl_slist_append(list, stream ? "Accept: text/event-stream" : "Accept: application/json");
  list = curl_slist_append(list, "Expect:");  // no 100-continue: it costs a round trip
  if (!target.api_key.empty()) {
    list = curl_slist_append(list, ("Authorization: Bearer " + target.api_key).c_str());
  }
  return list;
}

void set_common_options(CURL* easy,
                        const HttpTarget& target,
                        std::string_view path,
                        curl_slist* headers) {
  curl_easy_setopt(easy, CURLOPT_URL, fmt::format("{}{}", target.url, path).c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");  // a bench through a proxy would measure the proxy
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "tgi-bench");
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(target.timeout_s * 1000));
  if (!target.check_certificate) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
}

std::string error_kind(CURLcode result) {
  switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return "host not found";
    case CURLE_COULDNT_CONNECT:
      return "cannot connect";
    case CURLE_OPERATION_TIMEDOUT:
      return "timeout";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
      return "tls";
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return "connection lost";
    default:
      return "transfer";
  }
}

HttpReply fetch(const HttpTarget& target,
                std::string_view path,
                const std::string& body,
                int cancel_fd) {
  init_curl();
  const std::unique_ptr<CURL, FreeEasy> easy(curl_easy_init());
  const std::unique_ptr<curl_slist, FreeList> headers(make_headers(target, false));
  Collected collected{.reply = {}, .cancel_fd = cancel_fd};
  std::array<char, CURL_ERROR_SIZE> why{};
  set_common_options(easy.get(), target, path, headers.get());
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, why.data());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &on_reply_body);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &collected);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERFUNCTION, &on_reply_header);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERDATA, &collected);
  curl_easy_setopt(easy.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy.get(), CURLOPT_XFERINFOFUNCTION, &on_transfer);
  curl_easy_setopt(easy.get(), CURLOPT_XFERINFODATA, &collected);
  if (!body.empty()) {
    curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDS, body.c_str());
  }
  const CURLcode result = curl_easy_perform(easy.get());
  if (is_readable(cancel_fd)) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
  if (result != CURLE_OK) {
    throw Error(Code::kUnavailable,
                fmt::format("{}{}: {}: {}", target.url, path, error_kind(result),
                            why[0] != '\0' ? why.data() : curl_easy_strerror(result)));
  }
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  collected.reply.status = static_cast<int>(status);
  return std::move(collected.reply);
}

std::string describe_refusal(int status, std::string_view body) {
  std::string why;
  try {
    why = read_event(body).error;
  } catch (const Error&) {
    // Not JSON: its first line is as good as we have.
  }
  if (why.empty()) why = body.substr(0, std::min(body.find_first_of("\r\n"), kShownBytes));
  for (char& c : why) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return why.empty() ? fmt::format("the server answered {}", status)
                     : fmt::format("the server answered {}: {}", status, why);
}

}  // namespace tgi::bench
