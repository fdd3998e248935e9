#include "cmd/http/responses_api.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/http/info_api.h"
#include "cmd/http/responses_background.h"
#include "cmd/http/responses_events.h"
#include "cmd/http/stream_pump.h"

namespace tgi::http {
namespace {

void keep(Scope& scope, const ResponsesAsk& ask, const OrderedJson& answer) {
  if (!ask.is_stored) return;
  ResponseStore& store = *scope.service().responses;
  store.put(to_be_kept(store, turns_asked(store, ask), answer["id"].get<std::string>(), answer));
}

Response whole_response(Scope& scope, Generation& generation, const ResponsesAsk& ask) {
  const ResponseObject object(scope, ask);
  const OrderedJson answer = whole_answer(scope, generation, ask, object);
  keep(scope, ask, answer);
  return generated_response(scope, generation, answer);
}

std::shared_ptr<Generation> ask_for_response(const std::shared_ptr<Scope>& scope,
                                             const ResponsesBody& body,
                                             const ResponsesAsk& ask) {
  const auto generation_of = [&](ipc::GenerateRequest request) {
    std::vector<ipc::GenerateRequest> asked = {std::move(request)};
    choose_by_model(*scope, body, asked);
    auto generation = std::make_shared<Generation>(scope, std::move(asked));
    generation->wait_until_accepted();
    return generation;
  };
  try {
    return generation_of(ask.request);
  } catch (const ApiError& error) {
    if (!ask.may_be_shortened || error.type() != "validation") throw;
    std::optional<ipc::GenerateRequest> shorter = shortened(
        ask, scope->options(),
        [&](const ipc::GenerateRequest& request) { return count_tokens(*scope, request); });
    if (!shorter) throw;
    return generation_of(std::move(*shorter));
  }
}

}  // namespace

Response create_response(std::shared_ptr<Scope> scope, const ResponsesBody& body) {
  scope->set_terms(responses_terms());
  scope->record().stream = body.stream;
  scope->begin_generation(1);
  const ResponsesAsk ask = read_responses_ask(body, scope->options(), scope->service().responses);
  if (ask.is_background) {
    return begin_in_background(scope, ask, [&](const std::shared_ptr<Scope>& apart) {
      return ask_for_response(apart, body, ask);
    });
  }
  const std::shared_ptr<Generation> generation = ask_for_response(scope, body, ask);
  if (!body.stream) return whole_response(*scope, *generation, ask);
  const auto told = std::make_shared<ResponseEvents>(
      scope, ask, [scope, ask](const OrderedJson& answer) { keep(*scope, ask, answer); });
  return stream_response(
      {.scope = scope,
       .start = [generation] { return generation; },
       .on_event = [told](Generation::Event& event,
                          EventWriter& events) { told->on_event(event, events); },
       .on_end = [](EventWriter&) {},
       .on_error = [told](const ApiError& error,
                          EventWriter& events) { told->on_error(error, events); }},
      generation->num_prompt_characters());
}

Response count_response_tokens(Scope& scope, const ResponsesBody& body) {
  scope.set_terms(responses_terms());
  std::vector<ipc::GenerateRequest> asked(1);
  choose_by_model(scope, body, asked);  // a model that is not here is refused here too
  // Where nothing is asked yet: what instructions, tools and the conversation before take.
  ResponsesBody counted = body;
  if (!counted.input) counted.input = OrderedJson::array();
  const ResponsesAsk ask = read_responses_ask(counted, scope.options(), scope.service().responses);
  return json_response(200, {{"object", "response.input_tokens"},
                             {"input_tokens", count_tokens(scope, ask.request)}});
}

Response refuse_compact(std::shared_ptr<Scope>, const Request&) {
  throw ApiError(422, "validation",
                 "compaction is not supported: no conversation is made into something that models "
                 "read and clients can't. Ask for a summary and go on with it, or give "
                 "`\"truncation\": \"auto\"`, by which the oldest turns are left out",
                 "unsupported_feature");
}

}  // namespace tgi::http
