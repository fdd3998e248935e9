// Server-sent events as TGI frames them (WHATWG HTML, section 9.2): "data: JSON", an empty line,
// nothing else; a comment when nothing was said for a while. Belongs to the thread of its stream.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cmd/http/generation.h"
#include "cmd/http/message.h"
#include "ipc/protocol.h"

namespace tgi::http {

inline constexpr int kKeepAliveMs = 15'000;

class EventWriter {
 public:
  explicit EventWriter(BodyWriter& body) : body_(body) {}

  // Throw ClientGone.
  void send(const ipc::OrderedJson& event);
  void send_text(std::string_view text);  // "[DONE]"
  // With a line `event: NAME` before it.
  void send_named(std::string_view name, const ipc::OrderedJson& event);
  void keep_alive();

 private:
  void write(std::string_view bytes);

  BodyWriter& body_;
  std::string buffer_;
};

// The next event of a stream; sends comments while none comes.
Generation::Event next_event(Generation& generation, EventWriter& events);

// 200, text/event-stream and its headers.
Response event_stream(const Scope& scope, int64_t num_prompt_characters);

// Runs `body`, which may throw ApiError (put into the record and handed to `on_error`) and
// ClientGone: then it returns false.
bool run_stream(Scope& scope,
                const std::function<void()>& body,
                const std::function<void(const ApiError&)>& on_error);

}  // namespace tgi::http
