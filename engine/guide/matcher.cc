#include "engine/guide/matcher.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/guide/machine.h"

namespace tgi::guide {

struct Matcher::Impl {
  std::shared_ptr<const CompiledGrammar> grammar;
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<Machine> machine;
  std::vector<int32_t> tokens;   // accepted
  std::vector<int32_t> configs;  // before the first, and after each; kEnded after an end token
  // Where items have to differ: the text, and how long it was at each of the configurations.
  std::string text;
  std::vector<size_t> text_sizes;
  int64_t generation = -1;
  std::string failure;  // not empty: why it can't go on

  static constexpr int32_t kEnded = -3;

  // Runs `work` with the machine locked and `configs` of its present generation. What is too much
  // for the machine ends this answer, and no other: its tables are made again.
  template <typename Work>
  auto locked(Work work) {
    if (!failure.empty()) throw Error(Code::kInvalidArgument, failure);
    const std::lock_guard held(machine->mutex());
    try {
      machine->begin_work();
      if (generation != machine->generation()) {
        generation = machine->generation();
        configs.assign(1, machine->start());
        text.clear();
        text_sizes.assign(1, 0);
        for (const int32_t token : tokens) {
          machine->start_counting();
          push(step(token));
        }
        machine->start_counting();
        machine->replayed();
      }
      return work();
    } catch (const Error& error) {
      machine->reset();
      failure = "after " + std::to_string(tokens.size()) + " tokens of the answer its grammar " +
                "can't be followed any further: " + error.what();
      throw Error(error.code(), failure);
    }
  }

  void push(int32_t config) {
    configs.push_back(config);
    text_sizes.push_back(text.size());
  }

  // kDead: not allowed. The text has what the token adds to it then. REQUIRES: locked.
  int32_t step(int32_t token) {
    text.resize(text_sizes.back());
    const int32_t config = configs.back();
    if (config < 0 || token < 0 || token >= vocabulary->size()) return Machine::kDead;
    const std::string_view bytes = vocabulary->bytes(token);
    int32_t next = Machine::kDead;
    if (!bytes.empty()) {
      next = machine->has_items() ? machine->settled_step(config, bytes, text)
                                  : machine->step_bytes(config, bytes);
    }
    if (next == Machine::kDead) text.resize(text_sizes.back());
    next = machine->either_of(next, machine->step_token(config, token));
    if (next == Machine::kDead && vocabulary->is_end_token(token) && machine->accepts(config))
      return kEnded;
    return next;
  }

  // Tokens in which an item ends and one begins that can't be, or not in so few tokens.
  void drop_repeated(std::span<uint32_t> mask, int64_t max_tokens) {
    const bool is_limited = max_tokens < Machine::kMaxTokens;
    const std::vector<Machine::Crossing>& all = machine->crossings(configs.back());
    text.resize(text_sizes.back());
    for (const Machine::Crossing& crossing : all) {
      const auto word = static_cast<size_t>(crossing.token) / 32;
      const uint32_t bit = uint32_t{1} << (static_cast<uint32_t>(crossing.token) % 32);
      if ((mask[word] & bit) == 0 || !(is_limited || machine->may_matter(crossing, text))) continue;
      const int32_t next = step(crossing.token);
      text.resize(text_sizes.back());
      const auto ends_in_time = [&] {
        return !is_limited || machine->shortest_end(next) <= max_tokens ||
               machine->num_tokens_to_end(next) <= max_tokens;
      };
      if (next == Machine::kDead || !ends_in_time()) mask[word] &= ~bit;
    }
  }

  // REQUIRES: locked; the mask is clear.
  void fill_mask(std::span<uint32_t> mask, int64_t max_tokens) {
    const int32_t config = configs.back();
    if (config < 0) return;
    const Machine::Mask& all = machine->mask(config);
    const bool is_short = max_tokens >= 0 && all.max_rest > max_tokens - 1;
    const bool is_nearly_short =
        max_tokens >= 0 && all.max_rest + machine->spare_bytes() > max_tokens - 1;
    if (is_short && max_tokens > 0) machine->mask_within(config, max_tokens - 1, mask);
    if (!is_short) std::ranges::copy(all.bits, mask.begin());
    if (machine->has_items())
      drop_repeated(mask, is_nearly_short ? max_tokens - 1 : Machine::kMaxTokens);
    const bool can_end = machine->accepts(config);
    const bool has_any = std::ranges::any_of(mask, [](uint32_t word) { return word != 0; });
    if (!has_any && !can_end) {
      std::ranges::copy(machine->mask(config).bits, mask.begin());
      if (machine->has_items()) drop_repeated(mask, Machine::kMaxTokens);
    }
    if (!can_end) return;
    for (const int32_t id : vocabulary->end_token_ids()) {
      if (id >= 0 && id < vocabulary->size())
        mask[static_cast<size_t>(id) / 32] |= uint32_t{1} << (static_cast<uint32_t>(id) % 32);
    }
  }
};

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar,
                 std::shared_ptr<const Vocabulary> vocabulary)
    : impl_(std::make_unique<Impl>()) {
  impl_->machine = grammar->machine(vocabulary);
  impl_->grammar = std::move(grammar);
  impl_->vocabulary = std::move(vocabulary);
}

Matcher::~Matcher() = default;
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;

void Matcher::fill_mask(std::span<uint32_t> mask, int64_t max_tokens) {
  const size_t num_words = (static_cast<size_t>(impl_->vocabulary->size()) + 31) / 32;
  TGI_CHECK(mask.size() >= num_words);
  std::ranges::fill(mask, 0);
  impl_->locked([&] { impl_->fill_mask(mask, max_tokens); });
}

bool Matcher::allows(int32_t token_id) {
  return impl_->locked([&] { return impl_->step(token_id) != Machine::kDead; });
}

bool Matcher::accept(int32_t token_id) {
  return impl_->locked([&] {
    const int32_t next = impl_->step(token_id);
    if (next == Machine::kDead) return false;
    impl_->tokens.push_back(token_id);
    impl_->push(next);
    return true;
  });
}

void Matcher::rollback(int32_t num_tokens) {
  TGI_CHECK(num_tokens >= 0 && num_tokens <= this->num_tokens());
  const size_t left = impl_->tokens.size() - static_cast<size_t>(num_tokens);
  impl_->tokens.resize(left);
  if (impl_->configs.size() > left + 1) {
    impl_->configs.resize(left + 1);
    impl_->text_sizes.resize(left + 1);
  }
  impl_->failure.clear();
}

int32_t Matcher::num_tokens() const {
  return static_cast<int32_t>(impl_->tokens.size());
}

bool Matcher::can_end() const {
  return impl_->locked([&] {
    const int32_t config = impl_->configs.back();
    return config == Impl::kEnded || (config >= 0 && impl_->machine->accepts(config));
  });
}

bool Matcher::must_end() {
  return impl_->locked([&] {
    const int32_t config = impl_->configs.back();
    return config == Impl::kEnded ||
           (config >= 0 && impl_->machine->accepts(config) && impl_->machine->is_stuck(config));
  });
}

std::string Matcher::forced_text(size_t max_bytes) {
  return impl_->locked([&] {
    const int32_t config = impl_->configs.back();
    return config < 0 ? std::string() : impl_->machine->forced_text(config, max_bytes);
  });
}

int64_t Matcher::min_tokens_to_end() {
  return impl_->locked([&]() -> int64_t {
    const int32_t config = impl_->configs.back();
    return config < 0 ? 0 : impl_->machine->num_tokens_to_end(config);
  });
}

}  // namespace tgi::guide
