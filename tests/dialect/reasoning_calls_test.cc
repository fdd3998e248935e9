// Reasoning and calls beside each other: calls in the midst of it, marks that differ by its length,
// tags around the answer behind it.
#include <string>
#include <utility>
#include <vector>

#include "engine/dialect/write_calls.h"
#include "tests/catch.h"
#include "tests/dialect/spoken.h"
#include "tests/dialect/taken.h"

namespace tgi::dialect {

TEST_CASE("a call within the reasoning ends it, where a token begins it") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  struct Thought {
    const char* dialect;
    const char* reasoning;
    const char* begin;
    const char* end;
  };
  for (const Thought& each :
       {Thought{"solar_open2", "solar_open2", "<|think:start|>", "<|think:end|>"},
        Thought{"apertus", "apertus", "<|inner_prefix|>", "<|inner_suffix|>"},
        Thought{"kimi_k2", "think", "<think>", "</think>"},
        Thought{"kimi_k3", "kimi_k3", "<|open|>think<|sep|>", "<|close|>think<|sep|>"}}) {
    AnswerForm form;
    form.dialects = {.tools = find_tool_dialect(each.dialect),
                     .reasoning = find_reasoning_dialect(each.reasoning)};
    form.tools = {.tools = tools, .must_call = true};
    const std::string call =
        write_calls(form.dialects.tools->syntax,
                    {{.name = "book", .arguments = {{"city", "Oslo"}, {"nights", 2}}}});
    const std::string wrong = write_calls(form.dialects.tools->syntax,
                                          {{.name = "book", .arguments = {{"city", "Oslo"}}}});
    const std::string unknown =
        write_calls(form.dialects.tools->syntax, {{.name = "bork", .arguments = {{"a", "b"}}}});
    for (const bool is_begun : {false, true}) {
      form.reasoning = is_begun ? AnswerForm::Reasoning::kBegun : AnswerForm::Reasoning::kPossible;
      const auto grammar = compiled(form);
      const std::string begin = is_begun ? "" : each.begin;
      CAPTURE(each.dialect, is_begun, call);
      CHECK(takes(grammar, begin + "I book.\n" + call));
      CHECK(takes(grammar, begin + "I book.\n" + each.end + "\n" + call));
      CHECK_FALSE(takes(grammar, begin + "I book.\n" + wrong));
      CHECK_FALSE(takes(grammar, begin + "I book.\n"));
      CHECK_FALSE(takes(grammar, begin + "I book.\n" + call + "Done."));
      for (const size_t chunk : {size_t{1}, size_t{5}, size_t{200}}) {
        CAPTURE(chunk);
        const Heard heard = hear(form.dialects, tools, begin + "I book.\n" + call, chunk, is_begun);
        CHECK(heard.reasoning == "I book.");
        CHECK(heard.text.empty());
        REQUIRE(heard.calls.size() == 1);
        CHECK(heard.calls[0].name == "book");
        // What is none is still reasoning.
        const Heard none =
            hear(form.dialects, tools,
                 begin + "I book.\n" + unknown + "So.\n" + each.end + "\nDone.", chunk, is_begun);
        CHECK(none.calls.empty());
        CHECK(none.broken.empty());
        CHECK(none.text == "Done.");
        CHECK(none.reasoning == "I book.\n" + unknown + "So.");
      }
    }
    // Nobody asked for calls.
    const Heard toolless = hear(form.dialects, {}, each.begin + call + each.end + "Done.", 1);
    CHECK(toolless.calls.empty());
    CHECK(toolless.text == "Done.");
  }
}

TEST_CASE("a spoilt call within the reasoning reads the same however it is cut") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  for (const auto& [name, reasoning] :
       {std::pair{"solar_open2", "solar_open2"}, std::pair{"apertus", "apertus"},
        std::pair{"kimi_k2", "think"}, std::pair{"kimi_k3", "kimi_k3"}}) {
    const Dialects dialects{.tools = find_tool_dialect(name),
                            .reasoning = find_reasoning_dialect(reasoning)};
    const std::string answer =
        "I book.\n" +
        write_calls(dialects.tools->syntax,
                    {{.name = "book", .arguments = {{"city", "Oslo"}, {"nights", 2}}},
                     {.name = "ping", .arguments = OrderedJson::object()}}) +
        "\nSo." + std::string(dialects.reasoning->end) + "Done.";
    for (size_t at = 0; at < answer.size(); ++at) {
      for (const bool is_cut : {true, false}) {
        std::string text = answer;
        text.erase(at, is_cut ? std::string::npos : 1);
        CAPTURE(name, text);
        const Heard whole = hear(dialects, tools, text, text.size() + 1, true);
        for (const size_t chunk : {size_t{1}, size_t{4}}) {
          const Heard heard = hear(dialects, tools, text, chunk, true);
          CHECK(heard.text == whole.text);
          CHECK(heard.reasoning == whole.reasoning);
          REQUIRE(heard.calls.size() == whole.calls.size());
          for (size_t i = 0; i < whole.calls.size(); ++i) {
            CHECK(heard.calls[i].arguments == whole.calls[i].arguments);
          }
          CHECK(heard.broken.size() == whole.broken.size());
        }
      }
    }
  }
}

TEST_CASE("Apertus ends its reasoning behind a call, too") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  const Dialects dialects{.tools = find_tool_dialect("apertus"),
                          .reasoning = find_reasoning_dialect("apertus")};
  for (const size_t chunk : {size_t{1}, size_t{100}}) {
    const Heard heard = hear(dialects, tools,
                             "<|inner_prefix|>I ping.<|tools_prefix|>[{\"ping\": {}}]"
                             "<|tools_suffix|><|inner_suffix|>Done.",
                             chunk);
    CHECK(heard.reasoning == "I ping.");
    CHECK(heard.calls.size() == 1);
    CHECK(heard.text == "Done.");
  }
}

TEST_CASE("words of the reasoning begin no call") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  const Dialects dialects{.tools = find_tool_dialect("k2_horizon"),
                          .reasoning = find_reasoning_dialect("k2_horizon")};
  const std::string call = write_calls(dialects.tools->syntax, {{.name = "ping", .arguments = {}}});
  const Heard heard = hear(dialects, tools, call + "</ifm|think>" + call, 3, true);
  CHECK(heard.reasoning == stripped(call));
  CHECK(heard.calls.size() == 1);
}

TEST_CASE("K2 Horizon's reasoning ends as it began") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  AnswerForm form;
  form.dialects = {.tools = find_tool_dialect("k2_horizon"),
                   .reasoning = find_reasoning_dialect("k2_horizon")};
  form.reasoning = AnswerForm::Reasoning::kBegun;
  form.tools = {.tools = tools};
  const auto begun = compiled(form);
  form.reasoning = AnswerForm::Reasoning::kPossible;
  const auto possible = compiled(form);
  for (const char* const mark : {"ifm|think", "ifm|think_fast", "ifm|think_faster"}) {
    const std::string begin = std::string("<") + mark + ">\n";
    const std::string rest = std::string("Short.</") + mark + ">Hello.";
    CAPTURE(mark);
    CHECK(takes(begun, rest));
    CHECK(takes(possible, begin + rest));
    CHECK(takes(possible, "Hello."));
    for (const size_t chunk : {size_t{1}, size_t{100}}) {
      for (const bool is_begun : {true, false}) {
        const Heard heard =
            hear(form.dialects, tools, is_begun ? rest : begin + rest, chunk, is_begun);
        CHECK(heard.reasoning == "Short.");
        CHECK(heard.text == "Hello.");
      }
    }
  }
}

TEST_CASE("Granite says in words where its reasoning ends") {
  const Dialects dialects{.reasoning = find_reasoning_dialect("granite")};
  AnswerForm form;
  form.dialects = dialects;
  form.reasoning = AnswerForm::Reasoning::kPossible;
  const auto grammar = compiled(form);
  for (const std::string is : {"Here is", "Here's"}) {
    const std::string answer =
        is + " my thought process: Here I am.\n\n" + is + " my response: Hi.";
    CHECK(takes(grammar, answer));
    for (const size_t chunk : {size_t{1}, size_t{7}, size_t{100}}) {
      const Heard heard = hear(dialects, {}, answer, chunk);
      CHECK(heard.reasoning == "Here I am.");
      CHECK(heard.text == "Hi.");
      CHECK(hear(dialects, {}, is + " my thought.", chunk).text == is + " my thought.");
    }
  }
}

TEST_CASE("tags around an answer behind its reasoning are left out") {
  struct Tagged {
    const char* dialect;
    const char* answer;
  };
  for (const Tagged& each : {Tagged{"ernie45", "abc\n</think>\n\n\n<response>\ndef\n</response>\n"},
                             Tagged{"ernie45", "abc\n</think>\ndef"},
                             Tagged{"hunyuan", "abc\n</think>\n<answer>\ndef\n</answer>"},
                             Tagged{"hunyuan", "abc\n</think>\n<answer>\ndef"}}) {
    const Dialects dialects{.reasoning = find_reasoning_dialect(each.dialect)};
    for (const size_t chunk : {size_t{1}, size_t{2}, size_t{100}}) {
      CAPTURE(each.dialect, each.answer, chunk);
      const Heard heard = hear(dialects, {}, each.answer, chunk, true);
      CHECK(heard.reasoning == "abc");
      CHECK(stripped(heard.text) == "def");
    }
  }
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  const Dialects hunyuan{.tools = find_tool_dialect("hunyuan"),
                         .reasoning = find_reasoning_dialect("hunyuan")};
  const Heard heard = hear(hunyuan, tools,
                           "<think>\n\n</think>\n<answer><tool_calls>[{\"name\": \"ping\", "
                           "\"arguments\": {}}]</tool_calls></answer>",
                           1);
  CHECK(heard.calls.size() == 1);
  CHECK(heard.text.empty());
}

TEST_CASE("a name that is written twice is the same") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  const Dialects inkling{.tools = find_tool_dialect("inkling")};
  const auto written = [](const std::string& before, const std::string& inside) {
    return before + "<|content_invoke_tool_json|>{\"name\": \"" + inside +
           "\", \"args\": {}}<|end_message|>";
  };
  CHECK(hear(inkling, tools, written("ping", "ping"), 1).calls.size() == 1);
  const Heard heard = hear(inkling, tools, written("book_all", "ping"), 1);
  CHECK(heard.calls.empty());
  CHECK(heard.text.find("book_all") == 0);
}

}  // namespace tgi::dialect
