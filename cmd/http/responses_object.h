// The response object of /v1/responses and its items, and what is kept of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/answer_parts.h"
#include "cmd/http/api_error.h"
#include "cmd/http/generation.h"
#include "cmd/http/response_store.h"
#include "cmd/http/responses_body.h"
#include "cmd/http/service.h"

namespace tgi::http {

// From its beginning to its end. Constant after construction.
class ResponseObject {
 public:
  ResponseObject(const Scope& scope, const ResponsesAsk& ask);

  const std::string& id() const { return id_; }

  // "queued", "in_progress" or "cancelled".
  OrderedJson without_output(const char* status) const {
    return with_status(status, OrderedJson::array());
  }
  OrderedJson ended(OrderedJson output, const ipc::DoneEvent& done) const;
  OrderedJson failed(OrderedJson output, const ApiError& error) const;

 private:
  OrderedJson with_status(const char* status, OrderedJson output) const;

  const std::string id_;
  const int64_t created_at_;
  const OrderedJson told_;
  std::string model_;
};

// Of the item at `index` of an answer that ended so.
const char* status_of_part(const std::vector<AnswerPart>& parts,
                           size_t index,
                           ipc::FinishReason reason);
OrderedJson items_of(const std::vector<AnswerPart>& parts,
                     const std::vector<std::string>& ids,
                     const ResponsesAsk& ask,
                     ipc::FinishReason reason);

// For the record of the request.
std::string_view told_reason(const ipc::DoneEvent& done);

// The conversation up to the answer, and with it, as the store has them.
std::vector<StoredItemsPtr> turns_asked(const ResponseStore& store, const ResponsesAsk& ask);
StoredResponse to_be_kept(const ResponseStore& store,
                          std::vector<StoredItemsPtr> asked,
                          const std::string& id,
                          const OrderedJson& answer);

// Waits for the answer, which no client is told meanwhile. Throws as Generation::next.
OrderedJson whole_answer(Scope& scope,
                         Generation& generation,
                         const ResponsesAsk& ask,
                         const ResponseObject& object);

}  // namespace tgi::http
