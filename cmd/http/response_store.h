// The answers of /v1/responses that clients may come back to, in memory. When there are too many,
// the one that was used longest ago goes, but none whose answer is still made. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cmd/http/event_log.h"
#include "ipc/protocol.h"

namespace tgi::http {

using ipc::OrderedJson;

// Items of a conversation, as a JSON array: what one request gave, or the answer to it. Shared by
// the answers that go on from there, and counted once.
class StoredItems {
 public:
  StoredItems(std::string json, std::shared_ptr<std::atomic<int64_t>> num_bytes);
  ~StoredItems();
  StoredItems(const StoredItems&) = delete;
  StoredItems& operator=(const StoredItems&) = delete;

  const std::string& json() const { return json_; }

 private:
  const std::string json_;
  const std::shared_ptr<std::atomic<int64_t>> num_bytes_;
};
using StoredItemsPtr = std::shared_ptr<const StoredItems>;

struct StoredResponse {
  std::string id;
  StoredItemsPtr answer;  // the response object itself, in an array
  // The conversation up to it and with it: the last are its own items.
  std::vector<StoredItemsPtr> turns;
  std::shared_ptr<EventLog> events{};  // of one that is streamed in the background; else null
  bool is_running = false;             // in the background: the answer is not there yet
};
using StoredResponsePtr = std::shared_ptr<const StoredResponse>;

class ResponseStore {
 public:
  // Both are limits; with 0 of one nothing is kept.
  ResponseStore(int64_t max_responses, int64_t max_bytes);

  bool keeps() const { return max_responses_ > 0 && max_bytes_ > 0; }

  // For put(): counted as soon as it is made.
  StoredItemsPtr make_items(const OrderedJson& items) const;
  // As these, for its events.
  std::shared_ptr<EventLog> make_events() const;
  // Of the rest nothing is kept: larger than all may be together; or those that are running take
  // what there is.
  enum class Put { kKept, kTooLarge, kNoRoom };
  Put put(StoredResponse response);
  // In the place of the one of that id; where that is not there any more, nothing is kept.
  void settle(StoredResponse response);

  StoredResponsePtr find(const std::string& id);  // null: not there
  bool erase(const std::string& id);

  // An item of that id, of any answer that is kept.
  std::optional<OrderedJson> find_item(const std::string& id);

  int64_t num_bytes() const { return num_bytes_->load(); }
  size_t size() const;

 private:
  using Entries = std::list<StoredResponsePtr>;
  // REQUIRE, all three: the mutex is held.
  Put look_for_room(const StoredResponse& response) const;
  Entries::iterator remove(Entries::iterator it);
  void trim();

  const int64_t max_responses_;
  const int64_t max_bytes_;
  const std::shared_ptr<std::atomic<int64_t>> num_bytes_ =
      std::make_shared<std::atomic<int64_t>>(0);
  mutable std::mutex mutex_;
  Entries entries_;                                               // the newest in front; guarded
  std::unordered_map<std::string, Entries::iterator> positions_;  // by mutex_, as this
};

}  // namespace tgi::http
