#include "engine/text/chat_template.h"

#include <catch2/catch.hpp>
TEST_CASE("smoke") { CHECK(tgi::ChatTemplate::parse("a{{ 1 + 2 }}").render(tgi::OrderedJson::parse(R"([{"role":"user","content":"x"}])")) == "a3"); }
