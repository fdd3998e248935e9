#include "cmd/http/responses_background.h"

#include <string>
#include <utility>
#include <vector>

#include "cmd/http/background_runs.h"
#include "cmd/http/responses_events.h"

namespace tgi::http {
namespace {

// Not found later under the id that is told now, it must not be begun.
void check_is_kept(ResponseStore::Put put) {
  if (put == ResponseStore::Put::kTooLarge) {
    throw ApiError(422, "validation",
                   "Input validation error: `background`: needs an answer that is kept, and this "
                   "conversation is larger than all that are kept may be: raise "
                   "--max-stored-bytes, or leave `background` out");
  }
  if (put == ResponseStore::Put::kNoRoom) {
    throw ApiError(429, "overloaded",
                   "the answers that are made in the background now take all of "
                   "--max-stored-responses or --max-stored-bytes: try again when one has ended, or "
                   "leave `background` out");
  }
}

// One answer: what it is made from, and where it goes.
struct Run {
  std::shared_ptr<Scope> scope;  // of its own: it counts and is logged as a request when it ends
  std::shared_ptr<Generation> generation;
  ResponsesAsk ask;
  std::vector<StoredItemsPtr> asked;
  std::shared_ptr<EventLog> log;  // null: it is not streamed
  ResponseStore* store = nullptr;

  StoredResponse kept(const std::string& id, const OrderedJson& answer) const {
    StoredResponse out = to_be_kept(*store, asked, id, answer);
    out.events = log;
    return out;
  }
};

// Calls `work`, whose errors become what `failed` makes of them; `cancelled`: who held the line let
// it go.
void make_answer(Scope& scope,
                 const std::function<void()>& work,
                 const std::function<void()>& cancelled,
                 const std::function<void(const ApiError&)>& failed) {
  const auto fail = [&](const ApiError& error) {
    scope.failed(error);
    failed(in_terms(error, scope.terms()));
  };
  try {
    work();
  } catch (const ClientGone&) {
    scope.client_left();
    cancelled();
  } catch (const ApiError& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail(ApiError(500, "internal", std::string("internal error: ") + error.what()));
  }
}

void answer_whole(const Run& run, const ResponseObject& object) {
  const auto settle = [&](const OrderedJson& answer) {
    run.store->settle(run.kept(object.id(), answer));
  };
  make_answer(
      *run.scope, [&] { settle(whole_answer(*run.scope, *run.generation, run.ask, object)); },
      [&] { settle(object.without_output("cancelled")); },
      [&](const ApiError& error) { settle(object.failed(OrderedJson::array(), error)); });
}

void answer_in_events(const Run& run, ResponseEvents& told) {
  LogWriter body(*run.log);
  EventWriter events(body, kServerSentEvents);
  const auto settle = [&](const OrderedJson& answer) {
    run.store->settle(run.kept(told.object().id(), answer));
  };
  make_answer(
      *run.scope,
      [&] {
        while (!run.generation->is_done()) {
          Generation::Event event = std::move(*run.generation->next(-1));
          if (run.generation->is_done()) run.scope->give_back_permits();
          told.on_event(event, events);
        }
      },
      [&] { settle(told.object().without_output("cancelled")); },
      [&](const ApiError& error) {
        settle(told.failed(error));
        told.on_error(error, events);
      });
}

// What `work` does is over in any case when this returns.
void run_to_end(const Run& run, const std::string& id, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception&) {
    run.store->erase(id);  // it would be running for ever
    if (run.log != nullptr) run.log->end();
    throw;
  }
  if (run.log != nullptr) run.log->end();
  run.scope->give_back_permits();
  run.scope->end(200, true);
}

}  // namespace

Response begin_in_background(const std::shared_ptr<Scope>& scope,
                             ResponsesAsk ask,
                             const AskDaemon& ask_daemon) {
  BackgroundRuns* const runs = scope->service().background;
  if (runs == nullptr) throw ApiError(501, "unsupported", "nothing runs in the background here");
  BackgroundRuns::Line line = BackgroundRuns::open_line();
  const auto run = std::make_shared<Run>();
  run->scope = std::make_shared<Scope>(*scope, line.watched.get());
  run->generation = ask_daemon(run->scope);
  run->store = scope->service().responses;
  run->asked = turns_asked(*run->store, ask);
  if (ask.is_streamed) run->log = run->store->make_events();
  run->ask = std::move(ask);
  const auto told = std::make_shared<ResponseEvents>(
      run->scope, run->ask, [weak = std::weak_ptr(run)](const OrderedJson& answer) {
        const auto here = weak.lock();
        here->store->settle(here->kept(answer["id"].get<std::string>(), answer));
      });
  const ResponseObject& object = told->object();
  StoredResponse begun = run->kept(object.id(), object.without_output("in_progress"));
  begun.is_running = true;
  check_is_kept(run->store->put(std::move(begun)));
  run->scope->take_generation_of(*scope);
  try {
    runs->start(object.id(), std::move(line), [run, told] {
      run_to_end(*run, told->object().id(), [&] {
        run->log != nullptr ? answer_in_events(*run, *told) : answer_whole(*run, told->object());
      });
    });
  } catch (const std::exception&) {
    scope->take_generation_of(*run->scope);
    run->store->erase(object.id());
    throw;
  }
  if (run->log != nullptr) return follow_events(scope, run->log, 0);
  return json_response(200, object.without_output("queued"));
}

Response follow_events(const std::shared_ptr<Scope>& scope,
                       std::shared_ptr<EventLog> log,
                       size_t first) {
  Response response{.status = 200,
                    .headers = {{"Cache-Control", "no-cache"}, {"x-accel-buffering", "no"}},
                    .content_type = std::string(kServerSentEvents.content_type)};
  response.stream = [scope, log = std::move(log), first](BodyWriter& body) {
    return log->follow(first, scope->peer_fd(), body);
  };
  return response;
}

}  // namespace tgi::http
