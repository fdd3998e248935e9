// Whatever a model writes: nothing of it is lost, nothing depends on how it is cut into tokens, and
// long answers cost what they are long.
#include <algorithm>
#include <chrono>
#include <random>

#include "base/utf8.h"
#include "engine/dialect/write_calls.h"
#include "tests/catch.h"
#include "tests/dialect/spoken.h"

namespace tgi::dialect {
namespace {

constexpr std::string_view kWord = "zqxj";

// Ids are drawn by chance.
std::string without_ids(const Heard& heard) {
  std::string out = heard.text + "\x01" + heard.reasoning;
  for (const ipc::ToolCall& call : heard.calls) {
    out += "\x01" + call.name + "\x02" + call.arguments;
  }
  for (const AnswerReader::BrokenCall& broken : heard.broken) {
    out += "\x01" + std::to_string(broken.index) + "\x02" + broken.written;
  }
  return out;
}

std::string calls_of(const Heard& heard) {
  std::string out;
  for (const ipc::ToolCall& call : heard.calls) out += call.name + call.arguments + "\n";
  return out;
}

size_t character_at(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] & 0xC0) == 0x80) ++at;
  return at;
}

std::string spoilt(std::string text, std::mt19937& random) {
  constexpr std::string_view kBits[] = {"{", "}",  "\"", "]", "<",  ",",
                                        " ", "\n", "\\", "ö", "</", ">"};
  for (auto count = random() % 3 + 1; count > 0; --count) {
    const size_t at = character_at(text, random() % (text.size() + 1));
    const size_t end = character_at(text, std::min(at + random() % 6, text.size()));
    switch (random() % 4) {
      case 0:
        text.erase(at, end - at);
        break;
      case 1:
        text.insert(at, kBits[random() % std::size(kBits)]);
        break;
      case 2:
        text.insert(at, text.substr(at, character_at(text, std::min(at + 40, text.size())) - at));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

// What was written, when no call was found: all but marks and white space.
std::string bare(std::string text, const Dialects& dialects) {
  std::vector<std::string_view> marks = dialects.dropped();
  if (dialects.reasoning != nullptr) {
    for (const std::string_view mark : dialects.reasoning->begins()) marks.push_back(mark);
    for (const std::string_view mark : dialects.reasoning->ends()) marks.push_back(mark);
  }
  const std::string before = stripped(std::string(dialects.before_text()));
  const size_t begin = text.find_first_not_of(" \n\r\t");
  if (!before.empty() && begin != std::string::npos && text.substr(begin).starts_with(before)) {
    text.erase(begin, before.size());
  }
  std::sort(marks.begin(), marks.end(), [](auto a, auto b) { return a.size() > b.size(); });
  for (const std::string_view mark : marks) {
    for (size_t at = text.find(mark); !mark.empty() && at != std::string::npos;
         at = text.find(mark)) {
      text.erase(at, mark.size());
    }
  }
  std::erase_if(text, is_json_space);
  return text;
}

}  // namespace

TEST_CASE("a spoilt answer loses nothing and reads the same however it is cut") {
  const OrderedJson golden = golden_turns();
  const std::vector<Tool> tools =
      tool_use(checked_tools(golden["tools"]), std::nullopt, true).tools;
  std::mt19937 random(11);
  // Only the tokens of the dialect itself are special: unknown ones are dropped, as they always
  // are.
  for (const OrderedJson& turn : golden["turns"]) {
    const std::optional<SpokenTurn> spoken = spoken_turn(turn);
    if (!spoken) continue;
    for (int round = 0; round < 6; ++round) {
      const std::string text = spoilt(spoken->text, random);
      CAPTURE(spoken->dialects.tools->name, text);
      const Heard whole = hear(spoken->dialects, tools, text, text.size() + 1, spoken->begun);
      CHECK(is_valid_utf8(without_ids(whole)));
      for (const size_t chunk : {size_t{1}, size_t{2}, size_t{5}, size_t{11}}) {
        CAPTURE(chunk);
        CHECK(without_ids(hear(spoken->dialects, tools, text, chunk, spoken->begun)) ==
              without_ids(whole));
      }
      const auto none_special = [](std::string_view) { return false; };
      const Heard plain = hear(spoken->dialects, tools, text, 3, spoken->begun, none_special);
      if (plain.calls.empty() && plain.broken.empty()) {
        CHECK(bare(plain.reasoning + plain.text, spoken->dialects) == bare(text, spoken->dialects));
      }
    }
  }
}

TEST_CASE("a word anywhere in an answer is found in its text, its reasoning or a call") {
  const OrderedJson golden = golden_turns();
  const std::vector<Tool> tools =
      tool_use(checked_tools(golden["tools"]), std::nullopt, true).tools;
  std::mt19937 random(12);
  for (const OrderedJson& turn : golden["turns"]) {
    const std::optional<SpokenTurn> spoken = spoken_turn(turn);
    if (!spoken) continue;
    const Heard right = hear(spoken->dialects, tools, spoken->text, 3, spoken->begun);
    for (int round = 0; round < 6; ++round) {
      std::string text = spoken->text;
      text.insert(character_at(text, random() % (text.size() + 1)), kWord);
      if (random() % 3 == 0) text.resize(character_at(text, random() % (text.size() + 1)));
      if (text.find(kWord) == std::string::npos) continue;
      const auto none_special = [](std::string_view) { return false; };
      const Heard heard = hear(spoken->dialects, tools, text, 3, spoken->begun, none_special);
      CAPTURE(spoken->dialects.tools->name, text, without_ids(heard));
      const bool is_there = without_ids(heard).find(kWord) != std::string::npos;
      // Ids of calls are our own, and so the calls are what they were; those that were cut off are
      // none.
      CHECK((is_there || calls_of(right).starts_with(calls_of(heard))));
    }
  }
}

TEST_CASE("calls of unknown tools stay text") {
  const std::vector<Tool> tools =
      tool_use(checked_tools(golden_turns()["tools"]), std::nullopt, true).tools;
  for (const ToolDialect* const dialect : tool_dialects()) {
    const std::string answer =
        write_calls(dialect->syntax, {{.name = "unheard_of", .arguments = {{"city", "Oslo"}}}});
    CAPTURE(dialect->name, answer);
    const Heard heard = hear({.tools = dialect}, tools, answer, 1);
    CHECK(heard.calls.empty());
    CHECK(heard.broken.empty());
    CHECK(heard.text.find("unheard_of") != std::string::npos);
    CHECK(heard.text.find("Oslo") != std::string::npos);
  }
}

TEST_CASE("a call that breaks off is told to stand where it was written") {
  const std::vector<Tool> tools =
      tool_use(checked_tools(golden_turns()["tools"]), std::nullopt, true).tools;
  const Dialects dialects{.tools = find_tool_dialect("hermes")};
  const std::string broken = "<tool_call>{\"name\": \"ping\", \"arguments\": {\"a\": 1}";
  const std::string answer = "First. " + broken + "] and then. " + broken;
  for (const size_t chunk : {size_t{1}, answer.size()}) {
    const Heard heard = hear(dialects, tools, answer, chunk);
    REQUIRE(heard.broken.size() == 2);
    std::string text = heard.text;
    for (auto call = heard.broken.rbegin(); call != heard.broken.rend(); ++call) {
      text.insert(call->at, call->written);
    }
    CHECK(text == answer);
  }
}

TEST_CASE("a name twice among the allowed tools is one, and null in a tool says nothing") {
  const OrderedJson given = {{{"type", "function"},
                              {"strict", nullptr},
                              {"function", {{"name", "ping"}, {"foo", nullptr}}}}};
  const OrderedJson checked = checked_tools(given);
  CHECK_FALSE(checked[0]["function"].contains("foo"));
  const ipc::ToolChoice twice{.mode = "required", .names = {"ping", "ping"}};
  CHECK(tool_use(checked, twice, true).tools.size() == 1);
  const ipc::ToolChoice unknown{.mode = "required", .names = {"ping", "pong"}};
  CHECK_THROWS_WITH(tool_use(checked, unknown, true), "Tool with name pong not found");
}

TEST_CASE("a long answer costs what it is long") {
  using Clock = std::chrono::steady_clock;
  const std::vector<Tool> tools =
      tool_use(checked_tools(golden_turns()["tools"]), std::nullopt, true).tools;
  std::string text;
  constexpr size_t kLength = kUnderSanitizers ? 50'000 : 200'000;
  while (text.size() < kLength) text += "An answer, \"quoted\" and long.\n";
  const auto measure = [&](const Dialects& dialects, const std::string& answer, bool begun) {
    const Clock::time_point begin = Clock::now();
    const Heard heard = hear(dialects, tools, answer, 1, begun);
    const std::chrono::duration<double> took = Clock::now() - begin;
    CAPTURE(dialects.tools->name, took.count());
    UNSCOPED_INFO(dialects.tools->name << " " << took.count());
    // Far above what it takes on any machine, and below what looking twice at each byte takes.
    CHECK(took.count() < (kUnderSanitizers ? 5 : 30));
    return heard;
  };
  for (const ToolDialect* const dialect : tool_dialects()) {
    const Dialects dialects{.tools = dialect, .reasoning = find_reasoning_dialect("think")};
    const std::string call =
        write_calls(dialect->syntax, {{.name = "configure", .arguments = {{"note", text}}}});
    const Heard called = measure(dialects, call, false);
    REQUIRE(called.calls.size() == 1);
    CHECK(OrderedJson::parse(called.calls[0].arguments)["note"] == text);
    CHECK(measure(dialects, text, false).text.size() == stripped(text).size() + 1);
    CHECK(measure(dialects, text + "</think>", true).reasoning == stripped(text));
    measure(dialects, std::string(kLength, ' '), false);
    measure(dialects, call.substr(0, call.size() / 2), false);
  }
}

}  // namespace tgi::dialect
