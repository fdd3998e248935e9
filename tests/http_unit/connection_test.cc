// How long a connection lasts and what a request says of it: options of connections, hosts,
// targets, and who is turned away.
#include <pthread.h>

#include "cmd/http/http_server.h"
#include "tests/catch.h"
#include "tests/http_unit/raw_client.h"
#include "tests/http_unit/test_server.h"

namespace tgi::http {
namespace {

std::string get_request(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
}

}  // namespace

TEST_CASE("Connection: close is kept to") {
  TestServer server;
  RawClient client(server.port());
  client.send(get_request("/a", "Connection: close\r\n"));
  CHECK(client.answer().status == 200);
  CHECK(client.is_closed());
}

TEST_CASE("an answer that ends its connection was sent all the same") {
  TestServer server;
  for (const char* request :
       {"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /a HTTP/1.0\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /stream HTTP/1.0\r\n\r\n",
        "POST /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"}) {
    RawClient client(server.port());
    client.send(request);
    CHECK(client.answer().status == 200);
    CHECK(client.is_closed());
  }
  CHECK(soon([&] { return server.handler.num_sent == 5; }));
  CHECK(server.handler.num_lost == 0);
}

TEST_CASE("options of a connection have no case and stand in lists") {
  TestServer server;
  const auto answer_to = [&](const std::string& version, const std::string& header) {
    RawClient client(server.port());
    client.send("GET /a " + version + "\r\nHost: a\r\n" + header + "\r\n");
    RawAnswer answer = client.answer();
    CHECK(answer.status == 200);
    CHECK(answer.headers.count("keep-alive") ==
          (answer.headers["connection"] == "close" ? 0U : 1U));
    if (answer.headers["connection"] == "close") {
      CHECK(client.is_closed());
    } else {
      client.send("GET /b " + version + "\r\nHost: a\r\n\r\n");
      CHECK(client.answer().status == 200);
    }
    return answer.headers["connection"];
  };
  for (const char* close :
       {"Connection: close\r\n", "connection: Close\r\n", "Connection: CLOSE\r\n",
        "Connection: TE, close\r\n", "Connection: keep-alive\r\nConnection: close\r\n"}) {
    INFO(close);
    CHECK(answer_to("HTTP/1.1", close) == "close");
    CHECK(answer_to("HTTP/1.0", close) == "close");
  }
  for (const char* keep : {"Connection: keep-alive\r\n", "Connection: Keep-Alive\r\n",
                           "Connection: te ,KEEP-ALIVE\r\n"}) {
    INFO(keep);
    CHECK(answer_to("HTTP/1.1", keep).empty());
    CHECK(answer_to("HTTP/1.0", keep) == "keep-alive");
  }
  CHECK(answer_to("HTTP/1.1", "").empty());
  CHECK(answer_to("HTTP/1.0", "") == "close");
  CHECK(answer_to("HTTP/1.1", "Connection: not-close\r\n").empty());
}

TEST_CASE("an empty line before a request is passed over, many are none") {
  TestServer server;
  RawClient client(server.port());
  client.send("\r\n" + get_request("/a"));
  CHECK(client.answer().body == "GET /a ");
  // A line's end behind a body that has none, alone and together with the next request.
  client.send("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\r\n");
  CHECK(client.answer().body == "POST /b x");
  client.send(get_request("/c"));
  CHECK(client.answer().body == "GET /c ");
  client.send("\r\n\r\n" + get_request("/headers"));
  CHECK(client.answer().body == "Host=a|");
  client.send("\r\n\r\n\r\n" + get_request("/d"));
  CHECK(client.answer().status == 400);
  CHECK(client.is_closed());
}

TEST_CASE("Expect has no case") {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /b HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n");
  REQUIRE(client.wait_for("100 Continue\r\n\r\n"));
  client.send("x");
}

TEST_CASE("a target in absolute form is the same request") {
  TestServer server;
  const auto body_of = [&](const std::string& target) {
    RawClient client(server.port());
    client.send("POST " + target + " HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    return client.answer().body;
  };
  CHECK(body_of("http://a/b") == "POST /b x");
  CHECK(body_of("HTTP://a.example:3000/b/c%20d?e=f") == "POST /b/c d x");
  CHECK(body_of("https://[::1]:3000/b") == "POST /b x");
  CHECK(body_of("http://a") == "POST / x");
  CHECK(body_of("http://a?b=c") == "POST / x");
  CHECK(body_of("/http://a/b") == "POST /http://a/b x");
  for (const char* target : {"http:///b", "http://a%2Fb/c", "http://a\"b/c"}) {
    CHECK(body_of(target) == "the request target has no valid host");
  }
}

TEST_CASE("HTTP/1.1 names its host once") {
  TestServer server;
  const auto answer_to = [&](const std::string& head) {
    RawClient client(server.port());
    client.send(head + "\r\n");
    const RawAnswer answer = client.answer();
    CHECK(client.is_closed() == (answer.status == 400 || head.find("HTTP/1.0") != head.npos));
    return answer.status;
  };
  CHECK(answer_to("GET /a HTTP/1.1\r\n") == 400);
  CHECK(answer_to("GET /a HTTP/1.1\r\nHost: a\r\nhost: a\r\n") == 400);
  CHECK(answer_to("GET /a HTTP/1.1\r\nHost: a/b\r\n") == 400);
  CHECK(answer_to("GET /a HTTP/1.1\r\nHost: a b\r\n") == 400);
  CHECK(answer_to("GET /a HTTP/1.0\r\nHost: a\r\nHost: b\r\n") == 400);
  CHECK(server.handler.num_requests == 0);
  CHECK(answer_to("GET /a HTTP/1.0\r\n") == 200);
}

TEST_CASE("who is turned away can read why, though the request was sent") {
  TestServer server({.max_connections = 1, .connection = {}});
  RawClient first(server.port());
  first.send(get_request("/a"));
  CHECK(first.answer().status == 200);
  for (int i = 0; i < 50; ++i) {
    RawClient other(server.port());
    other.send(get_request("/b", "X-Long: " + std::string(50'000, 'x') + "\r\n"));
    const RawAnswer answer = other.answer();
    CHECK(answer.status == 429);
    CHECK(other.is_closed());
  }
}

TEST_CASE("who comes when no thread can be started can read why, and others later are served") {
  TestServer server;
  RawClient first(server.port());
  first.send(get_request("/a"));
  CHECK(first.answer().status == 200);
  // No address space holds a stack of this size.
  pthread_attr_t before;
  REQUIRE(::pthread_getattr_default_np(&before) == 0);
  pthread_attr_t huge;
  REQUIRE(::pthread_getattr_default_np(&huge) == 0);
  REQUIRE(::pthread_attr_setstacksize(&huge, size_t{1} << 47) == 0);
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  for (int i = 0; i < 3; ++i) {
    RawClient other(server.port());
    other.send(get_request("/b"));
    const RawAnswer answer = other.answer();
    CHECK(answer.status == 429);
    CHECK_THAT(answer.body, Catch::Contains("no thread"));
    CHECK(other.is_closed());
  }
  REQUIRE(::pthread_setattr_default_np(&before) == 0);
  first.send(get_request("/c"));
  CHECK(first.answer().status == 200);
  RawClient last(server.port());
  last.send(get_request("/d"));
  CHECK(last.answer().status == 200);
}

}  // namespace tgi::http
