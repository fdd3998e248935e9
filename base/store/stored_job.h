// A job of this process in the store, from its beginning to its end. What it does is more important
// than its record: trouble with the store is told once, to `on_trouble`, and the job goes on.
// Belongs to one thread.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "base/store/store.h"

namespace tgi {

class StoredJob {
 public:
  using OnTrouble = std::function<void(const std::string&)>;

  // total 0: not known yet.
  StoredJob(const std::string& kind,
            const std::string& subject,
            int64_t total,
            OnTrouble on_trouble = {});
  // Without an end before: "failed" while an exception unwinds, else "done".
  ~StoredJob();
  StoredJob(const StoredJob&) = delete;
  StoredJob& operator=(const StoredJob&) = delete;

  // As often as you like: it is written twice a second.
  void update(const std::string& phase, int64_t done, int64_t total);

  // "done", "failed" or "cancelled", by the error; the message is the error's.
  void end(const std::exception_ptr& error = nullptr);

 private:
  template <typename Action>
  void try_to(const Action& action);

  std::optional<Store> store_;  // nothing: there was trouble
  OnTrouble on_trouble_;
  int64_t id_ = 0;
  bool has_ended_ = false;
  const int num_exceptions_ = std::uncaught_exceptions();
  std::chrono::steady_clock::time_point written_at_{};
};

}  // namespace tgi
