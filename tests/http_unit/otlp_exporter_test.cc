// Against a collector made of cpp-httplib: one that takes, refuses, hangs, comes and goes.
#include "cmd/http/otlp_exporter.h"

#include <httplib.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "sample_record.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Collector {
 public:
  using Answer = std::function<void(int attempt, httplib::Response&)>;

  explicit Collector(Answer answer = {}, int port = 0) {
    server_.Post("/v1/traces", [this, answer = std::move(answer)](const httplib::Request& request,
                                                                  httplib::Response& response) {
      int attempt = 0;
      {
        const std::lock_guard lock(mutex_);
        bodies_.push_back(request.body);
        content_type_ = request.get_header_value("Content-Type");
        attempt = static_cast<int>(bodies_.size());
      }
      changed_.notify_all();
      response.set_content("{}", "application/json");
      if (answer) answer(attempt, response);
    });
    port_ = port;
    if (port == 0) {
      port_ = server_.bind_to_any_port("127.0.0.1");
    } else if (!server_.bind_to_port("127.0.0.1", port)) {
      port_ = -1;
    }
    REQUIRE(port_ > 0);
    server_.set_keep_alive_timeout(1);  // what its destructor may have to wait
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(milliseconds(1));
  }

  ~Collector() { server_.stop(); }

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }

  bool wait_for_attempts(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return bodies_.size() >= count; });
  }

  std::vector<std::string> bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  std::string content_type() const {
    const std::lock_guard lock(mutex_);
    return content_type_;
  }

 private:
  httplib::Server server_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> bodies_;  // guarded by mutex_
  std::string content_type_;         // guarded by mutex_
  std::jthread thread_;
};

OtlpOptions quick(const std::string& endpoint) {
  OtlpOptions options;
  options.endpoint = endpoint;
  options.service_name = "svc";
  options.batch_delay = milliseconds(20);
  options.first_pause = milliseconds(20);
  options.max_pause = milliseconds(100);
  options.flush_timeout = milliseconds(5000);
  return options;
}

int64_t num_all(const TraceCounts& counts) {
  return counts.num_exported + counts.num_queue_full + counts.num_refused + counts.num_unreachable;
}

// Waits until all spans have met their fate.
TraceCounts settled(const OtlpExporter& exporter, int64_t num_spans) {
  const auto until = Clock::now() + std::chrono::seconds(20);
  while (num_all(exporter.counts()) < num_spans && Clock::now() < until) {
    std::this_thread::sleep_for(milliseconds(2));
  }
  return exporter.counts();
}

size_t num_spans_in(const std::string& body) {
  return Json::parse(body)["resourceSpans"][0]["scopeSpans"][0]["spans"].size();
}

constexpr int64_t kSpansEach = 5;  // of sample_record()

}  // namespace

TEST_CASE("otlp endpoint: the path is added where it is missing") {
  CHECK(otlp_traces_url("http://host:4318") == "http://host:4318/v1/traces");
  CHECK(otlp_traces_url("http://host:4318/") == "http://host:4318/v1/traces");
  CHECK(otlp_traces_url("https://host/otlp/") == "https://host/otlp/v1/traces");
  CHECK(otlp_traces_url("http://host:4318/v1/traces") == "http://host:4318/v1/traces");
  CHECK(otlp_traces_url("http://[::1]:4318") == "http://[::1]:4318/v1/traces");
  CHECK(otlp_traces_url("http://host:4317/v1/traces") == "http://host:4317/v1/traces");
}

TEST_CASE("otlp endpoint: what can't work is refused with what to do") {
  for (const std::string endpoint :
       {"", "host", "host:4318", "grpc://host:4318", "ftp://host", "unix:///tmp/x", "http://",
        "http://host:4318?key=1", "http://host:4318#x", "http://host:99999"}) {
    INFO(endpoint);
    CHECK_THROWS_AS(otlp_traces_url(endpoint), Error);
  }
  try {
    otlp_traces_url("http://jaeger:4317");
    FAIL("port 4317 was taken");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    CHECK(std::string(error.what()).find("http://jaeger:4318") != std::string::npos);
  }
  try {
    otlp_traces_url("http://user:s3cret@host:4318");
    FAIL("a password was taken");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("s3cret") == std::string::npos);
  }
}

TEST_CASE("otlp exporter: spans arrive in batches") {
  Collector collector;
  OtlpExporter exporter(quick(collector.endpoint()));
  for (int i = 0; i < 10; ++i) exporter.add(sample_record());
  REQUIRE(collector.wait_for_attempts(1));
  CHECK(settled(exporter, 10 * kSpansEach).num_exported == 10 * kSpansEach);
  CHECK(collector.content_type() == "application/json");
  size_t num_spans = 0;
  for (const std::string& body : collector.bodies()) num_spans += num_spans_in(body);
  CHECK(num_spans == 10 * kSpansEach);
  CHECK(collector.bodies().size() < 10);
}

TEST_CASE("otlp exporter: a batch holds no more than its limit and doesn't wait when full") {
  Collector collector;
  OtlpOptions options = quick(collector.endpoint());
  options.batch_delay = std::chrono::minutes(10);
  options.max_batch_spans = 8;
  OtlpExporter exporter(options);
  for (int i = 0; i < 8; ++i) exporter.add(sample_record());
  CHECK(settled(exporter, 40).num_exported == 40);
  for (const std::string& body : collector.bodies()) CHECK(num_spans_in(body) == 8);
}

TEST_CASE("otlp exporter: what is not sampled is not sent") {
  Collector collector;
  OtlpExporter exporter(quick(collector.endpoint()));
  RequestRecord record = sample_record();
  record.trace.sampled = false;
  exporter.add(record);
  exporter.add(sample_record());
  CHECK(settled(exporter, kSpansEach).num_exported == kSpansEach);
  exporter.shutdown(milliseconds(5000));
  CHECK(num_all(exporter.counts()) == kSpansEach);
}

TEST_CASE("otlp exporter: an overloaded collector is asked again, and its recovery told") {
  Collector collector([](int attempt, httplib::Response& response) {
    if (attempt == 1) response.status = 503;
    if (attempt == 2) response.status = 429;
  });
  std::mutex mutex;
  std::vector<std::string> troubles;
  OtlpOptions options = quick(collector.endpoint());
  options.on_trouble = [&](const std::string& trouble) {
    const std::lock_guard lock(mutex);
    troubles.push_back(trouble);
  };
  OtlpExporter exporter(options);
  exporter.add(sample_record());
  CHECK(settled(exporter, kSpansEach).num_exported == kSpansEach);
  exporter.shutdown(milliseconds(1000));
  const std::vector<std::string> bodies = collector.bodies();
  REQUIRE(bodies.size() == 3);
  CHECK(bodies[0] == bodies[2]);
  CHECK(troubles == std::vector<std::string>{"the collector answers 503", ""});
}

TEST_CASE("otlp exporter: a collector's wish for a longer pause is heard") {
  std::vector<Clock::time_point> times;  // of the collector's one thread at a time
  std::mutex mutex;
  Collector collector([&](int attempt, httplib::Response& response) {
    const std::lock_guard lock(mutex);
    times.push_back(Clock::now());
    if (attempt > 1) return;
    response.status = 503;
    response.set_header("Retry-After", "1");
  });
  OtlpOptions options = quick(collector.endpoint());
  options.max_pause = std::chrono::seconds(5);
  OtlpExporter exporter(options);
  exporter.add(sample_record());
  CHECK(settled(exporter, kSpansEach).num_exported == kSpansEach);
  const std::lock_guard lock(mutex);
  REQUIRE(times.size() == 2);
  CHECK(times[1] - times[0] >= milliseconds(950));
}

TEST_CASE("otlp exporter: a refusal is final and later spans still go out") {
  Collector collector([](int attempt, httplib::Response& response) {
    if (attempt == 1) response.status = 500;
    if (attempt == 2) response.status = 400;
  });
  OtlpExporter exporter(quick(collector.endpoint()));
  for (int i = 1; i <= 3; ++i) {
    exporter.add(sample_record());
    settled(exporter, i * kSpansEach);
  }
  const TraceCounts counts = exporter.counts();
  CHECK(counts.num_refused == 2 * kSpansEach);
  CHECK(counts.num_exported == kSpansEach);
  CHECK(collector.bodies().size() == 3);
}

TEST_CASE("otlp exporter: spans that the collector rejects of a batch are counted") {
  Collector collector([](int, httplib::Response& response) {
    response.set_content(R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}})",
                         "application/json");
  });
  OtlpExporter exporter(quick(collector.endpoint()));
  exporter.add(sample_record());
  const TraceCounts counts = settled(exporter, kSpansEach);
  CHECK(counts.num_exported == 3);
  CHECK(counts.num_refused == 2);
}

TEST_CASE("otlp exporter: gives up on a collector that is down, and reaches it when it is back") {
  int port = 0;
  { port = Collector().port(); }
  OtlpOptions options = quick("http://127.0.0.1:" + std::to_string(port));
  options.max_attempts = 3;
  OtlpExporter exporter(options);
  exporter.add(sample_record());
  CHECK(settled(exporter, kSpansEach).num_unreachable == kSpansEach);
  Collector collector({}, port);
  exporter.add(sample_record());
  CHECK(settled(exporter, 2 * kSpansEach).num_exported == kSpansEach);
}

TEST_CASE("otlp exporter: a hanging collector holds up no request, and the queue stays bounded") {
  std::mutex mutex;
  std::condition_variable changed;
  bool released = false;
  Collector collector([&](int, httplib::Response&) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(30), [&] { return released; });
  });
  OtlpOptions options = quick(collector.endpoint());
  options.max_queued_spans = 100;
  OtlpExporter exporter(options);
  exporter.add(sample_record());
  REQUIRE(collector.wait_for_attempts(1));
  Clock::duration slowest{};
  for (int i = 0; i < 1000; ++i) {
    const auto begin = Clock::now();
    exporter.add(sample_record());
    slowest = std::max(slowest, Clock::now() - begin);
  }
  CHECK(slowest < milliseconds(500));  // some microseconds, on a machine that may be busy
  // All of a request's spans or none: 20 requests fit, 980 do not.
  CHECK(exporter.counts().num_queue_full == 980 * kSpansEach);

  // And at the end the time for the flush is kept although the collector still hangs.
  const auto begin = Clock::now();
  exporter.shutdown(milliseconds(200));
  CHECK(Clock::now() - begin < std::chrono::seconds(3));
  CHECK(exporter.counts().num_unreachable == 21 * kSpansEach);
  {
    const std::lock_guard lock(mutex);
    released = true;
  }
  changed.notify_all();
}

TEST_CASE("otlp exporter: a collector that is too slow is asked again") {
  std::mutex mutex;
  std::condition_variable changed;
  bool released = false;
  Collector collector([&](int attempt, httplib::Response&) {
    std::unique_lock lock(mutex);
    if (attempt == 1) changed.wait_for(lock, std::chrono::seconds(30), [&] { return released; });
  });
  OtlpOptions options = quick(collector.endpoint());
  options.timeout = milliseconds(300);
  OtlpExporter exporter(options);
  exporter.add(sample_record());
  CHECK(settled(exporter, kSpansEach).num_exported == kSpansEach);
  CHECK(collector.bodies().size() == 2);
  {
    const std::lock_guard lock(mutex);
    released = true;
  }
  changed.notify_all();
}

TEST_CASE("otlp exporter: the end flushes what waits for its batch") {
  Collector collector;
  {
    OtlpOptions options = quick(collector.endpoint());
    options.batch_delay = std::chrono::minutes(10);
    OtlpExporter exporter(options);
    for (int i = 0; i < 3; ++i) exporter.add(sample_record());
  }
  size_t num_spans = 0;
  for (const std::string& body : collector.bodies()) num_spans += num_spans_in(body);
  CHECK(num_spans == 3 * kSpansEach);
}

TEST_CASE("otlp exporter: the end is quick while it pauses for a collector that is down") {
  int port = 0;
  { port = Collector().port(); }
  OtlpOptions options = quick("http://127.0.0.1:" + std::to_string(port));
  options.first_pause = std::chrono::minutes(1);
  options.max_pause = std::chrono::minutes(1);
  OtlpExporter exporter(options);
  exporter.add(sample_record());
  std::this_thread::sleep_for(milliseconds(100));
  const auto begin = Clock::now();
  exporter.shutdown(milliseconds(500));
  CHECK(Clock::now() - begin < std::chrono::seconds(3));
  CHECK(exporter.counts().num_unreachable == kSpansEach);
  exporter.add(sample_record());  // after the end: dropped, counted, no harm
  CHECK(exporter.counts().num_queue_full == kSpansEach);
}

TEST_CASE("otlp exporter: every span of many threads arrives once") {
  Collector collector;
  std::set<std::string> ids;
  {
    OtlpExporter exporter(quick(collector.endpoint()));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 100; ++k) {
          RequestRecord record = sample_record();
          record.trace = child_of(std::nullopt);
          exporter.add(record);
        }
      });
    }
    threads.clear();
    exporter.shutdown(std::chrono::seconds(20));
    CHECK(exporter.counts().num_exported == 400 * kSpansEach);
  }
  size_t num_spans = 0;
  for (const std::string& body : collector.bodies()) {
    const Json parsed = Json::parse(body);
    for (const Json& span : parsed["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
      ++num_spans;
      ids.insert(span["spanId"].get<std::string>());
    }
  }
  CHECK(num_spans == 400 * kSpansEach);
  CHECK(ids.size() == 400 * kSpansEach);
}

}  // namespace tgi::http
