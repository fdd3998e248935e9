// A small engine on fake workers, and requests for it.
#pragma once

#include <atomic>
#include <string_view>

#include "tests/runtime/fake_workers.h"

namespace tgi {

inline const ByteTokenizer kTokenizer(512);

inline EngineOptions small_engine() {
  EngineOptions options;
  options.scheduler = {.max_running = 16, .max_batch_tokens = 64};
  options.num_blocks = 64;
  options.block_size = 4;
  options.vocab_size = 512;
  return options;
}

inline std::unique_ptr<Request> request_of(std::string_view prompt, int32_t max_new_tokens) {
  static std::atomic<uint64_t> last_id{0};
  auto request = std::make_unique<Request>();
  request->id = ++last_id;
  for (const char c : prompt) request->prompt_ids.push_back(static_cast<unsigned char>(c));
  request->max_new_tokens = max_new_tokens;
  request->stream = true;
  request->accepted_at = Clock::now();
  return request;
}

inline std::string expected_text(std::string_view prompt,
                                 int32_t count,
                                 int32_t vocab = 26,
                                 uint64_t seed = 0) {
  std::vector<int32_t> ids;
  for (const char c : prompt) ids.push_back(static_cast<unsigned char>(c));
  std::string text;
  for (int32_t i = 0; i < count; ++i) {
    ids.push_back('a' + fake_next_token(ids, vocab, seed));
    text += static_cast<char>(ids.back());
  }
  return text;
}

inline void wait_until_idle(const Engine& engine) {
  const auto is_busy = [&engine] {
    if (engine.num_live_requests() > 0) return true;
    // What the engine tells of itself is published behind the step that ended the last of them.
    const EngineStats stats = engine.stats();
    return stats.num_running > 0 || stats.num_waiting > 0;
  };
  for (int i = 0; i < 5000 && is_busy(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace tgi
