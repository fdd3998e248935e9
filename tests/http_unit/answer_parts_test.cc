// Answers as parts: what begins and ends when, and which tokens make up a text.
#include "cmd/http/answer_parts.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/catch.h"

namespace tgi::http {
namespace {

class Script final : public PartReader {
 public:
  void begin(size_t index, const AnswerPart& part) override {
    lines.push_back(fmt::format("begin {} {}{}", index, static_cast<int>(part.kind), part.name));
  }
  void add(size_t index,
           const AnswerPart& /*part*/,
           std::string_view added,
           std::span<const PartToken> tokens) override {
    lines.push_back(fmt::format("add {} {} {}", index, added, tokens.size()));
  }
  void end(size_t index, const AnswerPart& part) override {
    lines.push_back(fmt::format("end {} {}", index, part.text));
  }
  std::vector<std::string> lines;
};

ipc::TokenEvent token_event(std::string token, std::string text) {
  ipc::TokenEvent out;
  out.token.text = std::move(token);
  out.text = std::move(text);
  return out;
}

std::string texts_of(const std::vector<PartToken>& tokens) {
  std::string out;
  for (const PartToken& each : tokens) out += "[" + each.token.text + "]";
  return out;
}

}  // namespace

TEST_CASE("parts follow each other: reasoning, a text, calls with their arguments") {
  PartBuilder builder(false);
  Script script;
  ipc::TokenEvent event = token_event("hm", "");
  event.reasoning = "hm";
  builder.take(event, &script);
  builder.take(token_event("a", "a"), &script);
  builder.take(token_event("b", "b"), &script);
  event = token_event("{", "");
  event.tool_calls = {{.index = 0, .id = "c0", .name = "f", .arguments = ""}};
  builder.take(event, &script);
  event.tool_calls = {{.index = 0, .id = "", .name = "", .arguments = "{}"},
                      {.index = 1, .id = "c1", .name = "g", .arguments = "{\"x\":"}};
  builder.take(event, &script);
  event.tool_calls = {{.index = 1, .id = "", .name = "", .arguments = "1}"}};
  builder.take(event, &script);
  builder.finish(ipc::FinishReason::kEosToken, &script);
  CHECK(script.lines ==
        std::vector<std::string>{"begin 0 0", "add 0 hm 0", "end 0 hm", "begin 1 1", "add 1 a 0",
                                 "add 1 b 0", "end 1 ab", "begin 2 2f", "add 2 {} 0", "end 2 {}",
                                 "begin 3 2g", "add 3 {\"x\": 0", "add 3 1} 0", "end 3 {\"x\":1}"});
  CHECK(builder.parts()[3].call_id == "c1");
}

TEST_CASE("an answer that ended by itself has a text, one that was cut off may have none") {
  for (const auto& [reason, count] :
       {std::pair(ipc::FinishReason::kEosToken, 2U), std::pair(ipc::FinishReason::kLength, 1U)}) {
    PartBuilder builder(false);
    ipc::TokenEvent event = token_event("hm", "");
    event.reasoning = "hm";
    builder.take(event, nullptr);
    builder.finish(reason, nullptr);
    CHECK(builder.parts().size() == count);
    ipc::SequenceResult whole;
    whole.reasoning = "hm";
    whole.finish_reason = reason;
    CHECK(parts_of(whole).size() == count);
  }
}

TEST_CASE("a text has the tokens that wrote it, also those that were held back for a while") {
  PartBuilder builder(true);
  ipc::TokenEvent mark = token_event("</think>", "");
  builder.take(mark, nullptr);
  builder.take(token_event("a", ""), nullptr);
  builder.take(token_event("b", "ab"), nullptr);
  builder.take(token_event("c<", "c"), nullptr);
  builder.take(token_event("d", "<d"), nullptr);
  ipc::TokenEvent special = token_event("<x>", "");
  special.token.special = true;
  builder.take(special, nullptr);
  ipc::TokenEvent last = token_event("</s>", "");
  last.finish_reason = ipc::FinishReason::kEosToken;
  builder.take(last, nullptr);
  builder.finish(ipc::FinishReason::kEosToken, nullptr);
  REQUIRE(builder.parts().size() == 1);
  CHECK(builder.parts()[0].text == "abc<d");
  CHECK(texts_of(builder.parts()[0].tokens) == "[a][b][c<][d]");
}

}  // namespace tgi::http
