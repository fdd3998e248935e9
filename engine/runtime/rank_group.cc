#include "engine/runtime/rank_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace tgi {
namespace {

int min_steps_in_flight(const std::vector<std::unique_ptr<WorkerGroup>>& workers) {
  int steps = workers.front()->max_steps_in_flight();
  for (const auto& worker : workers) steps = std::min(steps, worker->max_steps_in_flight());
  return steps;
}

// One for each rank.
class RankAdapters final : public Adapter {
 public:
  std::vector<std::unique_ptr<Adapter>> of_rank;
};

}  // namespace

RankGroup::RankGroup(std::unique_ptr<RankThreads> threads,
                     std::vector<std::unique_ptr<WorkerGroup>> workers)
    : threads_(std::move(threads)),
      workers_(std::move(workers)),
      max_steps_in_flight_(min_steps_in_flight(workers_)),
      tickets_(static_cast<size_t>(max_steps_in_flight_) * workers_.size()),
      results_(workers_.size()) {
  TGI_CHECK(static_cast<int>(workers_.size()) == threads_->num_ranks());
  threads_->set_on_failure([this](int rank, const std::string& reason) {
    for (const auto& worker : workers_) worker->abort(rank, reason);
  });
}

RankGroup::~RankGroup() {
  threads_->run([this](int rank) { workers_[static_cast<size_t>(rank)].reset(); });
}

// Nothing more can be run after a failure: the ranks have come apart.
template <typename Task>
void RankGroup::run(Task&& task) {
  if (failure_ != nullptr) throw Error(*failure_);
  try {
    threads_->run(task);
  } catch (const Error& error) {
    failure_ = std::make_unique<Error>(Code::kDeviceLost, error.what());
    throw Error(*failure_);
  }
}

Ticket& RankGroup::ticket_of(Ticket ticket, int rank) {
  const auto step = static_cast<size_t>(ticket) % static_cast<size_t>(max_steps_in_flight_);
  return tickets_[step * workers_.size() + static_cast<size_t>(rank)];
}

Ticket RankGroup::submit(const Batch& batch) {
  const Ticket ticket = ++last_submitted_;
  run([&](int rank) {
    ticket_of(ticket, rank) = workers_[static_cast<size_t>(rank)]->submit(batch);
  });
  return ticket;
}

void RankGroup::sample(Ticket ticket, const TokenMasks& masks) {
  TGI_CHECK(ticket == last_submitted_);
  run([&](int rank) {
    workers_[static_cast<size_t>(rank)]->sample(ticket_of(ticket, rank), masks);
  });
}

const StepResult& RankGroup::wait(Ticket ticket) {
  TGI_CHECK(ticket <= last_submitted_ &&
            ticket + static_cast<Ticket>(max_steps_in_flight_) > last_submitted_);
  run([&](int rank) {
    const auto index = static_cast<size_t>(rank);
    results_[index] = &workers_[index]->wait(ticket_of(ticket, rank));
  });
  const std::string disagreement = find_disagreement();
  if (!disagreement.empty()) {
    failure_ = std::make_unique<Error>(Code::kDeviceLost, disagreement);
    throw Error(*failure_);
  }
  return *results_.front();
}

bool RankGroup::prepare_step() {
  std::atomic<bool> is_more = false;
  run([&](int rank) {
    if (workers_[static_cast<size_t>(rank)]->prepare_step()) is_more = true;
  });
  return is_more;
}

int64_t RankGroup::adapter_bytes(const AdapterParts& parts) const {
  int64_t most = 0;
  for (const auto& worker : workers_) most = std::max(most, worker->adapter_bytes(parts));
  return most;
}

std::unique_ptr<Adapter> RankGroup::make_adapter(const AdapterParts& parts) {
  auto out = std::make_unique<RankAdapters>();
  for (const auto& worker : workers_) {
    out->of_rank.push_back(worker->make_adapter(parts));
    out->size_bytes += out->of_rank.back()->size_bytes;
  }
  return out;
}

void RankGroup::set_adapter(int32_t place, const Adapter* adapter) {
  const auto* const all = static_cast<const RankAdapters*>(adapter);
  run([&](int rank) {
    const auto index = static_cast<size_t>(rank);
    workers_[index]->set_adapter(place, all == nullptr ? nullptr : all->of_rank[index].get());
  });
}

std::string RankGroup::find_disagreement() const {
  const std::vector<SampledToken>& first = results_.front()->sampled;
  const auto is_same = [](const SampledToken& a, const SampledToken& b) {
    return a.token.id == b.token.id;
  };
  for (size_t rank = 1; rank < results_.size(); ++rank) {
    const std::vector<SampledToken>& other = results_[rank]->sampled;
    const auto [mine, theirs] =
        std::mismatch(first.begin(), first.end(), other.begin(), other.end(), is_same);
    if (mine == first.end() && theirs == other.end()) continue;
    if (mine == first.end() || theirs == other.end()) {
      return fmt::format("ranks draw different numbers of tokens: rank 0 drew {}, rank {} drew {}",
                         first.size(), rank, other.size());
    }
    return fmt::format(
        "ranks draw different tokens: rank 0 drew {}, rank {} drew {}, in row {} of {} of the step",
        mine->token.id, rank, theirs->token.id, mine - first.begin(), first.size());
  }
  return {};
}

}  // namespace tgi
