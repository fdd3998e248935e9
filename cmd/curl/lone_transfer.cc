#include "cmd/curl/lone_transfer.h"

#include <algorithm>

#include "base/error.h"
#include "cmd/curl/transfer_state.h"

namespace tgi::curl {

using std::chrono::milliseconds;

struct LoneTransfer::Multi {
  std::unique_ptr<CURLM, MultiDeleter> handle;

  // Nothing when the time is up.
  std::optional<CURLcode> run(const std::function<Clock::time_point()>& until) const {
    int num_running = 1;
    while (true) {
      if (curl_multi_perform(handle.get(), &num_running) != CURLM_OK) return CURLE_FAILED_INIT;
      if (num_running == 0) break;
      const auto left = std::chrono::ceil<milliseconds>(until() - Clock::now());
      if (left.count() <= 0) return std::nullopt;
      const auto wait = std::min(left, milliseconds(60'000));
      curl_multi_poll(handle.get(), nullptr, 0, static_cast<int>(wait.count()), nullptr);
    }
    int num_left = 0;
    const CURLMsg* message = curl_multi_info_read(handle.get(), &num_left);
    return message != nullptr && message->msg == CURLMSG_DONE ? message->data.result
                                                              : CURLE_FAILED_INIT;
  }
};

LoneTransfer::LoneTransfer() : multi_(std::make_unique<Multi>()) {
  init_libcurl();
  multi_->handle.reset(curl_multi_init());
  TGI_CHECK(multi_->handle != nullptr);
}

LoneTransfer::~LoneTransfer() = default;

std::optional<Outcome> LoneTransfer::perform(const std::function<Clock::time_point()>& until) {
  TransferState& state = *transfer_.state_;
  TGI_CHECK(curl_multi_add_handle(multi_->handle.get(), state.easy.get()) == CURLM_OK);
  const std::optional<CURLcode> result = multi_->run(until);
  curl_multi_remove_handle(multi_->handle.get(), state.easy.get());
  if (!result) return std::nullopt;
  return state.outcome_of(*result);
}

void LoneTransfer::wake() {
  curl_multi_wakeup(multi_->handle.get());
}

}  // namespace tgi::curl
