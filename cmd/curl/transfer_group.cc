#include "cmd/curl/transfer_group.h"

#include <exception>

#include "base/error.h"
#include "cmd/curl/transfer_state.h"

namespace tgi::curl {

struct TransferGroup::Multi {
  std::unique_ptr<CURLM, MultiDeleter> handle;
  Watcher& watcher;

  void act(curl_socket_t socket, int events) const {
    int num_running = 0;
    TGI_CHECK(curl_multi_socket_action(handle.get(), socket, events, &num_running) == CURLM_OK);
  }

  // Called by libcurl, like the one below: nothing may be thrown through it. -1 ends the transfer.
  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
    Watcher& watcher = static_cast<Multi*>(self)->watcher;
    const bool reading = what == CURL_POLL_IN || what == CURL_POLL_INOUT;
    const bool writing = what == CURL_POLL_OUT || what == CURL_POLL_INOUT;
    try {
      reading || writing ? watcher.watch(socket, reading, writing) : watcher.forget(socket);
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  }

  static int on_timer(CURLM*, long timeout_ms, void* self) {
    Watcher& watcher = static_cast<Multi*>(self)->watcher;
    try {
      watcher.wake_after(timeout_ms < 0 ? std::nullopt
                                        : std::optional(std::chrono::milliseconds(timeout_ms)));
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  }
};

TransferGroup::TransferGroup(Watcher& watcher)
    : multi_(new Multi{.handle = nullptr, .watcher = watcher}) {
  init_libcurl();
  multi_->handle.reset(curl_multi_init());
  CURLM* handle = multi_->handle.get();
  TGI_CHECK(handle != nullptr);
  curl_multi_setopt(handle, CURLMOPT_SOCKETFUNCTION, &Multi::on_socket);
  curl_multi_setopt(handle, CURLMOPT_SOCKETDATA, multi_.get());
  curl_multi_setopt(handle, CURLMOPT_TIMERFUNCTION, &Multi::on_timer);
  curl_multi_setopt(handle, CURLMOPT_TIMERDATA, multi_.get());
}

TransferGroup::~TransferGroup() = default;

void TransferGroup::add(Transfer& transfer) {
  CURL* easy = transfer.state_->easy.get();
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer.state_.get());
  TGI_CHECK(curl_multi_add_handle(multi_->handle.get(), easy) == CURLM_OK);
}

void TransferGroup::remove(Transfer& transfer) {
  curl_multi_remove_handle(multi_->handle.get(), transfer.state_->easy.get());
}

void TransferGroup::act(int socket, SocketEvents events) {
  int what = 0;
  if (events.readable) what |= CURL_CSELECT_IN;
  if (events.writable) what |= CURL_CSELECT_OUT;
  if (events.error) what |= CURL_CSELECT_ERR;
  multi_->act(socket, what);
}

void TransferGroup::act_on_time() {
  multi_->act(CURL_SOCKET_TIMEOUT, 0);
}

std::optional<FinishedTransfer> TransferGroup::next_finished() {
  int num_left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_->handle.get(), &num_left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode result = message->data.result;
    char* state = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &state);
    TransferState& of = *reinterpret_cast<TransferState*>(state);
    return FinishedTransfer{.receiver = of.receiver, .outcome = of.outcome_of(result)};
  }
  return std::nullopt;
}

}  // namespace tgi::curl
