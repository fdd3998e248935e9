// The language against jinja2 itself: golden/*.json, made by
// scripts/golden/make_chat_template_goldens.
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/catch.h"
#include "tests/chat_template/test_support.h"

namespace tgi {
namespace {

OrderedJson read_golden(const std::string& name) {
  return OrderedJson::parse(read_text(TGI_SOURCE_DIR "/tests/chat_template/golden/" + name));
}

// What render gives, or nothing when it throws; `reason` is the message then.
std::optional<std::string> render(const std::string& source,
                                  const OrderedJson& context,
                                  std::string& reason) {
  RenderOptions options;
  options.add_generation_prompt = false;
  options.keeps_parts = true;
  options.local_time = &golden_time;
  for (const auto& [name, value] : context.items()) {
    if (name != "messages") options.extra[name] = value;
  }
  try {
    return ChatTemplate::parse(source).render(context["messages"], options);
  } catch (const Error& error) {
    reason = error.what();
    return std::nullopt;
  }
}

// Returns how many cases were compared.
size_t check_cases(const OrderedJson& golden) {
  for (const OrderedJson& test : golden["cases"]) {
    const auto source = test["template"].get<std::string>();
    INFO("template: " << source);
    std::string reason;
    const std::optional<std::string> output = render(source, golden["context"], reason);
    INFO("our error: " << reason);
    if (test.contains("error")) {
      INFO("jinja2's error: " << test["error"].get<std::string>());
      INFO("our output: " << output.value_or(""));
      CHECK(!output.has_value());
    } else {
      CHECK(output.has_value());
      if (output) CHECK(*output == test["output"].get<std::string>());
    }
  }
  return golden["cases"].size();
}

TEST_CASE("renders_every_feature_of_the_language_as_jinja2_does") {
  CHECK(check_cases(read_golden("snippets.json")) >= 250);
}

TEST_CASE("renders_random_templates_as_jinja2_does") {
  CHECK(check_cases(read_golden("random.json")) >= 400);
}

TEST_CASE("operators_bind_as_in_jinja2") {
  CHECK(check_cases(read_golden("expressions.json")) >= 500);
}

// For work on the interpreter: TGI_TEMPLATE_CASES=<file made with --random or --expressions>.
TEST_CASE("renders_the_cases_of_a_given_file_as_jinja2_does", "[.]") {
  const char* path = std::getenv("TGI_TEMPLATE_CASES");
  REQUIRE(path != nullptr);
  check_cases(OrderedJson::parse(read_text(path)));
}

}  // namespace
}  // namespace tgi
