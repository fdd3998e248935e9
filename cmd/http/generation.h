// The daemon's answers to one HTTP request: one exchange per prompt, their events as one sequence.
// Belongs to the request's thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cmd/http/service.h"
#include "ipc/client.h"

namespace tgi::http {

// The HTTP client is gone: nobody is to be told anything.
class ClientGone {};

class Generation {
 public:
  // Asks the daemon for all of them at once. Throws ApiError and ClientGone, as next() does.
  Generation(std::shared_ptr<Scope> scope, std::vector<ipc::GenerateRequest> asked);

  struct Event {
    size_t prompt = 0;  // which of `asked`
    ipc::Reply reply;   // accepted, token or done
  };

  // The next event of any prompt, or nothing when `timeout_ms` (-1: no limit) is up. REQUIRES: not
  // all prompts are done. What it learns it puts into the scope's record.
  std::optional<Event> next(int timeout_ms);

  // Summed over the prompts that have been accepted.
  int64_t num_prompt_characters() const { return num_prompt_characters_; }

  bool is_done() const { return num_done_ == exchanges_.size(); }

  // For callers that poll fds() for input themselves: after begin_round(), what has arrived by
  // then, event by event, without waiting.
  void begin_round();
  std::optional<Event> try_next();
  std::vector<int> fds() const;  // of the prompts that are not done

  // Runs to the end without streaming.
  std::vector<ipc::DoneEvent> wait();

  // Throws what the daemon says before it takes the requests; returns when it has taken them all.
  // The events that came meanwhile are kept for next().
  void wait_until_accepted();

 private:
  std::optional<Event> receive(int timeout_ms);
  std::optional<Event> poll_all(int timeout_ms);
  std::optional<Event> take(std::optional<Event> event);
  void note(const ipc::Reply& reply);

  template <typename Ask>
  auto guarded(Ask ask);

  const std::shared_ptr<Scope> scope_;
  std::vector<std::unique_ptr<ipc::Exchange>> exchanges_;  // null: done
  std::vector<Event> kept_;
  size_t next_kept_ = 0;
  size_t num_done_ = 0;
  size_t num_accepted_ = 0;
  int64_t num_prompt_characters_ = 0;
  size_t turn_ = 0;          // whose events are looked for first
  size_t next_to_read_ = 0;  // of this round
  bool started_ = false;
};

// 200 with what a generation gave, and the headers that tell its times.
Response generated_response(const Scope& scope,
                            const Generation& generation,
                            const ipc::OrderedJson& body);

}  // namespace tgi::http
