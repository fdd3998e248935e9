// Messages are told as they are, whatever came in them.
#include "base/error.h"

#include <string>

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

}  // namespace tgi
