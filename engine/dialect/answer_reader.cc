#include "engine/dialect/answer_reader.h"

#include <algorithm>
#include <utility>

#include "engine/dialect/call_ids.h"

namespace tgi::dialect {
namespace {

// Space at the start of an answer is passed over.
std::string_view without_space_in_front(std::string_view mark) {
  while (!mark.empty() && is_json_space(mark.front())) mark.remove_prefix(1);
  return mark;
}

}  // namespace

AnswerReader::AnswerReader(std::shared_ptr<const AnswerReading> reading)
    : reading_(std::move(reading)) {
  if (reading_->starts_in_reasoning && reading_->dialects->reasoning != nullptr) {
    state_ = State::kReasoning;
  }
}

bool AnswerReader::is_known_mark(std::string_view token) const {
  const ReadDialects& dialects = *reading_->dialects;
  const auto has = [&](const std::string& mark) { return mark.find(token) != std::string::npos; };
  for (const auto* marks :
       {&dialects.reasoning_begins, &dialects.reasoning_ends, &dialects.dropped}) {
    if (std::any_of(marks->begin(), marks->end(), has)) return true;
  }
  if (has(dialects.before_text)) return true;
  return reads_calls() && std::any_of(dialects.call_marks.begin(), dialects.call_marks.end(), has);
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
  // What is left of a call that is given up may hold another.
  do {
    while (!buffer_.empty() && step(text)) {
    }
    if (state_ == State::kCall) give_up_call(text);
  } while (!buffer_.empty());
  if (num_calls_ == 0) release(std::exchange(start_space_, {}), text);
  if (num_calls_ == 0) tell(held_space_, text);
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
    case State::kEnd:
      return step_end();
  }
  return false;
}

bool AnswerReader::step_at_start(std::string& text) {
  const size_t num_space = std::min(buffer_.find_first_not_of(" \n\r\t"), buffer_.size());
  start_space_ += buffer_.substr(0, num_space);
  buffer_.erase(0, num_space);
  if (buffer_.empty()) return false;
  bool is_open = false;
  for (const auto& [each, kind] : marks_at_start()) {
    const std::string_view mark = without_space_in_front(each);
    if (mark.empty()) continue;
    if (buffer_.starts_with(mark)) {
      buffer_.erase(0, mark.size());
      start_space_.clear();
      trials_.clear();
      has_trials_ = false;
      if (kind == Found::Kind::kReasoning) state_ = State::kReasoning;
      if (kind == Found::Kind::kText) is_start_ = false;
      skips_space_ = kind != Found::Kind::kText;
      return true;
    }
    is_open |= mark.starts_with(buffer_);
  }
  if (is_open && !at_end_) return false;
  switch (try_calls(/*is_next=*/false)) {
    case Tried::kOpen:
      return false;
    case Tried::kBegun:
      start_space_.clear();
      return true;
    case Tried::kNone:
      break;
  }
  begin_text(text);
  return step_text(text);
}

void AnswerReader::begin_text(std::string& text) {
  is_start_ = false;
  release(std::exchange(start_space_, {}), text);
}

// Whether the buffer begins with a call that nothing marks. Readers go on where they were when more
// has come.
AnswerReader::Tried AnswerReader::try_calls(bool is_next) {
  if (!reads_calls()) return Tried::kNone;
  if (!has_trials_ && is_next) {
    trials_.push_back({syntax_, CallReader(syntax_->next_call, reading_->tools)});
  } else if (!has_trials_) {
    for (const ReadSyntax& syntax : reading_->dialects->calls) {
      if (!is_unmarked(syntax.place)) continue;
      trials_.push_back({&syntax, CallReader(syntax.first_call, reading_->tools)});
    }
  }
  has_trials_ = true;
  bool is_open = false;
  for (Trial& trial : trials_) {
    const CallReader::Outcome outcome = trial.call.read(buffer_, at_end_);
    const bool needs_more = outcome == CallReader::Outcome::kNeedsMore;
    if (outcome == CallReader::Outcome::kDone || trial.call.is_committed()) {
      begin_call(*trial.syntax, std::move(trial.call));
      return Tried::kBegun;
    }
    is_open |= needs_more;
  }
  if (is_open) return Tried::kOpen;
  trials_.clear();
  has_trials_ = false;
  return Tried::kNone;
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
      return begin_call(*found.syntax, parts_in_text(*found.syntax));
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
  const Found found = find_mark();
  if (found.kind == Found::Kind::kNone) {
    const size_t num_settled = buffer_.size() - (at_end_ ? 0 : num_begun());
    reason(std::string_view(buffer_).substr(0, num_settled));
    buffer_.erase(0, num_settled);
    return false;
  }
  reason(std::string_view(buffer_).substr(0, found.at));
  buffer_.erase(0, found.at);
  if (found.kind == Found::Kind::kCall) {
    is_in_reasoning_ = true;
    return begin_call(*found.syntax, parts_in_text(*found.syntax));
  }
  buffer_.erase(0, found.length);
  end_reasoning();
  state_ = State::kText;
  is_start_ = skips_space_ = true;
  return true;
}

void AnswerReader::end_reasoning() {
  reasoning_space_.clear();
  is_in_reasoning_ = false;
}

bool AnswerReader::begin_call(const ReadSyntax& syntax, const ReadParts& parts) {
  begin_call(syntax, CallReader(parts, reading_->tools));
  return true;
}

void AnswerReader::begin_call(const ReadSyntax& syntax, CallReader call) {
  syntax_ = &syntax;
  call_ = std::move(call);
  call_told_ = false;
  num_arguments_told_ = 0;
  state_ = State::kCall;
  trials_.clear();
  has_trials_ = false;
}

// Tells what is new of the call.
void AnswerReader::tell_call() {
  if (!call_->is_committed()) return;
  const std::string& arguments = call_->arguments();
  if (call_told_ && arguments.size() == num_arguments_told_) return;
  ipc::ToolCall& added = added_.emplace_back();
  added.index = num_calls_;
  if (!call_told_) {
    added.id =
        make_call_id(reading_->dialects->tools->ids, call_->name(), call_->number(), num_calls_);
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
      tell_call();  // as it would have been, had it come in smaller pieces
      if (!call_told_ && may_be_dropped()) return false;
      give_up_call(text);
      return true;
    case CallReader::Outcome::kDone:
      break;
  }
  tell_call();
  ++num_calls_;
  buffer_.erase(0, call_->num_read());
  call_.reset();
  if (is_in_reasoning_) end_reasoning();
  state_ = State::kAfterCall;
  return true;
}

// What is no call may yet be a mark that is left out.
bool AnswerReader::may_be_dropped() const {
  if (is_in_reasoning_) return false;
  const std::vector<std::string>& marks = reading_->dialects->dropped;
  return !at_end_ && std::any_of(marks.begin(), marks.end(), [&](const std::string& mark) {
    return buffer_.size() < mark.size() && mark.starts_with(buffer_);
  });
}

void AnswerReader::give_up_call(std::string& text) {
  const bool goes_on_reasoning = is_in_reasoning_ && !call_told_;
  state_ = goes_on_reasoning ? State::kReasoning : State::kText;
  is_start_ = false;
  if (is_in_reasoning_ && call_told_) end_reasoning();
  is_in_reasoning_ = false;
  if (call_told_) {
    // What follows the place where it broke is text. A call that is cut has no such place: all that
    // came is of it.
    tell_call();
    tell(std::exchange(held_space_, {}), text);
    const size_t length = at_end_ ? buffer_.size() : call_->num_read();
    broken_.push_back({.index = num_calls_,
                       .written = unmarked(std::string_view(buffer_).substr(0, length)),
                       .at = num_told_});
    ++num_calls_;
    buffer_.erase(0, length);
  } else if (!buffer_.empty()) {
    // It may begin later: what opened it is text, or a mark that is left out.
    size_t length = 0;
    for (const std::string& mark : reading_->dialects->dropped) {
      if (!goes_on_reasoning && buffer_.starts_with(mark)) length = std::max(length, mark.size());
    }
    if (length == 0) {
      length = buffer_.front() == kTokenBorder ? buffer_.find(kTokenBorder, 1) + 1 : 1;
      while (length < buffer_.size() && (buffer_[length] & 0xC0) == 0x80) ++length;
      const std::string_view part = std::string_view(buffer_).substr(0, length);
      if (goes_on_reasoning) {
        reason(part);
      } else {
        release(unmarked(part), text);
      }
    }
    buffer_.erase(0, length);
  }
  call_.reset();
}

namespace {

enum class Stands : uint8_t { kNo, kMaybe, kYes };

// Whether one of the marks stands at the front of the text; `length`: of the longest that does.
Stands stands(const std::vector<std::string>& marks, std::string_view text, size_t& length) {
  length = 0;
  bool is_begun = false;
  for (const std::string& mark : marks) {
    if (text.starts_with(mark)) length = std::max(length, mark.size());
    is_begun |= text.size() < mark.size() && std::string_view(mark).starts_with(text);
  }
  if (is_begun) return Stands::kMaybe;
  return length > 0 ? Stands::kYes : Stands::kNo;
}

}  // namespace

bool AnswerReader::step_after_call() {
  buffer_.erase(0, buffer_.find_first_not_of(" \n\r\t"));
  if (buffer_.empty()) return false;
  size_t length = 0;
  const Stands next = stands(opening_marks(syntax_->next_call), buffer_, length);
  if (length > 0 && (next == Stands::kYes || at_end_)) {
    return begin_call(*syntax_, syntax_->next_call);
  }
  const Stands end = stands(opening_marks(syntax_->end), buffer_, length);
  const bool is_open = next == Stands::kMaybe || end == Stands::kMaybe;
  if (is_open && !at_end_) return false;
  if (length > 0) {
    state_ = State::kEnd;
    end_index_ = 0;
    return true;
  }
  if (opening_marks(syntax_->next_call).empty()) {
    const Tried tried = try_calls(/*is_next=*/true);
    if (tried != Tried::kNone) return tried == Tried::kBegun;
  }
  text_after_calls();
  return true;
}

// Some models leave out what comes last.
bool AnswerReader::step_end() {
  for (; end_index_ < syntax_->end.size(); ++end_index_) {
    buffer_.erase(0, buffer_.find_first_not_of(" \n\r\t"));
    size_t length = 0;
    const Stands found = stands(syntax_->end[end_index_].marks, buffer_, length);
    if (found == Stands::kMaybe && !at_end_) return false;
    buffer_.erase(0, length);
  }
  text_after_calls();
  return true;
}

// Text, or calls that begin anew.
void AnswerReader::text_after_calls() {
  state_ = State::kText;
  is_start_ = false;
  skips_space_ = true;
}

}  // namespace tgi::dialect
