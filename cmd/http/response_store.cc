#include "cmd/http/response_store.h"

#include <unordered_set>
#include <utility>

#include "cmd/http/api_error.h"

namespace tgi::http {
namespace {

// Together: what several of them share counts once.
class Size {
 public:
  void add(const StoredResponse& response) {
    add(response.answer);
    for (const StoredItemsPtr& turn : response.turns) add(turn);
    if (response.events != nullptr) num_bytes_ += response.events->num_bytes();
  }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  void add(const StoredItemsPtr& items) {
    if (!seen_.insert(items.get()).second) return;
    num_bytes_ += static_cast<int64_t>(items->json().size());
  }

  std::unordered_set<const StoredItems*> seen_;
  int64_t num_bytes_ = 0;
};

int64_t size_of(const StoredResponse& response) {
  Size size;
  size.add(response);
  return size.num_bytes();
}

}  // namespace

StoredItems::StoredItems(std::string json, std::shared_ptr<std::atomic<int64_t>> num_bytes)
    : json_(std::move(json)), num_bytes_(std::move(num_bytes)) {
  *num_bytes_ += static_cast<int64_t>(json_.size());
}

StoredItems::~StoredItems() {
  *num_bytes_ -= static_cast<int64_t>(json_.size());
}

ResponseStore::ResponseStore(int64_t max_responses, int64_t max_bytes)
    : max_responses_(max_responses), max_bytes_(max_bytes) {}

StoredItemsPtr ResponseStore::make_items(const OrderedJson& items) const {
  return std::make_shared<const StoredItems>(dump_json(items), num_bytes_);
}

std::shared_ptr<EventLog> ResponseStore::make_events() const {
  return std::make_shared<EventLog>(num_bytes_);
}

ResponseStore::Put ResponseStore::put(StoredResponse response) {
  auto entry = std::make_shared<const StoredResponse>(std::move(response));
  const std::string id = entry->id;
  const std::lock_guard lock(mutex_);
  if (const Put room = look_for_room(*entry); room != Put::kKept) return room;
  entries_.push_front(std::move(entry));
  positions_[id] = entries_.begin();
  trim();
  return positions_.contains(id) ? Put::kKept : Put::kNoRoom;
}

void ResponseStore::settle(StoredResponse response) {
  auto entry = std::make_shared<const StoredResponse>(std::move(response));
  const std::lock_guard lock(mutex_);
  const auto it = positions_.find(entry->id);
  if (it == positions_.end()) return;
  it->second->swap(entry);
  entry.reset();
  if (size_of(**it->second) > max_bytes_) remove(it->second);  // and not all the others before it
  trim();
}

// Whether it can stay when all go that may: told before any of them has gone.
ResponseStore::Put ResponseStore::look_for_room(const StoredResponse& response) const {
  int64_t num = 1;
  Size size;
  size.add(response);
  if (size.num_bytes() > max_bytes_) return Put::kTooLarge;
  for (const StoredResponsePtr& entry : entries_) {
    if (!entry->is_running) continue;
    num += 1;
    size.add(*entry);
  }
  return num <= max_responses_ && size.num_bytes() <= max_bytes_ ? Put::kKept : Put::kNoRoom;
}

ResponseStore::Entries::iterator ResponseStore::remove(Entries::iterator it) {
  positions_.erase((*it)->id);
  return entries_.erase(it);
}

// What requests still use is freed by the last of them.
void ResponseStore::trim() {
  const auto is_over = [&] {
    return static_cast<int64_t>(entries_.size()) > max_responses_ ||
           num_bytes_->load() > max_bytes_;
  };
  for (auto it = entries_.end(); it != entries_.begin() && is_over();) {
    --it;
    if (!(*it)->is_running) it = remove(it);
  }
}

StoredResponsePtr ResponseStore::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto it = positions_.find(id);
  if (it == positions_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return entries_.front();
}

bool ResponseStore::erase(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto it = positions_.find(id);
  if (it == positions_.end()) return false;
  entries_.erase(it->second);
  positions_.erase(it);
  return true;
}

size_t ResponseStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::optional<OrderedJson> ResponseStore::find_item(const std::string& id) {
  const std::string mark = "\"id\":" + dump_json(id);
  std::vector<StoredResponsePtr> entries;
  {
    const std::lock_guard lock(mutex_);
    entries.assign(entries_.begin(), entries_.end());
  }
  for (const StoredResponsePtr& entry : entries) {
    // The turns before its own two are those of other answers.
    for (size_t i = entry->turns.size(); i + 2 > entry->turns.size() && i > 0; --i) {
      const std::string& json = entry->turns[i - 1]->json();
      if (json.find(mark) == std::string::npos) continue;
      OrderedJson items = OrderedJson::parse(json);
      for (OrderedJson& item : items) {
        if (item.value("id", OrderedJson()) == OrderedJson(id)) return std::move(item);
      }
    }
  }
  return std::nullopt;
}

}  // namespace tgi::http
