// Load over HTTP: one thread, woken by epoll, one HTTP/1.1 connection a stream. A client with a
// thread a stream would measure itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/bench/api.h"
#include "cmd/bench/poller.h"
#include "cmd/bench/prompts.h"
#include "cmd/bench/transport.h"
#include "cmd/curl/transfer_group.h"

namespace tgi::bench {

struct HttpTarget {
  std::string url;  // scheme, host and port, and a path before the interface's own if there is one
  Api api = Api::kOpenAiChat;
  std::string api_key;  // "": none
  bool check_certificate = true;
  double timeout_s = 600;  // of one request
  BodyOptions body;
  WordRate words;
};

// Throws kInvalidArgument for what is no http or https URL. Without the slash and the "/v1" that it
// may end in, and without a user's name and password, which are not taken from there.
std::string base_url(const std::string& url);

// One request outside a load, for probing. Throws kUnavailable when there is no answer, Stopped at
// Ctrl-C. GET without a body, else POST.
struct HttpReply {
  int status = 0;
  std::string body;                          // its first MiB
  std::optional<int64_t> num_prompt_tokens;  // of the header x-prompt-tokens
};
HttpReply fetch(const HttpTarget& target,
                std::string_view path,
                const std::string& body,
                int cancel_fd);

// "the server answered 429: Model is overloaded", in the words of the body.
std::string describe_refusal(int status, std::string_view body);

class HttpTransport final : public Transport, private curl::Watcher {
 public:
  HttpTransport(HttpTarget target, int cancel_fd);
  ~HttpTransport() override;

  void begin() override { begin_ = BenchClock::now(); }
  void start(const PlannedRequest& request, RequestRecord& record) override;
  std::vector<RequestRecord*> wait(BenchClock::time_point until) override;
  bool interrupted() const override { return poller_.interrupted(); }
  void cancel_all() override;

 private:
  struct Stream;

  double now_s() const { return std::chrono::duration<double>(BenchClock::now() - begin_).count(); }
  Stream& free_stream();
  void collect_finished();
  void finish(Stream& stream, const curl::Outcome& outcome);

  void watch(int socket, bool reading, bool writing) override;
  void forget(int socket) override { poller_.forget(socket); }
  void wake_after(std::optional<std::chrono::milliseconds> time) override;

  const HttpTarget target_;
  Poller poller_;
  BenchClock::time_point begin_ = BenchClock::now();
  std::optional<BenchClock::time_point> group_deadline_;
  curl::TransferGroup group_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> idle_;
  std::vector<RequestRecord*> finished_;
};

}  // namespace tgi::bench
