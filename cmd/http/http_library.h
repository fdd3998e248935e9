// All that is used of cpp-httplib: it reads one request from a connection, asks the handler, and
// writes the answer. Connections, threads and limits are the caller's. Nothing else includes the
// library's header. It is built with versions 0.11 (Debian 12), 0.14 (Ubuntu 24.04), 0.18 (Debian
// 13) and later ones, which differ in what is not public; what follows from that is in the .cc.
#pragma once

#include <functional>
#include <memory>

#include "cmd/http/connection.h"
#include "cmd/http/http_server.h"
#include "cmd/http/message.h"

namespace tgi::http {

// One request on a connection, and what became of it.
struct Exchange {
  Connection& connection;
  bool is_last = false;  // client or server want no other request on this connection

  Request request{};
  std::function<void(bool)> on_end{};
  bool answered = false;    // by the handler: the status is not the library's doing
  bool must_close = false;  // what is left of the request was not read, or the end ends the body
  bool is_http_1_0 = false;
  bool is_gzip = false;  // the body, and not undone by the library
};

class HttpLibrary {
 public:
  virtual ~HttpLibrary() = default;

  // Binds and listens as `options` say: the port, or -1.
  virtual int bind() = 0;
  virtual int listener() const = 0;

  // False: the answer could not be written whole. Called on any thread, on many at once.
  virtual bool serve_one(Exchange& exchange) = 0;
};

// Both must outlive it.
std::unique_ptr<HttpLibrary> make_http_library(const ServerOptions& options,
                                               RequestHandler& handler);

}  // namespace tgi::http
