// What the chat template tests share.
#pragma once

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"
#include "engine/text/chat_template.h"
#include "tests/catch.h"

namespace tgi {

// The time at which the goldens were made: Friday, 26 July 2024, 09:05:03.
inline std::tm golden_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 9;
  time.tm_min = 5;
  time.tm_sec = 3;
  std::mktime(&time);  // fills in the day of the week and of the year
  return time;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path);
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline OrderedJson one_message() {
  return OrderedJson::parse(R"([{"role": "user", "content": "Hi"}])");
}

// Renders for one message from the user.
inline std::string render_simple(const std::string& source, const jinja::Limits& limits = {}) {
  return ChatTemplate::parse(source, {}, limits).render(one_message());
}

struct Failure {
  bool has_failed = false;
  Code code = Code::kInternal;
  std::string message;
};

template <typename Action>
Failure failure_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return {true, error.code(), error.what()};
  }
  return {};
}

inline Failure failure_of_template(const std::string& source, const jinja::Limits& limits = {}) {
  return failure_of([&] { render_simple(source, limits); });
}

}  // namespace tgi
