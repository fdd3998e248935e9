// Where marks stand in what of an answer is not settled.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/dialect/answer_reader.h"

namespace tgi::dialect {

// What may stand at the start of a text and nowhere else. The prompt may have ended the reasoning,
// and the model ends it once more.
std::vector<AnswerReader::MarkAtStart> AnswerReader::marks_at_start() const {
  const ReadDialects& dialects = *reading_->dialects;
  std::vector<MarkAtStart> out;
  for (const std::string& each : dialects.reasoning_begins) {
    out.push_back({each, Found::Kind::kReasoning});
  }
  for (const std::string& each : dialects.reasoning_ends) out.push_back({each, Found::Kind::kEnd});
  out.push_back({dialects.before_text, Found::Kind::kText});
  return out;
}

// Calls look(mark, kind, syntax of a call or null) for all that may stand anywhere in a text.
template <typename Look>
void AnswerReader::for_each_mark(Look look) const {
  const ReadDialects& dialects = *reading_->dialects;
  if (reads_calls()) {
    for (const ReadSyntax& syntax : dialects.calls) {
      if (syntax.place == CallPlace::kWholeAnswer) continue;
      for (const std::string& mark : opening_marks(parts_in_text(syntax))) {
        look(mark, Found::Kind::kCall, &syntax);
      }
    }
  }
  if (dialects.reasoning != nullptr && dialects.reasoning->is_anywhere) {
    for (const std::string& mark : dialects.reasoning_begins) {
      look(mark, Found::Kind::kReasoning, nullptr);
    }
  }
  for (const std::string& mark : dialects.dropped) look(mark, Found::Kind::kDropped, nullptr);
}

template <typename Look>
void AnswerReader::for_each_end_of_reasoning(Look look) const {
  const ReadDialects& dialects = *reading_->dialects;
  for (const std::string& mark : dialects.reasoning_ends) look(mark, Found::Kind::kEnd, nullptr);
  if (!reads_calls()) return;
  for (const auto& [mark, syntax] : dialects.calls_in_reasoning) {
    look(mark, Found::Kind::kCall, &dialects.calls[syntax]);
  }
}

AnswerReader::Found AnswerReader::find_mark() const {
  Found out;
  const auto look = [&](const std::string& mark, Found::Kind kind, const ReadSyntax* syntax) {
    const size_t at = mark.empty() ? std::string::npos : buffer_.find(mark);
    if (at == std::string::npos) return;
    // Of those that begin here the longest: a mark may be the beginning of another.
    if (at < out.at || (at == out.at && mark.size() > out.length)) {
      out = {.at = at, .length = mark.size(), .kind = kind, .syntax = syntax};
    }
  };
  if (state_ == State::kReasoning) {
    for_each_end_of_reasoning(look);
  } else {
    for_each_mark(look);
  }
  return out;
}

size_t AnswerReader::num_begun() const {
  size_t out = 0;
  const auto look = [&](const std::string& mark, Found::Kind, const ReadSyntax*) {
    out = std::max(out, length_of_begun(buffer_, mark));
  };
  if (state_ == State::kReasoning) {
    for_each_end_of_reasoning(look);
  } else {
    for_each_mark(look);
  }
  return out;
}

}  // namespace tgi::dialect
