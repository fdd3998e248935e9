#include "cmd/download/retry.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include "base/json.h"
#include "cmd/curl/http_date.h"

namespace tgi::download {
namespace {

constexpr double kFirstWait = 0.5;
constexpr double kLongestWait = 30;
constexpr double kLongestAskedFor = 300;
constexpr size_t kShownBytes = 200;

// False when it was stopped.
bool sleep_for(double seconds, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
  return !stop.stop_requested();
}

// The words of an error: of its header, its JSON or its plain text; one line.
std::string words_of(const HttpReply& reply) {
  std::string words = reply.header("x-error-message");
  if (words.empty() && reply.header("content-type").starts_with("application/json")) {
    const Json json = Json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("error") && json["error"].is_string()) {
      words = json["error"].get<std::string>();
    }
  }
  if (words.empty() && reply.header("content-type").starts_with("text/plain")) words = reply.body;
  std::string out;
  for (const char c : words.substr(0, kShownBytes)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  while (out.ends_with(' ') || out.ends_with('.')) out.pop_back();
  return out;
}

}  // namespace

bool Backoff::wait(const std::string& trouble,
                   std::optional<double> retry_after_s,
                   std::stop_token stop,
                   const OnRetry& on_retry) {
  if (++num_failures_ >= kMaxTries) return false;
  const double grown = kFirstWait * static_cast<double>(1 << (num_failures_ - 1));
  std::uniform_real_distribution<double> jitter(0.75, 1.25);
  double seconds = std::min(grown, kLongestWait) * jitter(random_);
  if (retry_after_s) {
    if (*retry_after_s > kLongestAskedFor) {
      throw Error(Code::kOverloaded, fmt::format("{} and asks to come back in {:.0f} s; what was "
                                                 "downloaded is kept, run the same command then",
                                                 trouble, *retry_after_s));
    }
    seconds = std::max(*retry_after_s, 0.0) + 0.1 * jitter(random_);
  }
  if (on_retry) on_retry(trouble, seconds);
  if (!sleep_for(seconds, stop)) throw Error(Code::kCancelled, "the download was stopped");
  return true;
}

bool is_worth_another_try(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

std::optional<double> retry_after(const HttpReply& reply) {
  const std::string text = reply.header("retry-after");
  if (text.empty()) return std::nullopt;
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size()) return static_cast<double>(seconds);
  const std::optional<std::time_t> when = curl::parse_http_date(text);
  if (!when) return std::nullopt;
  return std::max(0.0, std::difftime(*when, std::time(nullptr)));
}

std::string describe_status(const HttpReply& reply) {
  const std::string words = words_of(reply);
  return fmt::format("{} answered {}{}", origin_of(reply.url), reply.status,
                     words.empty() ? "" : ": " + words);
}

HttpReply exchange_patiently(HttpClient& client,
                             const HttpRequest& request,
                             std::stop_token stop,
                             const OnRetry& on_retry) {
  Backoff backoff;
  for (bool was_unknown = false;;) {
    try {
      HttpReply reply = client.exchange(request, stop);
      if (!is_worth_another_try(reply.status)) return reply;
      if (!backoff.wait(describe_status(reply), retry_after(reply), stop, on_retry)) return reply;
    } catch (const UnknownHost& error) {
      if (was_unknown || !backoff.wait(error.what(), std::nullopt, stop, on_retry)) throw;
      was_unknown = true;
    } catch (const NetworkError& error) {
      if (!backoff.wait(error.what(), std::nullopt, stop, on_retry)) throw;
    }
  }
}

}  // namespace tgi::download
