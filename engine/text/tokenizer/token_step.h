// A step of a decoder that changes each token, or the one text that is left, for itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/tokenizer/decoder_steps.h"

namespace tgi {

class TokenStep : public DecoderStep {
 public:
  explicit TokenStep(const DecoderState& state) : is_whole_(state.is_whole) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      change(tokens[i], i == 0, i + 1 == tokens.size());
    }
  }
  void stream(RunningToken& token) const override {
    if (is_whole_) {
      change_part(token);
    } else if (!token.is_byte) {
      change(token.text, token.at_start, token.is_last);
    }
  }
  std::unique_ptr<StepRun> run(bool at_start) const override {
    if (is_whole_) return run_whole(at_start);
    return std::make_unique<TokenRun>(*this, at_start);
  }

 protected:
  // is_first, is_last: of the tokens.
  virtual void change(std::string& token, bool is_first, bool is_last) const = 0;
  virtual bool looks_at_last() const { return false; }
  // A part of the one text that is left, which is its first and its last token.
  virtual void change_part(RunningToken& part) const { change(part.text, true, true); }
  // That of the one text that is left. As it stands for changes of single characters.
  virtual std::unique_ptr<StepRun> run_whole(bool /*at_start*/) const {
    return std::make_unique<TokenRun>(*this, true, true);
  }

 private:
  class TokenRun final : public StepRun {
   public:
    TokenRun(const TokenStep& step, bool is_first, bool is_whole = false)
        : step_(step), is_first_(is_first), is_whole_(is_whole) {}

    void push(std::string token, std::vector<std::string>& out) override {
      if (is_whole_ || !step_.looks_at_last()) return change(std::move(token), is_whole_, out);
      if (held_) change(std::move(*held_), false, out);
      held_ = std::move(token);
    }
    void finish(std::vector<std::string>& out) override {
      if (held_) change(std::move(*held_), true, out);
      held_.reset();
    }

   private:
    void change(std::string token, bool is_last, std::vector<std::string>& out) {
      step_.change(token, is_first_, is_last);
      is_first_ = is_first_ && is_whole_;
      out.push_back(std::move(token));
    }

    const TokenStep& step_;
    bool is_first_;
    const bool is_whole_;              // parts of one text, which is the first and the last
    std::optional<std::string> held_;  // a token that may be the last
  };

  bool is_whole_;
};

}  // namespace tgi
