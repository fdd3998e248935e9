// Takes an answer apart while it is written: its text, its reasoning, its calls of tools. What
// looks like a call and is none (an unknown tool, broken JSON, a cut end) stays text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dialect/call_reader.h"
#include "engine/dialect/read_dialects.h"
#include "engine/text/text_stream.h"
#include "ipc/protocol.h"

namespace tgi::dialect {

// What is looked for in the answers of a request; shared by its sequences. Immutable.
struct AnswerReading {
  std::shared_ptr<const ReadDialects> dialects;
  std::vector<KnownTool> tools;      // empty: no calls are looked for
  bool starts_in_reasoning = false;  // the prompt has begun it
};

class AnswerReader final : public TextFilter {
 public:
  explicit AnswerReader(std::shared_ptr<const AnswerReading> reading);

  void push(std::string_view written, bool is_special, std::string& text) override;
  void finish(std::string& text) override;

  // What has become certain since it was asked last: reasoning and parts of calls.
  void take(ipc::TokenEvent& event);

  // What comes next is reasoning, as far as is known.
  bool is_reasoning() const { return state_ == State::kReasoning; }

  // After finish(): calls that were told and turned out to be none, by index, with what was
  // written and where in the text: behind so many bytes of it. In a stream they can't be taken
  // back.
  struct BrokenCall {
    int64_t index = 0;
    std::string written;
    size_t at = 0;
  };
  const std::vector<BrokenCall>& broken_calls() const { return broken_; }

 private:
  enum class State : uint8_t { kText, kReasoning, kCall, kAfterCall, kEnd };
  struct Found {  // a mark in the text
    size_t at = std::string::npos;
    size_t length = 0;
    enum class Kind : uint8_t { kNone, kCall, kReasoning, kEnd, kText, kDropped };
    Kind kind = Kind::kNone;
    const ReadSyntax* syntax = nullptr;
  };

  struct MarkAtStart {
    std::string_view mark;
    Found::Kind kind = Found::Kind::kNone;
  };

  // A call that nothing marks may begin here.
  struct Trial {
    const ReadSyntax* syntax = nullptr;
    CallReader call;
  };

  // Each: whether there is more to do with what is in the buffer.
  bool step(std::string& text);
  bool step_at_start(std::string& text);
  bool step_text(std::string& text);
  bool step_reasoning();
  bool step_call(std::string& text);
  bool step_after_call();
  bool step_end();  // the marks behind the last call

  bool begin_call(const ReadSyntax& syntax, const ReadParts& parts);
  void begin_call(const ReadSyntax& syntax, CallReader call);
  enum class Tried : uint8_t { kNone, kOpen, kBegun };
  Tried try_calls(bool is_next);
  void begin_text(std::string& text);
  void text_after_calls();
  void tell_call();
  bool may_be_dropped() const;
  void give_up_call(std::string& text);
  std::vector<MarkAtStart> marks_at_start() const;
  template <typename Look>
  void for_each_mark(Look look) const;
  template <typename Look>
  void for_each_end_of_reasoning(Look look) const;
  void end_reasoning();
  Found find_mark() const;
  size_t num_begun() const;  // bytes at the end that may become a mark
  void release(std::string_view part, std::string& text);
  void tell(std::string_view part, std::string& text);
  void reason(std::string_view part);
  bool reads_calls() const { return !reading_->tools.empty(); }
  bool is_known_mark(std::string_view token) const;

  const std::shared_ptr<const AnswerReading> reading_;
  State state_ = State::kText;
  std::string buffer_;  // marked text that is not settled
  bool at_end_ = false;
  bool is_start_ = true;     // of the text: nothing of it was written
  std::string start_space_;  // before it
  std::vector<Trial> trials_;
  bool has_trials_ = false;   // they were begun at the front of the buffer
  bool skips_space_ = false;  // behind reasoning and between calls
  std::string held_space_;    // at the end of the text: dropped where a call follows
  size_t num_told_ = 0;       // bytes of the text
  std::string reasoning_space_;
  bool is_in_reasoning_ = false;  // the call, so far

  const ReadSyntax* syntax_ = nullptr;  // of the call
  std::optional<CallReader> call_;
  size_t end_index_ = 0;  // of its syntax's end
  bool call_told_ = false;
  size_t num_arguments_told_ = 0;
  int64_t num_calls_ = 0;

  std::string reasoning_;
  bool has_reasoned_ = false;  // something of it was told
  std::vector<ipc::ToolCall> added_;
  std::vector<BrokenCall> broken_;
};

}  // namespace tgi::dialect
