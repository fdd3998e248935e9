#include "ipc/model_name.h"

#include <string>

#include "tests/catch.h"

namespace tgi::ipc {

TEST_CASE("names of models are words, and those of the hub") {
  for (const char* name : {"demo", "llama3.2:1b", "a-b_c@d", "ORG/NAME", "ORG/NAME:Q4_K_M"}) {
    CHECK_NOTHROW(check_model_name(name));
  }
  for (const char* name : {"", "/a", "a/", "a//b", "a b", "a=b", "a\n"}) {
    CHECK_THROWS_WITH(check_model_name(name), Catch::Contains("expected a model's name"));
  }
  CHECK_THROWS(check_model_name(std::string(129, 'a')));
  CHECK(split_named_model("b=/models/B") == NamedModel{"b", "/models/B"});
  CHECK(split_named_model("/models/a=b") == NamedModel{"", "/models/a=b"});
}

TEST_CASE("a model without a name is called by the end of its path") {
  CHECK(model_name_of("ORG/NAME:Q4_K_M") == "ORG/NAME:Q4_K_M");
  CHECK(model_name_of("demo") == "demo");
  CHECK(model_name_of("/models/my own (2)") == "my-own--2-");
  CHECK(model_name_of("/models/tiny.Q8_0.gguf") == "tiny.Q8_0");
  CHECK(model_name_of("/models/v1.5") == "v1.5");
  CHECK(model_name_of("/") == "model");
  CHECK_NOTHROW(check_model_name(model_name_of("/m/" + std::string(200, 'x'))));
}

}  // namespace tgi::ipc
