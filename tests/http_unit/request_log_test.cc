#include "cmd/http/request_log.h"

#include <unistd.h>

#include <thread>
#include <vector>

#include "base/nlohmann_json.h"
#include "base/unique_fd.h"
#include "cmd/http/log_text.h"
#include "sample_record.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

using Json = nlohmann::json;

// A file without a name that collects what is written to it.
class Capture {
 public:
  Capture() : file_(std::tmpfile()) { REQUIRE(file_ != nullptr); }
  ~Capture() { std::fclose(file_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  int fd() const { return ::fileno(file_); }

  std::string text() const {
    std::string out;
    char buffer[4096];
    off_t at = 0;
    for (ssize_t got; (got = ::pread(fd(), buffer, sizeof buffer, at)) > 0; at += got) {
      out.append(buffer, static_cast<size_t>(got));
    }
    return out;
  }

 private:
  std::FILE* file_;
};

// What base/log.h writes to stderr while `act` runs.
std::string stderr_of(const std::function<void()>& act) {
  const Capture capture;
  std::fflush(stderr);
  const int saved = ::dup(STDERR_FILENO);
  REQUIRE(saved >= 0);
  ::dup2(capture.fd(), STDERR_FILENO);
  act();
  std::fflush(stderr);
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  return capture.text();
}

Json line_of(const RequestRecord& record) {
  return Json::parse(request_json(record, record.started_at));
}

}  // namespace

TEST_CASE("request log: a JSON line has TGI's fields and ours") {
  const Json line = line_of(sample_record());
  CHECK(line["timestamp"] == "2026-01-02T03:04:05.500000Z");
  CHECK(line["level"] == "INFO");
  CHECK(line["message"] == "Success");
  CHECK(line["request_id"] == "req-1");
  CHECK(line["route"] == "/generate_stream");
  CHECK(line["status"] == 200);
  CHECK(line["finish_reason"] == "length");
  CHECK(line["prompt_tokens"] == 40);
  CHECK(line["cached_tokens"] == 32);
  CHECK(line["generated_tokens"] == 24);
  CHECK(line["ttft_ms"] == 25.5);
  CHECK(line["total_ms"] == 126);
  CHECK(line["trace_id"] == "0af7651916cd43dd8448eb211c80319c");
  CHECK(line["span"] == Json{{"total_time", "126ms"},
                             {"validation_time", "2ms"},
                             {"queue_time", "3ms"},
                             {"inference_time", "120ms"},
                             {"time_per_token", "5ms"},
                             {"seed", "Some(7)"},
                             {"name", "/generate_stream"}});
  CHECK(line["spans"] == Json::array({line["span"]}));
}

TEST_CASE("request log: the level says whose fault it was") {
  const auto level = [](int status, Failure failure, bool is_generation = true) {
    RequestRecord record = sample_record();
    record.status = status;
    record.failure = failure;
    record.is_generation = is_generation;
    return line_of(record)["level"].get<std::string>();
  };
  CHECK(level(422, Failure::kValidation) == "WARN");
  CHECK(level(429, Failure::kNone) == "WARN");
  CHECK(level(424, Failure::kGeneration) == "ERROR");
  CHECK(level(200, Failure::kIncomplete) == "ERROR");
  CHECK(level(499, Failure::kDropped) == "INFO");
  CHECK(level(200, Failure::kNone, false) == "DEBUG");
  CHECK(level(401, Failure::kNone, false) == "WARN");
  CHECK(level(503, Failure::kNone, false) == "ERROR");
}

TEST_CASE("request log: a client that left is told with the phase") {
  RequestRecord record = sample_record();
  record.cancelled_phase = "decode";
  CHECK(line_of(record)["message"] == "client left during decode");
  CHECK(line_of(record)["cancelled_phase"] == "decode");
}

TEST_CASE("request log: no query string, no forged line, no endless id") {
  RequestRecord record = sample_record();
  record.is_generation = false;
  record.status = 404;
  record.route.clear();
  record.path = "/x\r\nlevel=error?api_key=secret";
  record.request_id = std::string(4000, 'a');
  for (const std::string& line : {request_json(record, record.started_at), stderr_of([&] {
                                    RequestLog(RequestLogOptions{}).write(record);
                                  })}) {
    INFO(line);
    CHECK(line.find("secret") == std::string::npos);
    CHECK(line.find("api_key") == std::string::npos);
    CHECK(line.find('\r') == std::string::npos);
    CHECK(line.find('\n') >= line.size() - 1);  // none, or the last character
    CHECK(line.size() < 600);
  }
  CHECK(line_of(record)["route"] == "/x\\x0d\\x0alevel=error");
}

TEST_CASE("request log: text lines are logfmt with a dash for what there is not") {
  RequestRecord record = sample_record();
  record.seed.reset();
  record.time_to_first_token_s.reset();
  const std::string line = stderr_of([&] { RequestLog(RequestLogOptions{}).write(record); });
  INFO(line);
  for (const std::string field :
       {"level=info", "msg=Success", "id=req-1", "route=/generate_stream", "status=200",
        "generated_tokens=24", "total_ms=126.00", "ttft_ms=-", "tpot_ms=5.00"}) {
    CHECK(line.find(" " + field + " ") != std::string::npos);
  }
  CHECK(line.substr(0, 5) == "time=");
}

TEST_CASE("request log: health checks that went well are not told") {
  RequestRecord record = sample_record();
  record.is_generation = false;
  const Capture capture;
  RequestLog json({.json = true, .level = LogLevel::kInfo, .fd = capture.fd()});
  json.write(record);
  CHECK(capture.text().empty());
  CHECK(stderr_of([&] { RequestLog(RequestLogOptions{}).write(record); }).empty());
  record.status = 503;
  json.write(record);
  CHECK_FALSE(capture.text().empty());
}

TEST_CASE("request log: events take the form of the log") {
  const Capture capture;
  RequestLog json({.json = true, .level = LogLevel::kInfo, .fd = capture.fd()});
  json.event(LogLevel::kDebug, "not told");
  json.event(LogLevel::kWarn, "serving \"demo\"", {{"port", 8080}});
  const Json line = Json::parse(capture.text());
  CHECK(line["level"] == "WARN");
  CHECK(line["message"] == "serving \"demo\"");
  CHECK(line["port"] == "8080");
  const std::string text = stderr_of([] {
    RequestLog(RequestLogOptions{}).event(LogLevel::kWarn, "up", {{"port", 8080}});
  });
  CHECK(text.find("level=warn msg=up port=8080\n") != std::string::npos);
}

TEST_CASE("request log: lines of many threads stay whole") {
  const Capture capture;
  RequestLog log({.json = true, .level = LogLevel::kInfo, .fd = capture.fd()});
  const RequestRecord record = sample_record();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) log.write(record);
      });
    }
  }
  int num_lines = 0;
  const std::string text = capture.text();
  for (size_t begin = 0; begin < text.size(); ++num_lines) {
    const size_t end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    CHECK(Json::parse(text.substr(begin, end - begin))["request_id"] == "req-1");
    begin = end + 1;
  }
  CHECK(num_lines == 400);
}

TEST_CASE("printable text: escapes what is not ASCII and cuts") {
  CHECK(printable("plain text") == "plain text");
  CHECK(printable("a\\b\"c") == "a\\x5cb\"c");
  CHECK(printable("\x1b[31m\x7f") == "\\x1b[31m\\x7f");
  CHECK(printable("\xc3\xa9") == "\\xc3\\xa9");
  CHECK(printable(std::string(10, 'a'), 4) == "aaaa...");
}

}  // namespace tgi::http
