// See nccl_stub.h.
#include "tests/cuda/nccl_stub.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "cuda/nccl_library.h"
#include "engine/tensor/half.h"
#include "tests/cuda_emulation/runtime_state.h"

namespace tgi::cuda {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 3s;  // of an abort that a captured step makes wait

// What a rank gives to an all-reduce and takes from it.
struct Part {
  void* data = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
};

struct Round {
  std::vector<Part> parts;
  int num_arrived = 0;
  bool done = false;
};

struct State;

// The ranks that share an id. All members are guarded by stub().mutex.
struct Group {
  int num_ranks = 0;
  std::map<uint64_t, Round> rounds;  // by number
  std::map<int, State*> ranks;       // that were not aborted
};

struct State {
  std::shared_ptr<Group> group;
  int rank = 0;
  std::optional<cudaStream_t> stream;  // of its last all-reduce
  bool is_wanted = false;              // by another rank, which waits for it
  std::thread runner;
  int polls_left = 0;
  bool aborted = false;
  int64_t num_calls = 0;
  uint64_t num_rounds = 0;
  std::vector<std::function<void()>>
      pending;  // goes to the stream when it is no longer in progress
  std::shared_ptr<int> captured = std::make_shared<int>(0);  // held by captured work
};

struct Stub {
  std::mutex mutex;
  std::condition_variable changed;
  NcclFaults faults;
  NcclCounts counts;
  std::map<uint64_t, std::weak_ptr<Group>> groups;  // by id
  uint64_t last_id = 0;
};
Stub& stub() {
  static Stub* const out = new Stub;  // work may outlive static objects
  return *out;
}

thread_local int group_depth = 0;

}  // namespace
}  // namespace tgi::cuda

struct ncclComm {
  std::shared_ptr<tgi::cuda::State> state;
};

namespace tgi::cuda {
namespace {

std::set<ncclComm_t>& alive() {
  static auto* const out = new std::set<ncclComm_t>;
  return *out;
}

float read(const Part& part, size_t i) {
  if (part.type == ncclFloat32) return static_cast<const float*>(part.data)[i];
  const uint16_t bits = static_cast<const uint16_t*>(part.data)[i];
  return part.type == ncclFloat16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

void write(const Part& part, size_t i, float value) {
  if (part.type == ncclFloat32) {
    static_cast<float*>(part.data)[i] = value;
  } else {
    static_cast<uint16_t*>(part.data)[i] =
        part.type == ncclFloat16 ? f32_to_f16(value) : f32_to_bf16(value);
  }
}

void sum(const Round& round) {
  for (size_t i = 0; i < round.parts.front().count; ++i) {
    float total = 0.0F;
    for (const Part& part : round.parts) total += read(part, i);
    for (const Part& part : round.parts) write(part, i, total);
  }
}

// Runs what waits in a rank's stream when another rank waits for it, as a GPU would by itself: the
// host thread that looks after it may be late, or look after all ranks. A thread of its own,
// because what waits may hold the next all-reduces too: a thread that ran them on behalf of another
// rank, in the middle of that one's work, would wait there for itself.
void run_when_wanted(const std::shared_ptr<State>& state) {
  std::unique_lock lock(stub().mutex);
  while (true) {
    stub().changed.wait(lock, [&] { return state->is_wanted || state->aborted; });
    if (state->aborted) return;
    state->is_wanted = false;
    if (!state->stream) continue;
    const cudaStream_t stream = *state->stream;
    lock.unlock();
    cuda_emulation::try_run_stream(stream);
    lock.lock();
  }
}

void ask_others(const Group& group, int rank) {
  for (const auto& [other, state] : group.ranks) {
    if (other != rank) state->is_wanted = true;
  }
  stub().changed.notify_all();
}

// On the GPU: meets the other ranks.
void run_all_reduce(const std::shared_ptr<State>& state, const Part& part) {
  std::unique_lock lock(stub().mutex);
  const uint64_t number = state->num_rounds++;
  const auto faults = [&] { return stub().faults; };
  if (faults().hanging_rank == state->rank &&
      static_cast<int64_t>(number) >= faults().good_all_reduces) {
    stub().changed.wait(lock, [&] { return state->aborted; });
    return;
  }
  Round& round = state->group->rounds[number];
  round.parts.resize(static_cast<size_t>(state->group->num_ranks));
  round.parts[static_cast<size_t>(state->rank)] = part;
  if (++round.num_arrived == state->group->num_ranks) {
    sum(round);
    round.done = true;
    ++stub().counts.num_all_reduces;
    stub().changed.notify_all();
    return;
  }
  const auto is_over = [&] { return round.done || state->aborted; };
  while (!is_over()) {
    ask_others(*state->group, state->rank);
    stub().changed.wait_for(lock, 5ms, is_over);
  }
}

// Counts a call that the library does not allow. REQUIRES: the lock.
bool may_call(ncclComm_t comm) {
  const bool may = alive().contains(comm) && !comm->state->aborted && comm->state->polls_left == 0;
  if (!may) ++stub().counts.num_misused;
  return may;
}

const char* get_error_string(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "an error of the stub";
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  const std::lock_guard lock(stub().mutex);
  *id = {};
  const uint64_t number = ++stub().last_id;
  std::copy_n(reinterpret_cast<const char*>(&number), sizeof number, id->internal);
  return ncclSuccess;
}

ncclResult_t init(ncclComm_t* out, int num_ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;
  const std::lock_guard lock(stub().mutex);
  uint64_t number = 0;
  std::copy_n(id.internal, sizeof number, reinterpret_cast<char*>(&number));
  auto group = stub().groups[number].lock();
  if (group == nullptr) {
    group = std::make_shared<Group>();
    group->num_ranks = num_ranks;
    stub().groups[number] = group;
  }
  *out = new ncclComm{std::make_shared<State>()};
  (*out)->state->group = group;
  (*out)->state->rank = rank;
  (*out)->state->polls_left = stub().faults.polls_in_progress;
  (*out)->state->runner = std::thread(run_when_wanted, (*out)->state);
  group->ranks[rank] = (*out)->state.get();
  alive().insert(*out);
  ++stub().counts.num_alive;
  return ncclInProgress;
}

ncclResult_t get_async_error(ncclComm_t comm, ncclResult_t* out) {
  const std::lock_guard lock(stub().mutex);
  if (!alive().contains(comm)) {
    ++stub().counts.num_misused;
    return ncclInvalidArgument;
  }
  State& state = *comm->state;
  const NcclFaults& faults = stub().faults;
  *out = faults.failing_rank == state.rank ? faults.error : ncclSuccess;
  if (*out != ncclSuccess) return ncclSuccess;
  const bool is_stuck =
      faults.stuck_rank == state.rank && state.num_calls > faults.good_all_reduces;
  if (is_stuck || (state.polls_left > 0 && --state.polls_left > 0)) {
    *out = ncclInProgress;
    return ncclSuccess;
  }
  for (const auto& each : state.pending) each();
  state.pending.clear();
  return ncclSuccess;
}

ncclResult_t all_reduce(const void* from,
                        void* to,
                        size_t count,
                        ncclDataType_t type,
                        ncclRedOp_t,
                        ncclComm_t comm,
                        cudaStream_t stream) {
  if (from != to) return ncclInvalidArgument;
  const std::lock_guard lock(stub().mutex);
  if (!may_call(comm)) return ncclInvalidUsage;
  State& state = *comm->state;
  ++state.num_calls;
  state.stream = stream;
  state.polls_left = stub().faults.polls_in_progress;
  state.pending.push_back([shared = comm->state, part = Part{to, count, type}, stream] {
    cuda_emulation::Call call;
    const auto on = cuda_emulation::find_stream(stream);
    const auto held = on->capture ? shared->captured : nullptr;
    (void)cuda_emulation::add_work(call.lock(), on,
                                   [shared, part, held] { run_all_reduce(shared, part); });
  });
  return ncclInProgress;
}

ncclResult_t abort(ncclComm_t comm) {
  std::unique_lock lock(stub().mutex);
  if (!alive().contains(comm)) {
    ++stub().counts.num_misused;
    return ncclInvalidArgument;
  }
  const std::shared_ptr<State> state = comm->state;
  state->aborted = true;
  state->pending.clear();  // each holds the state
  state->group->ranks.erase(state->rank);
  alive().erase(comm);
  --stub().counts.num_alive;
  stub().changed.notify_all();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (state->captured.use_count() > 1) {
    if (std::chrono::steady_clock::now() > end) {
      ++stub().counts.num_hung;  // the library would wait for ever
      break;
    }
    stub().changed.wait_for(lock, 1ms);
  }
  delete comm;
  lock.unlock();
  state->runner.join();
  return ncclSuccess;
}

ncclResult_t group_start() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t group_end() {
  return --group_depth < 0 ? ncclInvalidUsage : ncclInProgress;
}

}  // namespace

void set_nccl_faults(const NcclFaults& faults) {
  const std::lock_guard lock(stub().mutex);
  stub().faults = faults;
}

NcclCounts nccl_counts() {
  const std::lock_guard lock(stub().mutex);
  return stub().counts;
}

const NcclLibrary& nccl() {
  static const NcclLibrary library = {.get_error_string = get_error_string,
                                      .get_unique_id = get_unique_id,
                                      .comm_init_rank_config = init,
                                      .comm_get_async_error = get_async_error,
                                      .comm_abort = abort,
                                      .all_reduce = all_reduce,
                                      .group_start = group_start,
                                      .group_end = group_end};
  return library;
}

}  // namespace tgi::cuda
