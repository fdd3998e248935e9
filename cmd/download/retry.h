// When to ask again and how long to wait before: exponential back-off with jitter, Retry-After when
// the server says one.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <stop_token>
#include <string>

#include "cmd/download/http_client.h"

namespace tgi::download {

inline constexpr int kMaxTries = 5;  // without a new byte between them

// Says what went wrong and in how many seconds it is tried again.
using OnRetry = std::function<void(const std::string& trouble, double seconds)>;

class Backoff {
 public:
  // Whether another try is due; waits for it. False after kMaxTries. Throws kCancelled when
  // stopped, kOverloaded when the server wants a longer wait than five minutes.
  bool wait(const std::string& trouble,
            std::optional<double> retry_after_s,
            std::stop_token stop,
            const OnRetry& on_retry);

  // Something was achieved: the count begins again.
  void reset() { num_failures_ = 0; }

 private:
  int num_failures_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

// 408, 429 and the 5xx that a later try may not get.
bool is_worth_another_try(int status);

// Seconds from the header Retry-After: a number or a date. Nothing without one.
std::optional<double> retry_after(const HttpReply& reply);

// "the server answered 503 (Service Unavailable)"; with the server's own words where it has some.
std::string describe_status(const HttpReply& reply);

// An exchange without a sink, tried again while that may help. The last answer, whatever it is; or
// throws NetworkError.
HttpReply exchange_patiently(HttpClient& client,
                             const HttpRequest& request,
                             std::stop_token stop,
                             const OnRetry& on_retry);

}  // namespace tgi::download
