// What loading a config.json is refused with.
#pragma once

#include <string>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/model/model_files.h"

namespace tgi {

inline std::string refusal(const Json& config, Code code) {
  INFO(config.dump());
  try {
    load_config(config);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK_THAT(error.what(), Catch::StartsWith("memory/config.json: "));
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

}  // namespace tgi
