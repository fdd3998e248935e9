#include "daemon/session.h"

#include <thread>
#include <utility>

#include "base/log.h"

namespace tgi::daemon {
namespace {

// Acknowledging in lots keeps the engine's mailbox quiet; well below what makes it pause.
constexpr int32_t kAcknowledgeEvery = 64;

}  // namespace

void post(Mailbox<Outgoing>& outbox, Outgoing&& outgoing) {
  while (!outbox.try_send(std::move(outgoing)))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Session::Session(uint64_t id, UniqueFd socket, ipc::Credentials client)
    : id_(id),
      socket_(std::move(socket)),
      client_(std::move(client)),
      last_progress_(std::chrono::steady_clock::now()) {
  unsent_ = ipc::encode_hello({}) + "\n";
}

Session::~Session() {
  ended_.request_stop();
  if (!last_written_ && attached_job_.stop) attached_job_.stop->request_stop();
  try {
    if (const auto cancel = take_cancel()) cancel();
  } catch (const std::exception& error) {
    log_warn("a request goes on without its client", {{"error", error.what()}});
  }
}

std::function<void()> Session::take_cancel() {
  if (last_written_) return nullptr;
  return std::exchange(attached_.cancel, nullptr);
}

bool Session::owes_acknowledgement() const {
  return attached_.acknowledge && !has_unsent() && num_unacknowledged_ >= kAcknowledgeEvery;
}

void Session::acknowledge() noexcept {
  if (!owes_acknowledgement()) return;
  try {
    attached_.acknowledge(num_unacknowledged_);
    num_unacknowledged_ = 0;
  } catch (const std::exception&) {
    // It stays owed.
  }
}

Session::Input Session::read(std::string& line) {
  if (has_request_) return Input::kNothing;
  const ipc::ReadStatus status = ipc::read_into(socket_.get(), reader_);
  if (auto whole = reader_.next()) {
    has_request_ = true;
    line = std::move(*whole);
    return Input::kRequest;
  }
  return status == ipc::ReadStatus::kClosed ? Input::kClosed : Input::kNothing;
}

void Session::take(const Outgoing& outgoing) {
  if (const auto* attached = std::get_if<Attached>(&outgoing.message)) {
    attached_ = *attached;
    return;
  }
  if (const auto* attached = std::get_if<AttachedJob>(&outgoing.message)) {
    attached_job_ = *attached;
    return;
  }
  if (last_written_ || std::holds_alternative<Decoded>(outgoing.message)) return;
  struct Encode {
    std::string operator()(const ipc::AcceptedEvent& event) const {
      return ipc::encode_accepted_event(event);
    }
    std::string operator()(const ipc::TokenEvent& event) const {
      return ipc::encode_token_event(event);
    }
    std::string operator()(const ipc::DoneEvent& event) const {
      return ipc::encode_done_event(event);
    }
    std::string operator()(const ipc::ProgressEvent& event) const {
      return ipc::encode_progress_event(event);
    }
    std::string operator()(const ipc::OrderedJson& result) const {
      return ipc::encode_result(result);
    }
    std::string operator()(const Error& error) const { return ipc::encode_error(error); }
    std::string operator()(const Attached& /*attached*/) const { return {}; }
    std::string operator()(const AttachedJob& /*attached*/) const { return {}; }
    std::string operator()(const Decoded& /*decoded*/) const { return {}; }
  };
  if (!has_unsent()) last_progress_ = std::chrono::steady_clock::now();
  unsent_ += std::visit(Encode{}, outgoing.message);
  unsent_ += '\n';
  if (std::holds_alternative<ipc::TokenEvent>(outgoing.message)) {
    ++num_unacknowledged_;
  } else if (!std::holds_alternative<ipc::AcceptedEvent>(outgoing.message) &&
             !std::holds_alternative<ipc::ProgressEvent>(outgoing.message)) {
    last_written_ = true;
  }
}

bool Session::flush() {
  std::string_view rest = std::string_view(unsent_).substr(sent_);
  if (!rest.empty()) {
    const size_t before = rest.size();
    const ipc::WriteStatus status = ipc::write_from(socket_.get(), rest);
    if (rest.size() < before) last_progress_ = std::chrono::steady_clock::now();
    if (status == ipc::WriteStatus::kClosed) return false;
    sent_ = unsent_.size() - rest.size();
    if (!rest.empty()) return true;
    unsent_.clear();
    sent_ = 0;
  }
  acknowledge();
  return true;
}

}  // namespace tgi::daemon
