// The events of a stream and how they are framed. Server-sent events as TGI has them (WHATWG HTML,
// section 9.2): "data: JSON", an empty line, nothing else; a comment when nothing was said for a
// while. A writer belongs to the thread of its stream.
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

struct StreamFraming {
  std::string_view content_type;
  std::string_view before;  // each event, which is one line
  std::string_view after;
  std::string_view keep_alive;  // "": the framing has nothing that readers pass over
};
inline constexpr StreamFraming kServerSentEvents = {.content_type = "text/event-stream",
                                                    .before = "data: ",
                                                    .after = "\n\n",
                                                    .keep_alive = ":\n\n"};

class EventWriter {
 public:
  EventWriter(BodyWriter& body, const StreamFraming& framing) : body_(body), framing_(framing) {}

  // Throw ClientGone.
  void send(const ipc::OrderedJson& event);
  void send_text(std::string_view text);  // "[DONE]"
  // With a line `event: NAME` before it.
  void send_named(std::string_view name, const ipc::OrderedJson& event);
  void keep_alive();

 private:
  void write(std::string_view bytes);

  BodyWriter& body_;
  const StreamFraming& framing_;
  std::string buffer_;
};

// The next event of a stream; sends comments while none comes.
Generation::Event next_event(Generation& generation, EventWriter& events);

// 200, and the headers of a stream.
Response event_stream(const Scope& scope,
                      const StreamFraming& framing,
                      int64_t num_prompt_characters);

// Runs `body`, which may throw ApiError (put into the record and handed to `on_error`) and
// ClientGone: then it returns false.
bool run_stream(Scope& scope,
                const std::function<void()>& body,
                const std::function<void(const ApiError&)>& on_error);

}  // namespace tgi::http
