// Any answer in any dialect, cut into any pieces: what is told is whole UTF-8, calls that are told
// whole are JSON objects of a tool, and it is the same as when it comes in one piece.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "engine/dialect/answer_reader.h"
#include "engine/dialect/json_check.h"

namespace {

using tgi::dialect::AnswerReader;
using tgi::dialect::AnswerReading;

struct Told {
  std::string text;
  std::string reasoning;
  std::vector<tgi::ipc::ToolCall> calls;
  size_t num_broken = 0;
};

bool is_special(std::string_view name) {
  return name.starts_with("<|") && name.ends_with("|>");
}

std::shared_ptr<const AnswerReading> reading_of(uint8_t choice) {
  auto out = std::make_shared<AnswerReading>();
  const auto tools = tgi::dialect::tool_dialects();
  const auto reasoning = tgi::dialect::reasoning_dialects();
  out->dialects = std::make_shared<const tgi::dialect::ReadDialects>(
      tgi::dialect::Dialects{.tools = tools[choice % tools.size()],
                             .reasoning = reasoning[choice / 7 % reasoning.size()]},
      is_special);
  out->tools = {{.name = "f", .parameters = {{.name = "a", .types = tgi::dialect::kStringBit}}},
                {.name = "get", .parameters = {}}};
  out->starts_in_reasoning = choice % 3 == 0;
  return out;
}

void take(AnswerReader& reader, Told& told) {
  tgi::ipc::TokenEvent event;
  reader.take(event);
  told.reasoning += event.reasoning;
  for (const tgi::ipc::ToolCall& added : event.tool_calls) {
    if (static_cast<size_t>(added.index) == told.calls.size()) {
      told.calls.push_back(added);
    } else {
      told.calls.at(static_cast<size_t>(added.index)).arguments += added.arguments;
    }
  }
}

Told read(const std::shared_ptr<const AnswerReading>& reading,
          const std::vector<std::string>& pieces) {
  AnswerReader reader(reading);
  Told out;
  for (const std::string& piece : pieces) {
    reader.push(piece, is_special(piece), out.text);
    take(reader, out);
  }
  reader.finish(out.text);
  take(reader, out);
  out.num_broken = reader.broken_calls().size();
  for (const auto& broken : reader.broken_calls()) {
    out.calls.at(static_cast<size_t>(broken.index)).arguments = broken.written;
    out.calls.at(static_cast<size_t>(broken.index)).name.clear();
  }
  return out;
}

void check(const Told& told) {
  if (!tgi::is_valid_utf8(told.text) || !tgi::is_valid_utf8(told.reasoning)) std::abort();
  for (const tgi::ipc::ToolCall& call : told.calls) {
    if (call.name.empty()) continue;  // a broken one
    if (call.name != "f" && call.name != "get") std::abort();
    if (!tgi::dialect::is_json_object(call.arguments)) std::abort();
  }
}

}  // namespace

// The first byte: the dialects; then the answer, whose own characters say where to cut. Special
// tokens come alone in both runs.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto reading = reading_of(data[0]);
  const std::string answer =
      tgi::replace_invalid_utf8(std::string(reinterpret_cast<const char*>(data + 1), size - 1));
  std::vector<std::string> whole;
  std::vector<std::string> cut;
  for (const auto& piece : tgi::dialect::pieces_of(answer, is_special)) {
    whole.push_back(piece.text);
    if (piece.is_special) {
      cut.push_back(piece.text);
      continue;
    }
    for (size_t at = 0; at < piece.text.size();) {
      size_t end =
          std::min(at + static_cast<unsigned char>(piece.text[at]) % 5 + 1, piece.text.size());
      while (end < piece.text.size() && !tgi::starts_character(piece.text[end])) ++end;
      cut.push_back(piece.text.substr(at, end - at));
      at = end;
    }
  }
  const Told one = read(reading, whole);
  const Told other = read(reading, cut);
  check(one);
  check(other);
  if (one.text != other.text || one.reasoning != other.reasoning) std::abort();
  if (one.calls.size() != other.calls.size() || one.num_broken != other.num_broken) std::abort();
  for (size_t i = 0; i < one.calls.size(); ++i) {
    if (one.calls[i].arguments != other.calls[i].arguments) std::abort();
  }
  return 0;
}
