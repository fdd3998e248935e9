// What the page of `tgi serve` is made of, and the requests that it lists.
#include "cmd/http/ui_page.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cmd/http/request_log.h"
#include "cmd/http/ui_files.h"
#include "sample_record.h"
#include "tests/catch.h"

namespace tgi::http {

TEST_CASE("every file of assets/ui is inside as it is") {
  size_t num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TGI_SOURCE_DIR "/assets/ui")) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    std::ifstream stream(entry.path(), std::ios::binary);
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    const auto file = find_ui_file(name);
    REQUIRE(file);
    CHECK(gunzip(file->gzip) == bytes.str());
    CHECK(file->gzip.size() < bytes.str().size());
    CHECK(file->content_type.ends_with("; charset=utf-8"));
    ++num_files;
  }
  CHECK(num_files > 20);
  for (const char* name : {"", "nope.js", "lib", "lib/", "../app.js", "app.js/", "index.html\n"}) {
    INFO(name);
    CHECK_FALSE(find_ui_file(name));
  }
}

TEST_CASE("compressed bytes that are damaged are an error") {
  const std::string_view good = find_ui_file("app.js")->gzip;
  CHECK_THROWS(gunzip(""));
  CHECK_THROWS(gunzip("not gzip at all"));
  CHECK_THROWS(gunzip(good.substr(0, good.size() - 9)));
  std::string changed(good);
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 0x55);
  CHECK_THROWS(gunzip(changed));
}

TEST_CASE("the log knows the last requests to generate and those that went wrong") {
  RequestLog log({.json = true, .level = LogLevel::kOff});
  CHECK(log.recent().empty());
  RequestRecord health;
  health.route = "/health";
  health.status = 200;
  log.write(health);
  CHECK(log.recent().empty());
  health.status = 503;
  log.write(health);
  log.write(sample_record());
  const ipc::OrderedJson two = log.recent();
  REQUIRE(two.size() == 2);
  CHECK(two[0]["route"] == "/generate_stream");
  CHECK(two[0]["prompt_tokens"] == *sample_record().num_prompt_tokens);
  CHECK_FALSE(two[0].contains("span"));
  CHECK_FALSE(two[0].contains("target"));
  CHECK(two[1]["status"] == 503);
  for (size_t i = 0; i < kMaxRecentRequests + 7; ++i) {
    RequestRecord record = sample_record();
    record.request_id = std::to_string(i);
    log.write(record);
  }
  const ipc::OrderedJson all = log.recent();
  REQUIRE(all.size() == kMaxRecentRequests);
  CHECK(all.front()["request_id"] == std::to_string(kMaxRecentRequests + 6));
  CHECK(all.back()["request_id"] == "7");
}

}  // namespace tgi::http
