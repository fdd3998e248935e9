// Which adapters requests get, and when somebody is asked for them.
#include "cmd/http/adapters.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace tgi::http::adapters_test {
namespace {

// Has org/open, and org/private for the tokens `readers`.
struct Hub {
  std::vector<std::string> readers = {"good"};
  int num_asked = 0;

  ResolveAdapter resolve() {
    return [this](const std::string& id, const std::optional<std::string>& token) -> std::string {
      ++num_asked;
      const bool may_read =
          id == "org/open" ||
          (token && std::ranges::find(readers, *token) != readers.end() && id == "org/private");
      if (!may_read) throw Error(Code::kNotFound, "not there, or not for this token");
      return "/cache/" + token.value_or("open") + "/" + id;
    };
  }
};

std::optional<std::string> folder(Adapters& adapters,
                                  const std::string& id,
                                  const std::optional<std::string>& token) {
  ipc::GenerateRequest request;
  adapters.choose({.id = id, .token = token}, "base", request);
  CHECK(request.adapter == id);
  return request.adapter_path;
}

}  // namespace

TEST_CASE("adapters: what came with a token is for requests with that token alone") {
  Hub hub;
  Adapters adapters({.named = {}, .static_adapter = "", .resolve = hub.resolve()});
  CHECK(folder(adapters, "org/private", "good") == "/cache/good/org/private");
  CHECK(folder(adapters, "org/private", "good") == "/cache/good/org/private");
  CHECK(hub.num_asked == 1);
  for (const std::optional<std::string>& token : {std::optional<std::string>(), {"bad"}, {""}}) {
    try {
      (void)folder(adapters, "org/private", token);
      FAIL("it was given without its token");
    } catch (const ApiError& error) {
      CHECK(error.status() == 424);
      CHECK(std::string(error.what()).find("good") == std::string::npos);
    }
  }
  CHECK_FALSE(adapters.knows("org/private"));
  CHECK(adapters.names().empty());
  CHECK(folder(adapters, "org/open", std::nullopt) == "/cache/open/org/open");
  CHECK(adapters.names() == std::vector<std::string>{"org/open"});
}

TEST_CASE("adapters: a token that may read no longer gets nothing once it is looked at again") {
  Hub hub;
  Adapters adapters({.named = {},
                     .static_adapter = "",
                     .resolve = hub.resolve(),
                     .token_holds = std::chrono::milliseconds(0)});
  CHECK(folder(adapters, "org/private", "good").has_value());
  CHECK(folder(adapters, "org/open", std::nullopt).has_value());
  hub.readers.clear();
  CHECK_THROWS_AS(folder(adapters, "org/private", "good"), ApiError);
  // Without a token there is nothing to look at again.
  CHECK(folder(adapters, "org/open", std::nullopt).has_value());
  CHECK(hub.num_asked == 3);
  hub.readers = {"good"};
  CHECK(folder(adapters, "org/private", "good").has_value());
}

}  // namespace tgi::http::adapters_test
