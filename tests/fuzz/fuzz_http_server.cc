// Any bytes on a connection, in two pieces: the server answers or cuts off, every answer begins as
// one, every request that began is ended, and the next client is served.
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "cmd/http/http_server.h"

namespace {

using tgi::UniqueFd;
using tgi::http::Response;

constexpr size_t kMaxBodyBytes = 4096;

class Handler final : public tgi::http::RequestHandler {
 public:
  std::optional<Response> on_headers(const tgi::http::Request& request) override {
    if (request.path == "/no") return answer(403, "no");
    return std::nullopt;
  }
  Response on_request(const tgi::http::Request& request) override {
    if (request.body.size() > kMaxBodyBytes) std::abort();
    // Not the body itself: it may well look like an answer.
    Response response = answer(200, std::to_string(request.body.size()));
    if (request.path.size() % 2 == 0) {
      response.stream = [](tgi::http::BodyWriter& body) {
        return body.write("one") && body.write("two");
      };
    }
    return response;
  }
  Response on_refused(const tgi::http::Request& /*request*/,
                      int status,
                      const std::string& reason) override {
    if (status < 400 || reason.empty()) std::abort();
    return answer(status, reason);
  }

  std::atomic<int> num_open{0};

 private:
  Response answer(int status, const std::string& text) {
    ++num_open;
    Response response = tgi::http::plain_text(status, text);
    response.on_end = [this](bool) { --num_open; };
    return response;
  }
};

tgi::http::ServerOptions server_options() {
  tgi::http::ServerOptions options;
  options.max_body_bytes = kMaxBodyBytes;
  options.connection.header_timeout = std::chrono::milliseconds(50);
  options.connection.read_timeout = std::chrono::milliseconds(50);
  return options;
}

// One server for all inputs; it ends with the process.
struct Server {
  Server() : stop(::eventfd(0, EFD_CLOEXEC)), http(server_options(), handler) {
    thread = std::thread([this] { http.run(stop.get()); });
  }
  ~Server() {
    const uint64_t one = 1;
    (void)!::write(stop.get(), &one, sizeof one);
    thread.join();
  }
  Handler handler;
  UniqueFd stop;
  tgi::http::HttpServer http;
  std::thread thread;
};

UniqueFd dial(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Thousands of connections a second: now and then there is no port, or libFuzzer's timer rings.
  for (int i = 0;
       ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0; ++i) {
    if (errno == EISCONN) break;
    if (i == 1000 || (errno != EADDRNOTAVAIL && errno != EINTR && errno != EALREADY)) std::abort();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // Thousands of connections: none is to linger in TIME_WAIT.
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  return fd;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // cut off already
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

std::string read_all(int fd) {
  std::string out;
  std::array<char, 4096> bytes;
  for (;;) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int num_ready = ::poll(&ready, 1, 20'000);
    if (num_ready < 0 && errno == EINTR) continue;  // libFuzzer has a timer
    if (num_ready <= 0) std::abort();               // neither an answer nor the end
    const ssize_t count = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (count <= 0) return out;
    out.append(bytes.data(), static_cast<size_t>(count));
  }
}

}  // namespace

// The first byte: where the input is cut in two.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Server server;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = bytes.size() * data[0] / 255;
  {
    const UniqueFd fd = dial(server.http.port());
    send_all(fd.get(), bytes.substr(0, cut));
    send_all(fd.get(), bytes.substr(cut));
    ::shutdown(fd.get(), SHUT_WR);
    const std::string answer = read_all(fd.get());
    if (!answer.empty() && !answer.starts_with("HTTP/1.1 ")) std::abort();
    if (answer.find("HTTP/1.1 -") != std::string::npos) std::abort();
  }
  const UniqueFd next = dial(server.http.port());
  send_all(next.get(), "GET /abc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  if (!read_all(next.get()).starts_with("HTTP/1.1 200 OK\r\n")) std::abort();
  for (int i = 0; server.handler.num_open != 0; ++i) {
    if (i == 20'000) std::abort();  // a request that began was never ended
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}
