#include "cmd/http/answer_parts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cmd/http/openai_answer.h"

namespace tgi::http {
namespace {

size_t num_bytes_of(const ipc::TokenInfo& token) {
  return token.bytes.empty() ? token.text.size() : token.bytes.size();
}

bool is_answered(const std::vector<AnswerPart>& parts) {
  return std::ranges::any_of(parts,
                             [](const AnswerPart& p) { return p.kind != PartKind::kReasoning; });
}

}  // namespace

void PartBuilder::open(AnswerPart part, PartReader* reader) {
  close(reader);
  parts_.push_back(std::move(part));
  is_open_ = true;
  if (reader != nullptr) reader->begin(parts_.size() - 1, parts_.back());
}

void PartBuilder::close(PartReader* reader) {
  if (is_open_ && reader != nullptr) reader->end(parts_.size() - 1, parts_.back());
  is_open_ = false;
}

void PartBuilder::add(std::string_view added,
                      std::span<const PartToken> tokens,
                      PartReader* reader) {
  AnswerPart& part = parts_.back();
  part.text += added;
  part.tokens.insert(part.tokens.end(), tokens.begin(), tokens.end());
  if (reader != nullptr) reader->add(parts_.size() - 1, part, added, tokens);
}

// The last of the pending ones, as many as it takes for so many bytes: those before them are marks
// that no text shows.
std::vector<PartToken> PartBuilder::take_tokens(size_t num_bytes) {
  size_t num_covered = 0;
  size_t first = pending_.size();
  while (first > 0 && num_covered < num_bytes) num_covered += num_bytes_of(pending_[--first].token);
  std::vector<PartToken> out(pending_.begin() + static_cast<ptrdiff_t>(first), pending_.end());
  pending_.clear();
  return out;
}

void PartBuilder::take(const ipc::TokenEvent& event, PartReader* reader) {
  if (keeps_tokens_ && is_listed(event.token)) {
    pending_.push_back({event.token, event.top_tokens});
  }
  const auto continues = [&](PartKind kind) { return is_open_ && parts_.back().kind == kind; };
  if (!event.reasoning.empty()) {
    if (!continues(PartKind::kReasoning)) open({.kind = PartKind::kReasoning}, reader);
    pending_.clear();
    add(event.reasoning, {}, reader);
  }
  if (!event.text.empty()) {
    if (!continues(PartKind::kText)) open({.kind = PartKind::kText}, reader);
    add(event.text, take_tokens(event.text.size()), reader);
  }
  for (const ipc::ToolCall& call : event.tool_calls) {
    if (!call.id.empty() || !continues(PartKind::kCall)) {
      open({.kind = PartKind::kCall, .call_id = call.id, .name = call.name}, reader);
    }
    pending_.clear();
    if (!call.arguments.empty()) add(call.arguments, {}, reader);
  }
}

void PartBuilder::finish(ipc::FinishReason reason, PartReader* reader) {
  if (reason != ipc::FinishReason::kLength && !is_answered(parts_)) {
    open({.kind = PartKind::kText}, reader);
  }
  close(reader);
}

std::vector<AnswerPart> parts_of(const ipc::SequenceResult& sequence) {
  std::vector<AnswerPart> out;
  if (!sequence.reasoning.empty()) {
    out.push_back({.kind = PartKind::kReasoning, .text = sequence.reasoning});
  }
  const bool must_answer =
      sequence.tool_calls.empty() && sequence.finish_reason != ipc::FinishReason::kLength;
  if (!sequence.text.empty() || must_answer) {
    out.push_back({.kind = PartKind::kText, .text = sequence.text});
  }
  for (const ipc::ToolCall& call : sequence.tool_calls) {
    out.push_back(
        {.kind = PartKind::kCall, .text = call.arguments, .call_id = call.id, .name = call.name});
  }
  return out;
}

}  // namespace tgi::http
