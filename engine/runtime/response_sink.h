// Where the events of one request go. The engine owns the sink and calls it on its own thread (but
// on_accepted, first of all, on the thread that submits); calls must be quick and must not throw.
// After on_done or on_error nothing more comes.
#pragma once

#include <vector>

#include "base/error.h"
#include "ipc/protocol.h"

namespace tgi {

class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual void on_accepted(const ipc::AcceptedEvent& event) = 0;  // with announce
  virtual void on_token(ipc::TokenEvent&& event) = 0;
  // The hidden states that were wanted, one for each of Request::pooled; on_done follows.
  virtual void on_pooled(std::vector<std::vector<float>>&& /*pooled*/) {}
  virtual void on_done(ipc::DoneEvent&& event) = 0;
  virtual void on_error(const Error& error) = 0;
};

}  // namespace tgi
