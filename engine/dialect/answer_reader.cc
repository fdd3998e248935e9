#include "engine/dialect/answer_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

namespace tgi::dialect {
namespace {

size_t space_at_end(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && is_json_space(text[text.size() - 1 - count])) ++count;
  return count;
}

// Of calls: unique among those of all conversations, so by chance and not by seed.
std::string random_id(size_t length) {
  constexpr std::string_view kCharacters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) |
                                      std::random_device{}()};
  std::uniform_int_distribution<size_t> pick(0, kCharacters.size() - 1);
  std::string out;
  for (size_t i = 0; i < length; ++i) out += kCharacters[pick(random)];
  return out;
}

}  // namespace

ReadDialects::ReadDialects(const Dialects& dialects, const IsSpecialToken& is_special)
    : tools(dialects.tools), reasoning(dialects.reasoning) {
  if (tools != nullptr) {
    calls.push_back(read_syntax(tools->syntax, is_special));
    if (tools->also != nullptr) calls.push_back(read_syntax(*tools->also, is_special));
  }
  if (reasoning == nullptr) return;
  reasoning_begin = marked(reasoning->begin, is_special);
  reasoning_end = marked(reasoning->end, is_special);
  for (const std::string_view mark : reasoning->dropped) {
    if (!mark.empty()) dropped.push_back(marked(mark, is_special));
  }
}

AnswerReader::AnswerReader(std::shared_ptr<const AnswerReading> reading)
    : reading_(std::move(reading)) {
  if (reading_->starts_in_reasoning && reading_->dialects->reasoning != nullptr) {
    state_ = State::kReasoning;
  }
}

bool AnswerReader::is_known_mark(std::string_view token) const {
  const ReadDialects& dialects = *reading_->dialects;
  const auto has = [&](const std::string& mark) { return mark.find(token) != std::string::npos; };
  if (has(dialects.reasoning_begin) || has(dialects.reasoning_end)) return true;
  if (std::any_of(dialects.dropped.begin(), dialects.dropped.end(), has)) return true;
  if (!reads_calls()) return false;
  for (const ReadSyntax& syntax : dialects.calls) {
    for (const ReadParts* parts : {&syntax.first_call, &syntax.next_call, &syntax.end}) {
      for (const ReadPart& part : *parts) {
        if (std::any_of(part.marks.begin(), part.marks.end(), has)) return true;
        if (has(part.open) || has(part.middle) || has(part.close)) return true;
      }
    }
  }
  return false;
}

void AnswerReader::push(std::string_view written, bool is_special, std::string& text) {
  if (is_special) {
    const std::string token = marked_token(written);
    if (!is_known_mark(token)) return;
    buffer_ += token;
  } else {
    buffer_ += written;
  }
  while (!buffer_.empty() && step(text)) {
  }
}

void AnswerReader::finish(std::string& text) {
  at_end_ = true;
  while (!buffer_.empty() && step(text)) {
  }
  if (state_ == State::kCall) give_up_call(text);
  while (!buffer_.empty() && step(text)) {
  }
  if (num_calls_ == 0) text += held_space_;
  held_space_.clear();
}

void AnswerReader::take(ipc::TokenEvent& event) {
  event.reasoning = std::exchange(reasoning_, {});
  event.tool_calls = std::exchange(added_, {});
}

bool AnswerReader::step(std::string& text) {
  switch (state_) {
    case State::kText:
      return is_start_ ? step_at_start(text) : step_text(text);
    case State::kReasoning:
      return step_reasoning();
    case State::kCall:
      return step_call(text);
    case State::kAfterCall:
      return step_after_call();
  }
  return false;
}

// What may begin at the start of a text and nowhere else.
bool AnswerReader::step_at_start(std::string& text) {
  const ReadDialects& dialects = *reading_->dialects;
  const size_t begin = buffer_.find_first_not_of(" \n\r\t");
  if (begin == std::string::npos && !at_end_) return false;
  const std::string_view here =
      begin == std::string::npos ? std::string_view() : std::string_view(buffer_).substr(begin);
  if (!dialects.reasoning_begin.empty() && !here.empty()) {
    if (here.starts_with(dialects.reasoning_begin)) {
      buffer_.erase(0, begin + dialects.reasoning_begin.size());
      state_ = State::kReasoning;
      return true;
    }
    if (std::string_view(dialects.reasoning_begin).starts_with(here) && !at_end_) return false;
  }
  if (reads_calls() && !here.empty()) {
    for (const ReadSyntax& syntax : dialects.calls) {
      if (!syntax.is_whole_answer) continue;
      CallReader trial(syntax.first_call, reading_->tools);
      const CallReader::Outcome outcome = trial.read(here, at_end_);
      const bool begins = outcome == CallReader::Outcome::kDone ||
                          (outcome == CallReader::Outcome::kNeedsMore && trial.is_committed());
      if (begins) {
        buffer_.erase(0, begin);
        return begin_call(syntax, syntax.first_call);
      }
      if (outcome == CallReader::Outcome::kNeedsMore) return false;
    }
  }
  is_start_ = false;
  return step_text(text);
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
  const ReadDialects& dialects = *reading_->dialects;
  if (reads_calls()) {
    for (const ReadSyntax& syntax : dialects.calls) {
      if (syntax.is_whole_answer) continue;
      for (const std::string& mark : opening_marks(syntax.first_call)) {
        look(mark, Found::Kind::kCall, &syntax);
      }
    }
  }
  if (dialects.reasoning != nullptr && dialects.reasoning->is_anywhere) {
    look(dialects.reasoning_begin, Found::Kind::kReasoning, nullptr);
  }
  for (const std::string& mark : dialects.dropped) look(mark, Found::Kind::kDropped, nullptr);
  return out;
}

size_t AnswerReader::num_begun() const {
  size_t out = 0;
  const auto look = [&](const std::string& mark) {
    out = std::max(out, length_of_begun(buffer_, mark));
  };
  const ReadDialects& dialects = *reading_->dialects;
  if (reads_calls()) {
    for (const ReadSyntax& syntax : dialects.calls) {
      if (syntax.is_whole_answer) continue;
      for (const std::string& mark : opening_marks(syntax.first_call)) look(mark);
    }
  }
  if (dialects.reasoning != nullptr && dialects.reasoning->is_anywhere) {
    look(dialects.reasoning_begin);
  }
  for (const std::string& mark : dialects.dropped) look(mark);
  return out;
}

bool AnswerReader::step_text(std::string& text) {
  const Found found = find_mark();
  const size_t num_held = at_end_ ? 0 : num_begun();
  // A longer mark may still come of what looks like a shorter one.
  const bool is_open =
      found.kind != Found::Kind::kNone && num_held > 0 && buffer_.size() - num_held <= found.at;
  if (found.kind == Found::Kind::kNone || is_open) {
    const size_t end = buffer_.size() - num_held;
    release(std::string_view(buffer_).substr(0, end), text);
    buffer_.erase(0, end);
    return false;
  }
  release(std::string_view(buffer_).substr(0, found.at), text);
  buffer_.erase(0, found.at);
  switch (found.kind) {
    case Found::Kind::kCall:
      return begin_call(*found.syntax, found.syntax->first_call);
    case Found::Kind::kReasoning:
      state_ = State::kReasoning;
      break;
    default:
      break;
  }
  buffer_.erase(0, found.length);
  return true;
}

bool AnswerReader::step_reasoning() {
  const std::string& end = reading_->dialects->reasoning_end;
  const size_t at = buffer_.find(end);
  if (at == std::string::npos) {
    const size_t num_settled = buffer_.size() - (at_end_ ? 0 : length_of_begun(buffer_, end));
    reason(std::string_view(buffer_).substr(0, num_settled));
    buffer_.erase(0, num_settled);
    return false;
  }
  reason(std::string_view(buffer_).substr(0, at));
  buffer_.erase(0, at + end.size());
  reasoning_space_.clear();
  state_ = State::kText;
  is_start_ = skips_space_ = true;
  return true;
}

bool AnswerReader::begin_call(const ReadSyntax& syntax, const ReadParts& parts) {
  syntax_ = &syntax;
  call_.emplace(parts, reading_->tools);
  call_told_ = false;
  num_arguments_told_ = 0;
  state_ = State::kCall;
  return true;
}

std::string AnswerReader::make_id(const CallReader& call) const {
  switch (reading_->dialects->tools->ids) {
    case CallIds::kNine:
      return random_id(9);
    case CallIds::kFunction:
      return fmt::format("functions.{}:{}", call.name(),
                         call.number().empty() ? std::to_string(num_calls_) : call.number());
    case CallIds::kRandom:
      break;
  }
  return "call_" + random_id(24);
}

// Tells what is new of the call.
void AnswerReader::tell_call() {
  if (!call_->is_committed()) return;
  const std::string& arguments = call_->arguments();
  if (call_told_ && arguments.size() == num_arguments_told_) return;
  ipc::ToolCall& added = added_.emplace_back();
  added.index = num_calls_;
  if (!call_told_) {
    added.id = make_id(*call_);
    added.name = call_->name();
  }
  added.arguments = arguments.substr(num_arguments_told_);
  call_told_ = true;
  num_arguments_told_ = arguments.size();
}

bool AnswerReader::step_call(std::string& text) {
  switch (call_->read(buffer_, at_end_)) {
    case CallReader::Outcome::kNeedsMore:
      tell_call();
      return false;
    case CallReader::Outcome::kMalformed:
      give_up_call(text);
      return true;
    case CallReader::Outcome::kDone:
      break;
  }
  tell_call();
  ++num_calls_;
  buffer_.erase(0, call_->num_read());
  call_.reset();
  state_ = State::kAfterCall;
  return true;
}

void AnswerReader::give_up_call(std::string& text) {
  state_ = State::kText;
  is_start_ = false;
  if (call_told_) {
    // All that came is what was written of it: a call that is cut has no end to look for.
    tell_call();
    broken_.push_back({.index = num_calls_, .written = unmarked(buffer_)});
    ++num_calls_;
    buffer_.clear();
  } else if (!buffer_.empty()) {
    // It may begin later: what opened it is text.
    size_t length = 1;
    if (buffer_.front() == kTokenBorder) length = buffer_.find(kTokenBorder, 1) + 1;
    while (length < buffer_.size() && (buffer_[length] & 0xC0) == 0x80) ++length;
    release(unmarked(std::string_view(buffer_).substr(0, length)), text);
    buffer_.erase(0, length);
  }
  call_.reset();
}

bool AnswerReader::step_after_call() {
  const size_t begin = buffer_.find_first_not_of(" \n\r\t");
  if (begin == std::string::npos) {
    if (at_end_) buffer_.clear();
    return false;
  }
  buffer_.erase(0, begin);
  const std::string_view here = buffer_;
  const auto looks_like = [&](const ReadParts& parts, bool& is_begun) {
    bool is_there = false;
    for (const std::string& mark : opening_marks(parts)) {
      is_there |= here.starts_with(mark);
      is_begun |= here.size() < mark.size() && std::string_view(mark).starts_with(here);
    }
    return is_there;
  };
  bool is_begun = false;
  if (looks_like(syntax_->end, is_begun)) {
    for (const std::string& mark : opening_marks(syntax_->end)) {
      if (!here.starts_with(mark)) continue;
      buffer_.erase(0, mark.size());
      break;
    }
  } else if (looks_like(syntax_->next_call, is_begun)) {
    return begin_call(*syntax_, syntax_->next_call);
  } else if (is_begun && !at_end_) {
    return false;
  }
  // Text, or calls that begin anew.
  state_ = State::kText;
  is_start_ = false;
  skips_space_ = true;
  return true;
}

void AnswerReader::release(std::string_view part, std::string& text) {
  if (skips_space_) {
    while (!part.empty() && is_json_space(part.front())) part.remove_prefix(1);
    if (!part.empty()) skips_space_ = false;
  }
  if (!reads_calls()) {
    text += part;
    return;
  }
  const size_t num_space = space_at_end(part);
  if (num_space < part.size()) text += std::exchange(held_space_, {});
  text += part.substr(0, part.size() - num_space);
  held_space_ += part.substr(part.size() - num_space);
}

void AnswerReader::reason(std::string_view part) {
  if (!has_reasoned_ || reasoning_space_.empty()) {
    while (!has_reasoned_ && !part.empty() && is_json_space(part.front())) part.remove_prefix(1);
  }
  const size_t num_space = space_at_end(part);
  const std::string words = unmarked(part.substr(0, part.size() - num_space));
  if (!words.empty()) {
    reasoning_ += std::exchange(reasoning_space_, {});
    reasoning_ += words;
    has_reasoned_ = true;
  }
  reasoning_space_ += part.substr(part.size() - num_space);
}

}  // namespace tgi::dialect
