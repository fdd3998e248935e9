#include "cmd/bench/http_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/descriptor_limit.h"
#include "base/error.h"
#include "cmd/bench/http_request.h"
#include "cmd/bench/sse_parser.h"

namespace tgi::bench {
namespace {

constexpr size_t kKeptErrorBytes = 8192;

}  // namespace

struct HttpTransport::Stream {
  HttpTransport* owner;
  CURL* easy;
  RequestRecord* record = nullptr;
  SseParser parser{};
  std::string body_of_error{};
  bool ended = false;  // the answer said so itself

  Stream(HttpTransport* owner_, CURL* easy_) : owner(owner_), easy(easy_) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { curl_easy_cleanup(easy); }

  void fail(std::string kind, std::string message) {
    if (!record->error_kind.empty()) return;
    record->error_kind = std::move(kind);
    record->error = std::move(message);
  }

  void take_event(std::string_view data, double when_s) {
    const AnswerEvent event = read_event(data);
    if (event.has_output) record->output_s.push_back(when_s);
    if (event.num_prompt_tokens) record->num_prompt_tokens = event.num_prompt_tokens;
    if (event.num_output_tokens) record->num_output_tokens = event.num_output_tokens;
    if (event.num_cached_tokens) record->num_cached_tokens = event.num_cached_tokens;
    ended = ended || event.is_end;
    if (event.error.empty()) return;
    fail(event.error_kind.empty() ? "error event" : "error event " + event.error_kind, event.error);
  }
};

HttpTransport::HttpTransport(HttpTarget target, int cancel_fd)
    : target_(std::move(target)), poller_(cancel_fd) {
  init_curl();
  raise_descriptor_limit();
  headers_ = make_headers(target_, true);
  multi_ = curl_multi_init();
  TGI_CHECK(multi_ != nullptr);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

HttpTransport::~HttpTransport() {
  cancel_all();
  streams_.clear();
  curl_multi_cleanup(multi_);
  curl_slist_free_all(headers_);
}

HttpTransport::Stream& HttpTransport::free_stream() {
  if (!idle_.empty()) {
    Stream* stream = idle_.back();
    idle_.pop_back();
    return *stream;
  }
  CURL* easy = curl_easy_init();
  TGI_CHECK(easy != nullptr);
  Stream& stream = *streams_.emplace_back(std::make_unique<Stream>(this, easy));
  set_common_options(easy, target_, api_path(target_.api, true), headers_);
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &stream);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &stream);
  return stream;
}

void HttpTransport::start(const PlannedRequest& request, RequestRecord& record) {
  Stream& stream = free_stream();
  stream.record = &record;
  stream.parser = SseParser();
  stream.body_of_error.clear();
  stream.ended = false;
  const std::string body =
      request_body(target_.api, target_.body, prompt_text(request.prompt, target_.words),
                   request.num_output_tokens, true);
  curl_easy_setopt(stream.easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(stream.easy, CURLOPT_COPYPOSTFIELDS, body.c_str());
  TGI_CHECK(curl_multi_add_handle(multi_, stream.easy) == CURLM_OK);
}

std::vector<RequestRecord*> HttpTransport::wait(BenchClock::time_point until) {
  for (;;) {
    const auto deadline = curl_deadline_ ? std::min(until, *curl_deadline_) : until;
    for (const epoll_event& event : poller_.wait(deadline)) {
      int what = 0;
      if ((event.events & (EPOLLIN | EPOLLHUP)) != 0) what |= CURL_CSELECT_IN;
      if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
      if ((event.events & EPOLLERR) != 0) what |= CURL_CSELECT_ERR;
      act(event.data.fd, what);
    }
    if (curl_deadline_ && *curl_deadline_ <= BenchClock::now()) {
      curl_deadline_.reset();
      act(CURL_SOCKET_TIMEOUT, 0);
    }
    collect_finished();
    if (!finished_.empty() || interrupted() || BenchClock::now() >= until) {
      return std::exchange(finished_, {});
    }
  }
}

void HttpTransport::act(curl_socket_t socket, int events) {
  int num_running = 0;
  TGI_CHECK(curl_multi_socket_action(multi_, socket, events, &num_running) == CURLM_OK);
}

void HttpTransport::collect_finished() {
  int num_left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &num_left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* stream = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &stream);
    finish(*static_cast<Stream*>(stream), message->data.result);
  }
}

void HttpTransport::finish(Stream& stream, CURLcode result) {
  RequestRecord& record = *stream.record;
  record.end_s = now_s();
  curl_multi_remove_handle(multi_, stream.easy);
  if (record.http_status == 0) {
    long status = 0;
    curl_easy_getinfo(stream.easy, CURLINFO_RESPONSE_CODE, &status);
    record.http_status = static_cast<int>(status);
  }
  if (result != CURLE_OK) {
    stream.fail(error_kind(result), curl_easy_strerror(result));
  } else if (record.http_status != 200) {
    stream.fail(fmt::format("http {}", record.http_status),
                describe_refusal(record.http_status, stream.body_of_error));
  } else {
    try {
      stream.parser.finish([&](std::string_view data) { stream.take_event(data, record.end_s); });
    } catch (const Error& error) {
      stream.fail("malformed event", error.what());
    }
    if (!stream.ended) {
      stream.fail(record.output_s.empty() ? "no events" : "cut answer",
                  record.output_s.empty() ? "the answer is not a stream of events"
                                          : "the stream ended before the answer did");
    }
  }
  record.finished = true;
  finished_.push_back(&record);
  stream.record = nullptr;
  idle_.push_back(&stream);
}

void HttpTransport::cancel_all() {
  for (const auto& stream : streams_) {
    if (stream->record == nullptr) continue;
    curl_multi_remove_handle(multi_, stream->easy);
    stream->record = nullptr;
    idle_.push_back(stream.get());
  }
}

// Called by libcurl, like the two below: nothing may be thrown through it. -1 ends the transfer.
int HttpTransport::on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  Poller& poller = static_cast<HttpTransport*>(self)->poller_;
  uint32_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
  try {
    events != 0 ? poller.watch(socket, events) : poller.forget(socket);
    return 0;
  } catch (const Error&) {
    return -1;
  }
}

int HttpTransport::on_timer(CURLM*, long timeout_ms, void* self) {
  auto& deadline = static_cast<HttpTransport*>(self)->curl_deadline_;
  if (timeout_ms < 0) {
    deadline.reset();
  } else {
    deadline = BenchClock::now() + std::chrono::milliseconds(timeout_ms);
  }
  return 0;
}

// A return of less than it got breaks the transfer off.
size_t HttpTransport::on_body(char* bytes, size_t size, size_t count, void* user) {
  Stream& stream = *static_cast<Stream*>(user);
  RequestRecord& record = *stream.record;
  const std::string_view text(bytes, size * count);
  if (record.http_status == 0) {
    long status = 0;
    curl_easy_getinfo(stream.easy, CURLINFO_RESPONSE_CODE, &status);
    record.http_status = static_cast<int>(status);
  }
  if (record.http_status != 200) {
    const size_t room = kKeptErrorBytes - std::min(kKeptErrorBytes, stream.body_of_error.size());
    stream.body_of_error.append(text.substr(0, room));
    return text.size();
  }
  const double when_s = stream.owner->now_s();
  try {
    stream.parser.feed(text, [&](std::string_view data) { stream.take_event(data, when_s); });
  } catch (const std::exception& error) {
    stream.fail("malformed event", error.what());
    return 0;
  }
  return text.size();
}

}  // namespace tgi::bench
