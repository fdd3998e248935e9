#include "cmd/http/sse.h"

#include <functional>

#include "base/error.h"

namespace tgi::http {

void EventWriter::write(std::string_view bytes) {
  if (!body_.write(bytes)) throw ClientGone();
}

void EventWriter::send(const ipc::OrderedJson& event) {
  send_text(dump_json(event));
}

void EventWriter::send_text(std::string_view text) {
  buffer_.assign(framing_.before);
  buffer_ += text;
  buffer_ += framing_.after;
  write(buffer_);
}

void EventWriter::send_named(std::string_view name, const ipc::OrderedJson& event) {
  buffer_.assign("event: ");
  buffer_ += name;
  buffer_ += "\ndata: ";
  buffer_ += dump_json(event);
  buffer_ += "\n\n";
  write(buffer_);
}

void EventWriter::keep_alive() {
  if (!framing_.keep_alive.empty()) write(framing_.keep_alive);
}

Generation::Event next_event(Generation& generation, EventWriter& events) {
  for (;;) {
    if (auto event = generation.next(kKeepAliveMs)) return std::move(*event);
    events.keep_alive();
  }
}

Response event_stream(const Scope& scope,
                      const StreamFraming& framing,
                      int64_t num_prompt_characters) {
  const std::string& compute_type = scope.options().compute_type;
  return {.status = 200,
          .headers = {{"Cache-Control", "no-cache"},
                      {"x-compute-type", compute_type},
                      {"x-compute-characters", std::to_string(num_prompt_characters)},
                      {"x-accel-buffering", "no"}},
          .content_type = std::string(framing.content_type)};
}

bool run_stream(Scope& scope,
                const std::function<void()>& body,
                const std::function<void(const ApiError&)>& on_error) {
  try {
    try {
      body();
    } catch (const ApiError& error) {
      scope.failed(error);
      scope.give_back_permits();
      on_error(in_terms(error, scope.terms()));
    } catch (const std::exception& error) {
      const ApiError internal(500, "generation", std::string("internal error: ") + error.what());
      scope.failed(internal);
      scope.give_back_permits();
      on_error(internal);
    }
  } catch (const ClientGone&) {
    scope.client_left();
    return false;
  }
  return true;
}

}  // namespace tgi::http
