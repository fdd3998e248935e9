// Messages are told as they are, whatever came in them.
#include "base/error.h"

#include <new>
#include <string>
#include <system_error>

#include "base/current_error.h"
#include "tests/catch.h"

namespace tgi {

TEST_CASE("control characters of a message are shown, not obeyed") {
  const std::string name("a\0b\x1b[31m\r\x7f", 9);
  const Error error(Code::kNotFound,
                    "no model is called " + name + "; there are:\n\tdemo, caf\xC3\xA9");
  CHECK(std::string(error.what()) ==
        "no model is called a\\x00b\\x1b[31m\\x0d; there are:\n\tdemo, caf\xC3\xA9");
  CHECK(std::string(error.in("load").what()) == std::string("load: ") + error.what());
}

TEST_CASE("what the system does not give is said with the limit that may be raised") {
  const auto error_of = [](auto thrown) {
    try {
      throw thrown;
    } catch (...) {
      return current_error();
    }
  };
  const Error no_thread =
      error_of(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  CHECK(no_thread.code() == Code::kOutOfMemory);
  CHECK_THAT(no_thread.what(),
             Catch::Contains("no further thread can be started") && Catch::Contains("ulimit -u"));
  CHECK(error_of(std::bad_alloc()).code() == Code::kOutOfMemory);
  const Error other = error_of(std::system_error(std::make_error_code(std::errc::io_error)));
  CHECK(other.code() == Code::kInternal);
  const Error known = error_of(Error(Code::kNotFound, "no such model"));
  CHECK(known.code() == Code::kNotFound);
  CHECK(std::string(known.what()) == "no such model");
}

}  // namespace tgi
