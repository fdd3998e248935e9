#include "engine/text/tokenizer/byte_steps.h"

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "engine/text/tokenizer/byte_level.h"

namespace tgi {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

class ByteFallbackStep final : public DecoderStep {
 public:
  explicit ByteFallbackStep(const DecoderState& state)
      : is_first_(!state.is_whole && !state.has_bytes) {}

  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    ByteRun run(true);
    for (std::string& token : tokens) run.push(std::move(token), out);
    run.finish(out);
    tokens = std::move(out);
  }
  void stream(RunningToken& token) const override {
    // Nothing that spells a byte comes through another one or out of a whole text.
    if (!is_first_) return;
    if (const auto byte = byte_of_token(token.text)) {
      token.text.assign(1, static_cast<char>(*byte));
      token.is_byte = true;
    }
  }

  std::unique_ptr<StepRun> run(bool /*at_start*/) const override {
    return std::make_unique<ByteRun>(is_first_);
  }

 private:
  class ByteRun final : public StepRun {
   public:
    explicit ByteRun(bool is_first) : is_first_(is_first) {}

    void push(std::string token, std::vector<std::string>& out) override {
      const auto byte = is_first_ ? byte_of_token(token) : std::nullopt;
      if (byte) {
        bytes_ += static_cast<char>(*byte);
        return;
      }
      finish(out);
      out.push_back(std::move(token));
    }
    void finish(std::vector<std::string>& out) override {
      if (bytes_.empty()) return;
      if (is_valid_utf8(bytes_)) {
        out.push_back(std::move(bytes_));
      } else {
        out.insert(out.end(), bytes_.size(), std::string(kReplacement));
      }
      bytes_.clear();
    }

   private:
    const bool is_first_;
    std::string bytes_;  // the pending ones
  };

  const bool is_first_;
};

class ByteLevelStep final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) {
      const auto bytes = from_byte_level(token);
      all += bytes ? *bytes : token;
    }
    if (!is_valid_utf8(all)) all = replace_invalid_utf8(all);
    tokens.assign(1, std::move(all));
  }
  void stream(RunningToken& token) const override {
    if (auto bytes = from_byte_level(token.text)) token.text = std::move(*bytes);
  }
  std::unique_ptr<StepRun> run(bool /*at_start*/) const override {
    return std::make_unique<CharacterRun>();
  }

 private:
  // Bytes that are not a whole character yet are held back.
  class CharacterRun final : public StepRun {
   public:
    void push(std::string token, std::vector<std::string>& out) override {
      const auto bytes = from_byte_level(token);
      bytes_ += bytes ? *bytes : token;
      drain(false, out);
    }
    void finish(std::vector<std::string>& out) override { drain(true, out); }

   private:
    void drain(bool at_end, std::vector<std::string>& out) {
      std::string characters;
      drain_utf8(bytes_, at_end, characters);
      if (!characters.empty()) out.push_back(std::move(characters));
    }

    std::string bytes_;
  };
};

}  // namespace

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned char byte = 0;
  const char* end = token.data() + 5;
  const auto [stopped, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return byte;
}

std::unique_ptr<DecoderStep> make_byte_fallback_step(const DecoderState& state) {
  return std::make_unique<ByteFallbackStep>(state);
}

std::unique_ptr<DecoderStep> make_byte_level_step() {
  return std::make_unique<ByteLevelStep>();
}

}  // namespace tgi
