#include "cmd/bench/http_request.h"

#include <fmt/format.h>
#include <poll.h>

#include <charconv>
#include <optional>

#include "base/error.h"
#include "cmd/bench/http_transport.h"
#include "cmd/curl/url.h"
#include "ipc/client.h"

namespace tgi::bench {
namespace {

constexpr std::chrono::seconds kConnectTimeout{10};
constexpr size_t kMaxReplyBytes = size_t{1} << 20;
constexpr size_t kShownBytes = 300;

bool is_readable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return fd >= 0 && ::poll(&one, 1, 0) > 0;
}

class Collector final : public curl::Receiver {
 public:
  explicit Collector(int cancel_fd) : cancel_fd_(cancel_fd) {}

  bool on_body(std::string_view bytes) override {
    reply_.body.append(bytes.substr(0, kMaxReplyBytes - reply_.body.size()));
    return true;
  }

  void on_header(std::string_view header) override {
    constexpr std::string_view kName = "x-prompt-tokens:";
    std::string line(header);
    for (char& c : line) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (!line.starts_with(kName)) return;
    const size_t begin = std::min(line.find_first_not_of(' ', kName.size()), line.size());
    int64_t value = 0;
    if (std::from_chars(line.data() + begin, line.data() + line.size(), value).ec == std::errc()) {
      reply_.num_prompt_tokens = value;
    }
  }

  bool keep_going() override { return !is_readable(cancel_fd_); }

  HttpReply& reply() { return reply_; }

 private:
  const int cancel_fd_;
  HttpReply reply_;
};

}  // namespace

std::string base_url(const std::string& text) {
  const std::optional<curl::Url> url = curl::Url::parse(text);
  const std::string scheme = url ? url->part(curl::UrlPart::kScheme) : "";
  if (scheme != "http" && scheme != "https") {
    throw Error(Code::kInvalidArgument,
                fmt::format("--url: expected http://HOST:PORT or https://HOST, got \"{}\"", text));
  }
  if (!url->part(curl::UrlPart::kUser).empty()) {
    throw Error(Code::kInvalidArgument,
                "--url: a user's name in the address is not used; give a key with --api-key");
  }
  std::string port = url->part(curl::UrlPart::kPort);
  if (!port.empty()) port.insert(0, ":");
  std::string path = url->part(curl::UrlPart::kPath);
  while (path.ends_with('/')) path.pop_back();
  if (path.ends_with("/v1")) path.resize(path.size() - 3);
  while (path.ends_with('/')) path.pop_back();
  return fmt::format("{}://{}{}{}", scheme, url->part(curl::UrlPart::kHost), port, path);
}

curl::Settings request_settings(const HttpTarget& target, std::string_view path, bool stream) {
  curl::Settings out{
      .url = fmt::format("{}{}", target.url, path),
      .headers = {"Content-Type: application/json",
                  stream ? "Accept: text/event-stream" : "Accept: application/json",
                  "Expect:"},  // no 100-continue: it costs a round trip
      .user_agent = "tgi-bench",
      .version = curl::HttpVersion::k1_1,
      .aws = {},
      .use_proxy = false,  // a bench through a proxy would measure the proxy
      .ca_file = {},
      .check_certificate = target.check_certificate,
      .connect_timeout = kConnectTimeout,
      .timeout = std::chrono::milliseconds(static_cast<int64_t>(target.timeout_s * 1000)),
      .keep_addresses = true};
  if (!target.api_key.empty()) out.headers.push_back("Authorization: Bearer " + target.api_key);
  return out;
}

std::string error_kind(curl::Failure failure) {
  switch (failure) {
    case curl::Failure::kUnknownHost:
      return "host not found";
    case curl::Failure::kCannotConnect:
      return "cannot connect";
    case curl::Failure::kTimeout:
      return "timeout";
    case curl::Failure::kNotTrusted:
    case curl::Failure::kTls:
      return "tls";
    case curl::Failure::kConnectionLost:
      return "connection lost";
    default:
      return "transfer";
  }
}

HttpReply fetch(const HttpTarget& target,
                std::string_view path,
                const std::string& body,
                int cancel_fd) {
  Collector collector(cancel_fd);
  curl::Settings settings = request_settings(target, path, false);
  settings.tell_headers = true;
  settings.ask_keep_going = true;
  curl::Transfer transfer;
  transfer.prepare(settings, collector);
  if (!body.empty()) transfer.set_body(body);
  const curl::Outcome outcome = transfer.perform();
  if (is_readable(cancel_fd)) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
  if (!outcome.ok()) {
    throw Error(Code::kUnavailable, fmt::format("{}{}: {}: {}", target.url, path,
                                                error_kind(outcome.failure), outcome.detail));
  }
  collector.reply().status = transfer.status();
  return std::move(collector.reply());
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
