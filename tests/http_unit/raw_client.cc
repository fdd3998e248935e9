#include "tests/http_unit/raw_client.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace tgi::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{10};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

RawClient::RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
  }
}

// A server that has closed already does not make a test fail here: its answer tells.
void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

bool RawClient::fill(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd fd{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (left.count() <= 0 || ::poll(&fd, 1, static_cast<int>(left.count())) <= 0) return false;
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  buffer_.append(bytes.data(), static_cast<size_t>(count));
  return true;
}

bool RawClient::wait_for(std::string_view text, int timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (buffer_.find(text) == std::string::npos) {
    if (!fill(deadline)) return false;
  }
  return true;
}

bool RawClient::is_closed(int timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const size_t before = buffer_.size();
  while (fill(deadline)) {
  }
  return Clock::now() < deadline && buffer_.size() == before;
}

bool RawClient::read_until(std::string_view marker, std::string& out) {
  const auto deadline = Clock::now() + kPatience;
  size_t at = 0;
  while ((at = buffer_.find(marker)) == std::string::npos) {
    if (!fill(deadline)) return false;
  }
  out = buffer_.substr(0, at);
  buffer_.erase(0, at + marker.size());
  return true;
}

bool RawClient::read_count(size_t count, std::string& out) {
  const auto deadline = Clock::now() + kPatience;
  while (buffer_.size() < count) {
    if (!fill(deadline)) return false;
  }
  out = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return true;
}

RawAnswer RawClient::answer(bool has_body) {
  RawAnswer out;
  std::string head;
  if (!read_until("\r\n\r\n", head)) return out;
  head += "\r\n";
  size_t at = head.find("\r\n");
  const std::string first = head.substr(0, at);
  for (at += 2; at < head.size();) {
    const size_t end = head.find("\r\n", at);
    const size_t colon = head.find(": ", at);
    out.headers[lower(head.substr(at, colon - at))] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  out.version = first.substr(0, first.find(' '));
  const int status = std::stoi(first.substr(first.find(' ') + 1));
  out.chunked = out.headers.contains("transfer-encoding");
  if (!has_body) {
    out.status = status;
  } else if (out.chunked) {
    for (std::string size, chunk;; out.body += chunk) {
      if (!read_until("\r\n", size)) return out;
      const size_t length = std::stoul(size, nullptr, 16);
      if (!read_count(length, chunk) || !read_until("\r\n", size)) return out;
      if (length == 0) break;
    }
    out.status = status;
  } else if (out.headers.contains("content-length")) {
    if (!read_count(std::stoul(out.headers["content-length"]), out.body)) return out;
    out.status = status;
  } else {
    while (fill(Clock::now() + kPatience)) {
    }
    out.body = std::move(buffer_);
    buffer_.clear();
    out.status = status;
  }
  return out;
}

void RawClient::finish_sending() {
  ::shutdown(socket_.get(), SHUT_WR);
}

void RawClient::vanish() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  socket_.reset();
}

}  // namespace tgi::http
