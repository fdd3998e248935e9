// Which of several models a body is for, and what the gateway knows of each.
#include "cmd/http/model_choice.h"

#include "cmd/http/openai_body.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

ApiOptions options_of(const std::string& id, const std::string& daemon_model) {
  ApiOptions out;
  out.model_id = id;
  out.daemon_model = daemon_model;
  return out;
}

struct TwoModels {
  Metrics metrics{{.max_input_tokens = 31, .max_total_tokens = 32, .trace_counts = {}}};
  RequestLog log{{.json = true, .level = LogLevel::kOff}};
  Service service{.options = std::vector{options_of("first", ""), options_of("b", "b")},
                  .daemon = {.socket_path = "/nowhere/at/all"},
                  .permits = Permits(8),
                  .metrics = metrics,
                  .log = log};
  Scope scope{service, Request{}, "/route"};
};

}  // namespace

TEST_CASE("the model of a body is the text of its own member of that name") {
  CHECK(model_of_body(R"({"model": "b"})") == "b");
  CHECK(model_of_body(R"({"messages": [{"model": "x"}], "a": {"model": "y"}, "model": "b", "n")") ==
        "b");
  for (const char* without :
       {"", "{}", "[]", R"(["model", "b"])", R"([{"model": "b"}])", R"({"model": null})",
        R"({"model": ["b"]})", R"({"model": {"model": "b"}})", R"({"a": "model", "b": "b"})",
        R"({"a": {"model": "b"}})", R"({"model": "b)", "model"}) {
    INFO(without);
    CHECK_FALSE(model_of_body(without));
  }
}

TEST_CASE("a request is for the model that it names, else for the default one") {
  TwoModels two;
  CHECK(two.scope.options().model_id == "first");
  CHECK_FALSE(two.scope.daemon_model());
  const ApiOptions& before = two.scope.options();
  choose_served_model(two.scope, "nobody");
  CHECK(two.scope.options().model_id == "first");
  choose_served_model(two.scope, "b");
  CHECK(two.scope.daemon_model() == "b");
  CHECK(two.scope.record().model == "b");
  CHECK(before.model_id == "first");  // what was handed out stays
}

TEST_CASE("a model that was loaded meanwhile is found when it is asked for") {
  TwoModels two;
  int num_looks = 0;
  two.service.look_again = [&] {
    ++num_looks;
    two.service.options.set({options_of("first", ""), options_of("c", "c")});
  };
  choose_served_model(two.scope, "first");
  CHECK(num_looks == 0);
  choose_served_model(two.scope, "c");
  CHECK(num_looks == 1);
  CHECK(two.scope.daemon_model() == "c");
  CHECK(two.service.options.find("b") == nullptr);
}

TEST_CASE("a name that is nobody's is refused with those of all models") {
  TwoModels two;
  CHECK_THAT(model_not_found("x", *two.service.options.get()).what(),
             Catch::Contains("`first`, `b`"));
}

}  // namespace tgi::http
