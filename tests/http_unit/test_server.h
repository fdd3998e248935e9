// A server on a free port of this machine with a handler of the test.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cmd/http/http_server.h"

namespace tgi::http {

// What a test says about requests; counts what became of them.
class TestHandler final : public RequestHandler {
 public:
  std::optional<Response> on_headers(const Request& request) override {
    if (request.path == "/forbidden") return counted(plain_text(403, "no"));
    return std::nullopt;
  }

  // Echoes method, path and body. Some paths are special: /headers tells them; /stream comes in
  // three parts; /endless goes on until it is let go; /cut stops in the middle; /past has one of
  // its three parts written past the writer.
  Response on_request(const Request& request) override {
    ++num_requests;
    Response response = plain_text(200, request.method + " " + request.path + " " + request.body);
    if (request.path == "/stream") {
      response.stream = [](BodyWriter& body) {
        return body.write("one ") && body.write("two ") && body.write("three");
      };
    } else if (request.path == "/headers") {
      response.body.clear();
      for (const Header& header : request.headers) {
        response.body += header.name + "=" + header.value + "|";
      }
    } else if (request.path == "/endless") {
      response.stream = [this](BodyWriter& body) {
        while (!let_go) {
          if (!body.write("more ")) return false;
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return true;
      };
    } else if (request.path == "/cut") {
      response.stream = [](BodyWriter& body) { return body.write("some") && false; };
    } else if (request.path == "/past") {
      response.stream = [this](BodyWriter& body) {
        fd_of_body = body.chunked_fd();
        return body.write("one ") &&
               (fd_of_body < 0 || ::write(fd_of_body, "4\r\ntwo \r\n", 9) == 9) &&
               body.write("three");
      };
    }
    return counted(std::move(response));
  }

  Response on_refused(const Request& /*request*/, int status, const std::string& reason) override {
    return counted(plain_text(status, reason));
  }

  std::atomic<bool> let_go{false};
  std::atomic<int> num_requests{0};
  std::atomic<int> num_sent{0};
  std::atomic<int> num_lost{0};
  std::atomic<int> fd_of_body{-2};

 private:
  Response counted(Response response) {
    response.on_end = [this](bool was_sent) { ++(was_sent ? num_sent : num_lost); };
    return response;
  }
};

class TestServer {
 public:
  explicit TestServer(ServerOptions options = {})
      : stop_(::eventfd(0, EFD_CLOEXEC)),
        server_(options, handler),
        thread_([this] { server_.run(stop_.get()); }) {}

  ~TestServer() {
    handler.let_go = true;
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  int port() const { return server_.port(); }
  HttpServer& server() { return server_; }

  TestHandler handler;

 private:
  UniqueFd stop_;
  HttpServer server_;
  std::thread thread_;
};

// Polls until `holds`; false after ten seconds.
inline bool soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace tgi::http
