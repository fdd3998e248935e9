#include "tests/ipc/fake_daemon.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace tgi {
namespace {

bool poll_for(int fd, short events, int timeout_ms) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  return ::poll(&one, 1, timeout_ms) > 0;
}

}  // namespace

bool FakeSession::receive_request() {
  for (;;) {
    if (auto line = reader_.next()) {
      request_ = ipc::decode_request(*line);
      return true;
    }
    if (stopping_) return false;
    if (!poll_for(fd_.get(), POLLIN, 20)) continue;
    if (ipc::read_into(fd_.get(), reader_) == ipc::ReadStatus::kClosed) return false;
  }
}

void FakeSession::send(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  std::string_view rest = text;
  while (!stopping_ && ipc::write_from(fd_.get(), rest) == ipc::WriteStatus::kWouldBlock) {
    poll_for(fd_.get(), POLLOUT, 20);
  }
}

void FakeSession::send_text(const std::string& text, int id) {
  ipc::TokenEvent event;
  event.token = {.id = id, .text = text, .logprob = -0.5};
  event.text = text;
  send(ipc::encode_token_event(event));
}

void FakeSession::send_error(Code code, const std::string& message) {
  send(ipc::encode_error(Error(code, message)));
}

bool FakeSession::client_leaves_within(int timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!stopping_ && std::chrono::steady_clock::now() < deadline) {
    if (!poll_for(fd_.get(), POLLIN | POLLRDHUP, 20)) continue;
    if (ipc::read_into(fd_.get(), reader_) == ipc::ReadStatus::kClosed) return true;
  }
  return false;
}

FakeDaemon::FakeDaemon(const std::string& socket_path, Script script, std::string hello)
    : listener_(ipc::listen_unix(socket_path)),
      script_(std::move(script)),
      hello_(std::move(hello)) {
  acceptor_ = std::thread([this] {
    while (!stopping_) {
      if (!poll_for(listener_.fd(), POLLIN, 20)) continue;
      while (auto client = listener_.accept()) {
        sessions_.emplace_back([this, fd = client->release()] { serve(UniqueFd(fd)); });
      }
    }
  });
}

FakeDaemon::~FakeDaemon() {
  stopping_ = true;
  acceptor_.join();
  for (std::thread& session : sessions_) session.join();
}

void FakeDaemon::serve(UniqueFd client) {
  FakeSession session(std::move(client), stopping_);
  session.send(hello_);
  try {
    if (!session.receive_request()) return;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(session.request().method + " " + session.request().params.dump());
    }
    script_(session);
  } catch (const Error& error) {
    session.send(ipc::encode_error(error));
  }
}

std::vector<std::string> FakeDaemon::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

ipc::Status ready_status() {
  ipc::Status status;
  status.pid = 4711;
  status.uptime_seconds = 3725;
  status.phase = "ready";
  status.path = "demo";
  status.socket = "fake";
  status.rss_bytes = 1 << 20;
  ipc::ModelStatus& model = status.model.emplace();
  model.name = "demo";
  model.architecture = "LlamaForCausalLM";
  model.dtype = "bf16";
  model.quantize = "none";
  model.kv_cache_dtype = "bf16";
  model.backend = "cpu";
  model.isa = "avx512";
  model.num_threads = 2;
  model.num_params = 1'000'000;
  model.vocab_size = 1000;
  model.max_total_tokens = 4096;
  model.block_size = 16;
  model.num_blocks = 100;
  model.num_blocks_used = 10;
  model.num_blocks_cached = 20;
  model.num_blocks_free = 70;
  model.kv_bytes_per_token = 1024;
  model.weight_bytes_per_token = 2'000'000;
  model.has_chat_template = true;
  model.memory = {.weights = 2'000'000,
                  .kv_cache = 3 << 20,
                  .workspace = 1 << 20,
                  .available = int64_t{8} << 30};
  return status;
}

FakeDaemon::Script ready_model(FakeDaemon::Script generate) {
  return [generate = std::move(generate)](FakeSession& session) {
    if (session.request().method == ipc::kStatus) {
      session.send(ipc::encode_result(ipc::to_json(ready_status())));
    } else {
      generate(session);
    }
  };
}

}  // namespace tgi
