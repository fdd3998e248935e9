#include "tests/dialect/spoken.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace tgi::dialect {
namespace {

void add_pieces(AnswerReader& reader, std::string_view text, size_t chunk, Heard& heard) {
  const auto take = [&] {
    ipc::TokenEvent event;
    reader.take(event);
    heard.reasoning += event.reasoning;
    for (const ipc::ToolCall& added : event.tool_calls) {
      if (static_cast<size_t>(added.index) == heard.calls.size()) {
        heard.calls.push_back(added);
      } else {
        heard.calls[static_cast<size_t>(added.index)].arguments += added.arguments;
      }
    }
  };
  while (!text.empty()) {
    size_t length = std::min(chunk, text.size());
    while (length < text.size() && (text[length] & 0xC0) == 0x80) ++length;
    reader.push(text.substr(0, length), false, heard.text);
    take();
    text.remove_prefix(length);
  }
  take();
}

// The one whose marks are there, or that goes with the way to write calls. Of those that share
// marks with most others it does not know, but by its name.
const ReasoningDialect* reasoning_of(const std::string& name, const std::string& text) {
  const ReasoningDialect* const most = find_reasoning_dialect("think");
  for (const ReasoningDialect* const each : reasoning_dialects()) {
    if (text.find(each->end) == std::string::npos) continue;
    if (each->end != most->end || each == most || each->name == name) return each;
  }
  for (const ReasoningDialect* const each : reasoning_dialects()) {
    if (each->end == most->end && each != most) continue;
    if (text.find(each->begin) != std::string::npos) return each;
  }
  const ReasoningDialect* const by_name = find_reasoning_dialect(name);
  return by_name != nullptr ? by_name : find_reasoning_dialect("think");
}

// Whether the text begins within the reasoning. Of turns that were rendered as earlier ones the
// prompt does not tell: it opens or closes the reasoning otherwise than they do.
bool is_begun(const ReasoningDialect& reasoning,
              const OrderedJson& turn,
              const std::string& prompt,
              const std::string& text) {
  if (!turn.value("history", false)) {
    const std::vector<std::string_view> begins = reasoning.begins();
    return std::any_of(begins.begin(), begins.end(), [&](std::string_view begin) {
      return prompt.ends_with(stripped(std::string(begin)));
    });
  }
  const size_t end = text.find(reasoning.end);
  return end != std::string::npos && text.find(reasoning.begin) >= end;
}

}  // namespace

OrderedJson golden_turns() {
  std::ifstream file(TGI_SOURCE_DIR "/tests/dialect/golden/turns.json");
  return OrderedJson::parse(file);
}

std::string stripped(std::string text) {
  while (!text.empty() && is_json_space(text.back())) text.pop_back();
  while (!text.empty() && is_json_space(text.front())) text.erase(0, 1);
  return text;
}

std::optional<SpokenTurn> spoken_turn(const OrderedJson& turn) {
  const auto& name = turn["dialect"].get_ref<const std::string&>();
  SpokenTurn out;
  out.dialects.tools = find_tool_dialect(name);
  if (out.dialects.tools == nullptr) return std::nullopt;
  out.text = turn["text"];
  out.prompt = stripped(turn["prompt"]);
  out.dialects.reasoning = reasoning_of(name, out.prompt + out.text);
  out.begun = is_begun(*out.dialects.reasoning, turn, out.prompt, out.text);
  return out;
}

bool is_usual_special(std::string_view name) {
  if (name == "]<]minimax[>[") return true;
  if (name.find_first_of("<>[] \n", 1) < name.size() - 1) return false;  // several
  if (name.starts_with("<|") && name.ends_with("|>")) return true;
  if (name.starts_with("<｜") && name.ends_with("｜>")) return true;
  if (!name.starts_with('[') || !name.ends_with(']') || name.size() < 4) return false;
  return std::all_of(name.begin() + 1, name.end() - 1, [](char c) {
    return std::isupper(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/';
  });
}

const ToolDialect* find_tool_dialect(std::string_view name) {
  for (const ToolDialect* const each : tool_dialects()) {
    if (each->name == name) return each;
  }
  return nullptr;
}

const ReasoningDialect* find_reasoning_dialect(std::string_view name) {
  for (const ReasoningDialect* const each : reasoning_dialects()) {
    if (each->name == name) return each;
  }
  return nullptr;
}

Heard hear(const Dialects& dialects,
           const std::vector<Tool>& tools,
           std::string_view answer,
           size_t chunk,
           bool starts_in_reasoning,
           const IsSpecialToken& is_special) {
  auto reading = std::make_shared<AnswerReading>();
  reading->dialects = std::make_shared<const ReadDialects>(dialects, is_special);
  reading->tools = known_tools(tools);
  reading->starts_in_reasoning = starts_in_reasoning;
  AnswerReader reader(reading);
  Heard out;
  for (const MarkPiece& piece : pieces_of(answer, is_special)) {
    if (piece.is_special) {
      reader.push(piece.text, true, out.text);
      add_pieces(reader, "", chunk, out);
    } else {
      add_pieces(reader, piece.text, chunk, out);
    }
  }
  reader.finish(out.text);
  add_pieces(reader, "", chunk, out);
  out.broken = reader.broken_calls();
  return out;
}

}  // namespace tgi::dialect
