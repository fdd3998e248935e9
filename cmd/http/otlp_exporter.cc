#include "cmd/http/otlp_exporter.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "ipc/protocol.h"

namespace tgi::http {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kTracesPath = "/v1/traces";
constexpr size_t kMaxReplyBytes = size_t{64} << 10;

struct CurlDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  void operator()(char* text) const { curl_free(text); }
};
using CurlUrl = std::unique_ptr<CURLU, CurlDeleter>;

std::string url_part(const CurlUrl& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, 0) != CURLUE_OK) return "";
  return std::unique_ptr<char, CurlDeleter>(text).get();
}

// What the collector rejected of a request it took: {"partialSuccess": {"rejectedSpans": "3"}}.
// A body that is not like that says nothing.
int64_t num_rejected_in(const std::string& body, int64_t num_sent) {
  const auto json = ipc::OrderedJson::parse(body, nullptr, false);
  if (!json.is_object() || !json.contains("partialSuccess")) return 0;
  const auto& partial = json["partialSuccess"];
  if (!partial.is_object() || !partial.contains("rejectedSpans")) return 0;
  const auto& rejected = partial["rejectedSpans"];
  int64_t count = 0;
  if (rejected.is_number_integer()) count = rejected.get<int64_t>();
  if (rejected.is_string()) count = std::atoll(rejected.get_ref<const std::string&>().c_str());
  return std::clamp(count, int64_t{0}, num_sent);
}

size_t append_reply(char* data, size_t size, size_t count, void* body) {
  std::string& out = *static_cast<std::string*>(body);
  out.append(data, std::min(size * count, kMaxReplyBytes - out.size()));
  return size * count;  // the rest is passed over
}

milliseconds spread(milliseconds pause) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  std::uniform_real_distribution<double> factor(0.75, 1.25);
  return std::chrono::duration_cast<milliseconds>(pause * factor(generator));
}

}  // namespace

std::string otlp_traces_url(const std::string& endpoint) {
  const auto fail = [&](const std::string& why) {
    return Error(Code::kInvalidArgument, fmt::format("otlp endpoint \"{}\": {}", endpoint, why));
  };
  const CurlUrl url(curl_url());
  const bool parsed =
      url && curl_url_set(url.get(), CURLUPART_URL, endpoint.c_str(), 0) == CURLUE_OK;
  const std::string scheme = parsed ? url_part(url, CURLUPART_SCHEME) : "";
  if (scheme != "http" && scheme != "https") {
    throw fail("expected http://HOST:PORT or https://HOST:PORT");
  }
  for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD}) {
    // The text itself may not be shown.
    if (!url_part(url, part).empty()) {
      throw Error(Code::kInvalidArgument, "otlp endpoint: a user or password is not supported");
    }
  }
  if (!url_part(url, CURLUPART_QUERY).empty() || !url_part(url, CURLUPART_FRAGMENT).empty()) {
    throw fail("a query or fragment is not supported");
  }
  std::string path = url_part(url, CURLUPART_PATH);
  while (path.ends_with('/')) path.pop_back();
  if (path.ends_with(kTracesPath)) return endpoint;
  if (url_part(url, CURLUPART_PORT) == "4317") {
    throw fail(
        fmt::format("port 4317 is where collectors speak gRPC, tgi sends OTLP over HTTP; "
                    "give the collector's HTTP port, usually {}://{}:4318",
                    scheme, url_part(url, CURLUPART_HOST)));
  }
  path += kTracesPath;
  curl_url_set(url.get(), CURLUPART_PATH, path.c_str(), 0);
  return url_part(url, CURLUPART_URL);
}

// One connection to the collector, kept open between batches. post() is the sending thread's;
// wake() any thread's.
class OtlpExporter::Http {
 public:
  struct Reply {
    long status = 0;    // 0: none came
    std::string error;  // then, why
    std::string body;
    milliseconds retry_after{0};
  };

  explicit Http(const std::string& url) {
    static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
    easy_.reset(initialised == CURLE_OK ? curl_easy_init() : nullptr);
    multi_.reset(curl_multi_init());
    headers_.reset(curl_slist_append(nullptr, "Content-Type: application/json"));
    // Without this libcurl would wait for a "100 Continue" before long bodies.
    if (headers_) curl_slist_append(headers_.get(), "Expect:");
    if (!easy_ || !multi_ || !headers_) throw Error(Code::kOutOfMemory, "can't set up libcurl");
    CURL* easy = easy_.get();
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // an unfinished name look-up delays no exit
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, append_reply);
  }

  void wake() { curl_multi_wakeup(multi_.get()); }

  // Gives up after `timeout`, or when the time that `until` returns has come.
  Reply post(const std::string& body,
             milliseconds timeout,
             const std::function<Clock::time_point()>& until) {
    Reply reply;
    CURL* easy = easy_.get();
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &reply.body);
    curl_multi_add_handle(multi_.get(), easy);
    const std::optional<CURLcode> result = transfer(until);
    curl_off_t retry_after = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
    if (!result) {
      reply.error = "tgi ends before the collector has answered";
    } else if (*result != CURLE_OK) {
      reply.error = curl_easy_strerror(*result);
    } else {
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply.status);
      reply.retry_after = std::chrono::seconds(std::clamp<curl_off_t>(retry_after, 0, 3600));
    }
    curl_multi_remove_handle(multi_.get(), easy);
    return reply;
  }

 private:
  struct MultiDeleter {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };

  std::optional<CURLcode> transfer(const std::function<Clock::time_point()>& until) {
    int num_running = 1;
    while (true) {
      if (curl_multi_perform(multi_.get(), &num_running) != CURLM_OK) return CURLE_FAILED_INIT;
      if (num_running == 0) break;
      const auto left = std::chrono::ceil<milliseconds>(until() - Clock::now());
      if (left.count() <= 0) return std::nullopt;
      const auto wait = std::min(left, milliseconds(60'000));
      curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(wait.count()), nullptr);
    }
    int num_left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &num_left);
    return message != nullptr && message->msg == CURLMSG_DONE ? message->data.result
                                                              : CURLE_FAILED_INIT;
  }

  // In this order: the transfer must go before the connections it was on.
  std::unique_ptr<CURLM, MultiDeleter> multi_;
  std::unique_ptr<curl_slist, CurlDeleter> headers_;
  std::unique_ptr<CURL, CurlDeleter> easy_;
};

OtlpExporter::OtlpExporter(OtlpOptions options)
    : options_(std::move(options)),
      http_(std::make_unique<Http>(otlp_traces_url(options_.endpoint))),
      thread_([this] { run(); }) {}

OtlpExporter::~OtlpExporter() {
  shutdown(options_.flush_timeout);
}

void OtlpExporter::add(const RequestRecord& record) {
  std::vector<Span> spans = request_spans(record);
  if (spans.empty()) return;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() + spans.size() > options_.max_queued_spans) {
      counts_.num_queue_full += static_cast<int64_t>(spans.size());
      return;
    }
    if (queue_.empty()) oldest_queued_ = Clock::now();
    const size_t num_before = queue_.size();
    std::move(spans.begin(), spans.end(), std::back_inserter(queue_));
    // The thread sleeps until there is a first span, and then until a batch is full.
    wake = num_before == 0 ||
           (num_before < options_.max_batch_spans && queue_.size() >= options_.max_batch_spans);
  }
  if (wake) wake_.notify_one();
}

void OtlpExporter::shutdown(milliseconds flush_timeout) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    flush_until_ = Clock::now() + flush_timeout;
  }
  wake_.notify_one();
  http_->wake();
  thread_.join();
}

TraceCounts OtlpExporter::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void OtlpExporter::run() {
  for (std::vector<Span> batch = next_batch(); !batch.empty(); batch = next_batch()) {
    deliver(batch);
  }
}

// Empty: the end.
std::vector<Span> OtlpExporter::next_batch() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  wake_.wait_until(lock, oldest_queued_ + options_.batch_delay,
                   [this] { return stopping_ || queue_.size() >= options_.max_batch_spans; });
  if (Clock::now() >= flush_until_) {
    counts_.num_unreachable += static_cast<int64_t>(queue_.size());
    queue_.clear();
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(queue_.size(), options_.max_batch_spans));
  std::vector<Span> batch(std::make_move_iterator(queue_.begin()),
                          std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  return batch;
}

void OtlpExporter::deliver(const std::vector<Span>& batch) {
  const std::string body = encode_traces(batch, options_.service_name);
  const auto num_spans = static_cast<int64_t>(batch.size());
  milliseconds pause = options_.first_pause;
  for (int i = 1; i <= options_.max_attempts; ++i) {
    int64_t num_rejected = num_spans;
    milliseconds this_pause = spread(pause);
    const Outcome outcome = attempt(body, num_rejected, this_pause);
    if (outcome != Outcome::kTryAgain) {
      const std::lock_guard lock(mutex_);
      counts_.num_exported += num_spans - num_rejected;
      counts_.num_refused += num_rejected;
      return;
    }
    if (i == options_.max_attempts || !pause_for(this_pause)) break;
    pause = std::min(pause * 2, options_.max_pause);
  }
  const std::lock_guard lock(mutex_);
  counts_.num_unreachable += num_spans;
}

// `num_rejected` holds how many spans were sent and is told how many were rejected; `pause` is
// made longer when the collector asks for it.
OtlpExporter::Outcome OtlpExporter::attempt(const std::string& body,
                                            int64_t& num_rejected,
                                            milliseconds& pause) {
  const Http::Reply reply = http_->post(body, options_.timeout, [this] {
    const std::lock_guard lock(mutex_);
    return flush_until_;
  });
  if (reply.status == 0) {
    report(reply.error);
    return Outcome::kTryAgain;
  }
  if (reply.status >= 200 && reply.status < 300) {
    num_rejected = num_rejected_in(reply.body, num_rejected);
    report(num_rejected == 0 ? "" : "the collector rejects some spans");
    return Outcome::kTaken;
  }
  report(fmt::format("the collector answers {}", reply.status));
  for (const long status : {429, 502, 503, 504}) {
    if (reply.status != status) continue;
    pause = std::max(pause, std::min(reply.retry_after, options_.max_pause));
    return Outcome::kTryAgain;
  }
  return Outcome::kRefused;
}

// False when the flush would be over before another attempt. A shutdown cuts the pause short, once.
bool OtlpExporter::pause_for(milliseconds pause) {
  std::unique_lock lock(mutex_);
  const Clock::time_point until = Clock::now() + pause;
  if (stopping_) {
    if (until >= flush_until_) return false;
    lock.unlock();
    std::this_thread::sleep_until(until);
    return true;
  }
  wake_.wait_until(lock, until, [this] { return stopping_; });
  return Clock::now() < flush_until_;
}

void OtlpExporter::report(const std::string& trouble) {
  if (trouble.empty() == trouble_.empty()) return;
  trouble_ = trouble;
  if (options_.on_trouble) options_.on_trouble(trouble);
}

}  // namespace tgi::http
