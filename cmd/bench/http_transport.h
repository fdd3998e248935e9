// Load over HTTP: libcurl's multi interface on one thread, woken by epoll, one HTTP/1.1 connection
// a stream. A client with a thread a stream would measure itself.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <vector>

#include "cmd/bench/api.h"
#include "cmd/bench/poller.h"
#include "cmd/bench/prompts.h"
#include "cmd/bench/transport.h"

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

class HttpTransport final : public Transport {
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
  void act(curl_socket_t socket, int events);
  void collect_finished();
  void finish(Stream& stream, CURLcode result);

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*);
  static int on_timer(CURLM*, long timeout_ms, void* self);
  static size_t on_body(char* bytes, size_t size, size_t count, void* stream);

  const HttpTarget target_;
  Poller poller_;
  BenchClock::time_point begin_ = BenchClock::now();
  std::optional<BenchClock::time_point> curl_deadline_;
  curl_slist* headers_ = nullptr;
  CURLM* multi_ = nullptr;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> idle_;
  std::vector<RequestRecord*> finished_;
};

}  // namespace tgi::bench
