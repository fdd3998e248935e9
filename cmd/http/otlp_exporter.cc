#include "cmd/http/otlp_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cmd/curl/lone_transfer.h"
#include "cmd/curl/url.h"
#include "ipc/protocol.h"

namespace tgi::http {
namespace {

using curl::Url;
using curl::UrlPart;
using std::chrono::milliseconds;

constexpr std::string_view kTracesPath = "/v1/traces";
constexpr size_t kMaxReplyBytes = size_t{64} << 10;

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
  std::optional<Url> url = Url::parse(endpoint);
  const std::string scheme = url ? url->part(UrlPart::kScheme) : "";
  if (scheme != "http" && scheme != "https") {
    throw fail("expected http://HOST:PORT or https://HOST:PORT");
  }
  if (!url->part(UrlPart::kUser).empty() || !url->part(UrlPart::kPassword).empty()) {
    // The text itself may not be shown.
    throw Error(Code::kInvalidArgument, "otlp endpoint: a user or password is not supported");
  }
  if (!url->part(UrlPart::kQuery).empty() || !url->part(UrlPart::kFragment).empty()) {
    throw fail("a query or fragment is not supported");
  }
  std::string path = url->part(UrlPart::kPath);
  while (path.ends_with('/')) path.pop_back();
  if (path.ends_with(kTracesPath)) return endpoint;
  if (url->part(UrlPart::kPort) == "4317") {
    throw fail(
        fmt::format("port 4317 is where collectors speak gRPC, tgi sends OTLP over HTTP; "
                    "give the collector's HTTP port, usually {}://{}:4318",
                    scheme, url->part(UrlPart::kHost)));
  }
  path += kTracesPath;
  url->set(UrlPart::kPath, path);
  return url->text();
}

// One connection to the collector, kept open between batches. post() is the sending thread's;
// wake() any thread's.
class OtlpExporter::Http final : curl::Receiver {
 public:
  struct Reply {
    int status = 0;     // 0: none came
    std::string error;  // then, why
    std::string body;
    milliseconds retry_after{0};
  };

  Http(const std::string& url, milliseconds timeout) {
    // Without "Expect:" libcurl would wait for a "100 Continue" before long bodies.
    transfer_.transfer().prepare({.url = url,
                                  .headers = {"Content-Type: application/json", "Expect:"},
                                  .user_agent = {},
                                  .aws = {},
                                  .ca_file = {},
                                  .timeout = timeout,
                                  .leave_lookups = true},
                                 *this);
  }

  void wake() { transfer_.wake(); }

  // Gives up when the time that `until` returns has come.
  Reply post(const std::string& body, const std::function<Clock::time_point()>& until) {
    Reply reply;
    body_ = &reply.body;
    curl::Transfer& transfer = transfer_.transfer();
    transfer.set_body(body);
    const std::optional<curl::Outcome> outcome = transfer_.perform(until);
    if (!outcome) {
      reply.error = "tgi ends before the collector has answered";
    } else if (!outcome->ok()) {
      reply.error = outcome->reason;
    } else {
      reply.status = transfer.status();
      reply.retry_after = std::clamp(transfer.retry_after(), kNoPause, kLongestPause);
    }
    return reply;
  }

 private:
  static constexpr std::chrono::seconds kNoPause{0};
  static constexpr std::chrono::seconds kLongestPause{3600};

  bool on_body(std::string_view bytes) override {
    body_->append(bytes.substr(0, kMaxReplyBytes - body_->size()));
    return true;  // the rest is passed over
  }

  curl::LoneTransfer transfer_;
  std::string* body_ = nullptr;  // of the reply that is awaited
};

OtlpExporter::OtlpExporter(OtlpOptions options)
    : options_(std::move(options)),
      http_(std::make_unique<Http>(otlp_traces_url(options_.endpoint), options_.timeout)),
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
  const Http::Reply reply = http_->post(body, [this] {
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
  for (const int status : {429, 502, 503, 504}) {
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
