// Steps of a decoder on a text that runs on: what comes out is certain whatever comes behind, and
// all that came out is what the step makes of the whole. Each belongs to one running text.
//
// What runs through them are tokens or, where a step has made one text of them, its parts: valid
// UTF-8, however cut.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

class StepRun {
 public:
  virtual ~StepRun() = default;
  virtual void push(std::string token, std::vector<std::string>& out) = 0;
  virtual void finish(std::vector<std::string>& /*out*/) {}  // no more tokens
};

// Replaces `found`, which is not empty, in a text, and holds back what may be its beginning.
class ReplaceRun final : public StepRun {
 public:
  ReplaceRun(std::string_view found, std::string_view content) : found_(found), content_(content) {}

  void push(std::string part, std::vector<std::string>& out) override;
  void finish(std::vector<std::string>& out) override;

 private:
  const std::string found_;
  const std::string content_;
  std::string held_;
};

// Takes `content` up to `start` times off the start of a text and up to `stop` times off its end.
class StripRun final : public StepRun {
 public:
  StripRun(std::string_view content, int64_t start, int64_t stop)
      : content_(content), start_(start), stop_(stop) {}

  void push(std::string part, std::vector<std::string>& out) override;
  void finish(std::vector<std::string>& out) override;

 private:
  const std::string content_;  // one character
  int64_t start_;              // still to be taken off
  const int64_t stop_;
  std::string held_;  // ends with what may be the end of the text
};

// One run behind the other.
class ChainRun final : public StepRun {
 public:
  explicit ChainRun(std::vector<std::unique_ptr<StepRun>> runs) : runs_(std::move(runs)) {}

  void push(std::string token, std::vector<std::string>& out) override;
  void finish(std::vector<std::string>& out) override;

 private:
  // Through the runs from `first` on.
  void push_from(size_t first, std::vector<std::string> tokens, std::vector<std::string>& out);

  std::vector<std::unique_ptr<StepRun>> runs_;
};

}  // namespace tgi
