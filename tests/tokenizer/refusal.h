// What an error says, in tests of what is refused.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "tests/catch.h"

namespace tgi {

// Fails when `run` throws no error, or one of another code.
inline std::string message_of(Code code, const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(code_row(error.code()).name == code_row(code).name);
    return error.what();
  }
  FAIL("nothing was refused");
  return {};
}

}  // namespace tgi
