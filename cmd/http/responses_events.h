// Tells an answer of /v1/responses as OpenAI's events while it is written.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/responses_object.h"
#include "cmd/http/sse.h"

namespace tgi::http {

// Belongs to one thread at a time. Each event is one write, and their numbers count from 0.
class ResponseEvents final : PartReader {
 public:
  // `keep` gets the answer before its last event is told: who has read that finds it.
  using Keep = std::function<void(const OrderedJson& answer)>;
  ResponseEvents(std::shared_ptr<Scope> scope, ResponsesAsk ask, Keep keep);

  const ResponseObject& object() const { return object_; }

  // Throw as `events`.
  void on_event(Generation::Event& event, EventWriter& events);
  void on_error(const ApiError& error, EventWriter& events);

  // The answer, as far as it came.
  OrderedJson failed(const ApiError& error) const;

 private:
  void start();
  void finish(const ipc::DoneEvent& done);
  OrderedJson told_items() const;
  void begin(size_t index, const AnswerPart& part) override;
  void add(size_t index,
           const AnswerPart& part,
           std::string_view added,
           std::span<const PartToken> tokens) override;
  void end(size_t index, const AnswerPart& part) override;
  OrderedJson item(size_t index, const AnswerPart& part, const char* status) const;
  OrderedJson place(size_t index, const AnswerPart& part) const;
  OrderedJson logprobs_of(std::span<const PartToken> tokens) const;
  void send(const std::string& type, OrderedJson fields);

  const std::shared_ptr<Scope> scope_;
  const ResponsesAsk ask_;
  const Keep keep_;
  const ResponseObject object_;
  PartBuilder builder_;
  std::vector<std::string> ids_;  // of the items
  EventWriter* events_ = nullptr;
  int64_t num_sent_ = 0;
  ipc::FinishReason reason_ = ipc::FinishReason::kEosToken;
  bool is_ending_ = false;
};

}  // namespace tgi::http
