// One transfer at a time whose wait another thread can cut short.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "cmd/curl/transfer.h"

namespace tgi::curl {

class LoneTransfer {
 public:
  using Clock = std::chrono::steady_clock;

  LoneTransfer();
  ~LoneTransfer();

  // To be prepared; its own perform() is not for use here.
  Transfer& transfer() { return transfer_; }

  // Waits until it ended, or until the time that `until` returns has come: then nothing, and the
  // transfer is broken off. `until` is asked again after each wake(). Throws what the receiver
  // threw.
  std::optional<Outcome> perform(const std::function<Clock::time_point()>& until);

  // By any thread.
  void wake();

 private:
  struct Multi;

  // In this order: the transfer must go before the connections it was on.
  const std::unique_ptr<Multi> multi_;
  Transfer transfer_;
};

}  // namespace tgi::curl
