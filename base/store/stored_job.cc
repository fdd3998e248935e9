#include "base/store/stored_job.h"

#include "base/error.h"

namespace tgi {
namespace {

constexpr std::chrono::milliseconds kWriteEvery{500};

}  // namespace

template <typename Action>
void StoredJob::try_to(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    store_.reset();
    if (on_trouble_) on_trouble_(error.what());
  }
}

StoredJob::StoredJob(const std::string& kind,
                     const std::string& subject,
                     int64_t total,
                     OnTrouble on_trouble)
    : on_trouble_(std::move(on_trouble)) {
  try_to([&] {
    store_ = Store::open();
    id_ = store_->begin_job(kind, subject, total);
  });
}

StoredJob::~StoredJob() {
  if (has_ended_ || !store_) return;
  const bool is_unwinding = std::uncaught_exceptions() > num_exceptions_;
  try_to([&] { store_->end_job(id_, is_unwinding ? "failed" : "done", ""); });
}

void StoredJob::update(const std::string& phase, int64_t done, int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!store_ || now - written_at_ < kWriteEvery) return;
  written_at_ = now;
  try_to([&] { store_->update_job(id_, phase, done, total); });
}

void StoredJob::end(const std::exception_ptr& error) {
  has_ended_ = true;
  if (!store_) return;
  std::string state = "done";
  std::string message;
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Error& why) {
    state = why.code() == Code::kCancelled ? "cancelled" : "failed";
    message = why.what();
  } catch (const std::exception& why) {
    state = "failed";
    message = why.what();
  }
  try_to([&] { store_->end_job(id_, state, message); });
}

}  // namespace tgi
