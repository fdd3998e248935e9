// The routes of the answers of /v1/responses that are kept.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/http/background_runs.h"
#include "cmd/http/response_store.h"
#include "cmd/http/responses_api.h"
#include "cmd/http/responses_background.h"

namespace tgi::http {
namespace {

constexpr std::string_view kResponsesPath = "/responses/";  // with /v1 before it, or without

std::string id_in(const Request& request) {
  const std::string rest =
      request.path.substr(request.path.find(kResponsesPath) + kResponsesPath.size());
  return rest.substr(0, rest.find('/'));
}

ApiError response_not_found(const std::string& id) {
  return {404, "not_found", fmt::format("Response with id '{}' not found.", id.substr(0, 100))};
}

StoredResponsePtr stored_in(const Scope& scope, const Request& request) {
  const std::string id = id_in(request);
  ResponseStore* const store = scope.service().responses;
  StoredResponsePtr found = store == nullptr ? nullptr : store->find(id);
  if (found == nullptr) throw response_not_found(id);
  return found;
}

[[noreturn]] void refuse_query(const std::string& name, const std::string& problem) {
  throw ApiError(422, "validation",
                 fmt::format("Input validation error: `{}`: {}", name.substr(0, 100), problem), "",
                 name.substr(0, 100));
}

struct Page {
  size_t limit = 20;
  bool newest_first = true;
  std::string after;
};

Page page_of(const Request& request) {
  constexpr size_t kMaxLimit = 100;
  Page out;
  for (const auto& [name, value] : request.query) {
    if (name == "limit") {
      const bool is_number = !value.empty() && value.size() <= 3 &&
                             value.find_first_not_of("0123456789") == std::string::npos;
      out.limit = is_number ? std::stoul(value) : 0;
      if (out.limit < 1 || out.limit > kMaxLimit) {
        refuse_query(name, fmt::format("expected a number from 1 to {}", kMaxLimit));
      }
    } else if (name == "order") {
      if (value != "asc" && value != "desc") refuse_query(name, "expected asc or desc");
      out.newest_first = value == "desc";
    } else if (name == "after") {
      out.after = value;
    } else if (!name.starts_with("include")) {
      refuse_query(name, "unknown parameter, expected one of after, include, limit, order");
    }
  }
  return out;
}

// The number of the event that a stream begins with; nothing: no stream is asked for.
std::optional<size_t> first_event_of(const Request& request) {
  bool is_streamed = false;
  std::optional<size_t> after;
  for (const auto& [name, value] : request.query) {
    if (name == "stream") {
      if (value != "true" && value != "false") refuse_query(name, "expected true or false");
      is_streamed = value == "true";
    } else if (name == "starting_after") {
      constexpr size_t kMostDigits = 9;
      const bool is_number = !value.empty() && value.size() <= kMostDigits &&
                             value.find_first_not_of("0123456789") == std::string::npos;
      if (!is_number) refuse_query(name, "expected the sequence_number of an event");
      after = std::stoul(value);
    } else if (!name.starts_with("include")) {  // what was asked for is in the answer
      refuse_query(name, "unknown parameter, expected one of include, starting_after, stream");
    }
  }
  if (after && !is_streamed) refuse_query("starting_after", "goes with stream=true alone");
  if (!is_streamed) return std::nullopt;
  return after ? *after + 1 : 0;
}

}  // namespace

Response retrieve_response(std::shared_ptr<Scope> scope, const Request& request) {
  const std::optional<size_t> first_event = first_event_of(request);
  const StoredResponsePtr stored = stored_in(*scope, request);
  if (first_event) {
    if (stored->events == nullptr) {
      refuse_query("stream",
                   "only an answer that was asked for with both `background` and `stream` is told "
                   "in events again: leave it out");
    }
    return follow_events(scope, stored->events, *first_event);
  }
  return json_response(200, OrderedJson::parse(stored->answer->json())[0]);
}

Response delete_response(std::shared_ptr<Scope> scope, const Request& request) {
  const std::string id = id_in(request);
  ResponseStore* const store = scope->service().responses;
  const bool is_erased = store != nullptr && store->erase(id);
  // After it is gone: what it comes to is not kept.
  if (is_erased && scope->service().background != nullptr) scope->service().background->cancel(id);
  if (!is_erased) throw response_not_found(id);
  return json_response(200, {{"id", id}, {"object", "response"}, {"deleted", true}});
}

Response list_input_items(std::shared_ptr<Scope> scope, const Request& request) {
  const Page page = page_of(request);
  const StoredResponsePtr stored = stored_in(*scope, request);
  std::vector<OrderedJson> items;
  for (size_t i = 0; i + 1 < stored->turns.size(); ++i) {  // the last turn is the answer
    OrderedJson turn = OrderedJson::parse(stored->turns[i]->json());
    for (OrderedJson& item : turn) items.push_back(std::move(item));
  }
  if (page.newest_first) std::ranges::reverse(items);
  size_t first = 0;
  if (!page.after.empty()) {
    const auto at = std::ranges::find_if(
        items, [&](const OrderedJson& item) { return item["id"] == OrderedJson(page.after); });
    if (at == items.end()) refuse_query("after", "no item of that id");
    first = static_cast<size_t>(at - items.begin()) + 1;
  }
  const size_t end = std::min(items.size(), first + page.limit);
  OrderedJson data = OrderedJson::array();
  for (size_t i = first; i < end; ++i) data.push_back(std::move(items[i]));
  const auto id_at = [&](size_t i) { return data.empty() ? OrderedJson("") : data[i]["id"]; };
  const OrderedJson first_id = id_at(0);
  const OrderedJson last_id = id_at(data.empty() ? 0 : data.size() - 1);
  return json_response(200, {{"object", "list"},
                             {"data", std::move(data)},
                             {"first_id", first_id},
                             {"last_id", last_id},
                             {"has_more", end < items.size()}});
}

Response cancel_response(std::shared_ptr<Scope> scope, const Request& request) {
  const auto is_background = [&](const StoredResponse& stored) {
    return OrderedJson::parse(stored.answer->json())[0]["background"] == OrderedJson(true);
  };
  const StoredResponsePtr stored = stored_in(*scope, request);
  if (!is_background(*stored)) {
    throw ApiError(422, "validation",
                   "Cannot cancel a synchronous response: only what runs in the background can be "
                   "cancelled. To end another one, close its connection.");
  }
  // One that has ended meanwhile is told as it is.
  if (stored->is_running) scope->service().background->cancel(stored->id);
  return json_response(200, OrderedJson::parse(stored_in(*scope, request)->answer->json())[0]);
}

}  // namespace tgi::http
