// What the emulated runtime knows: devices, allocations, streams with the work that waits in them,
// captures. One per process; every member is guarded by `mutex`, which is not held while work of a
// stream runs.
#pragma once

#include <cuda_emulation.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/cuda_emulation/early_kernel.h"

namespace tgi::cuda_emulation {

struct Stream;
struct Capture;

// A point in a stream: reached when the work before it has run.
struct Point {
  std::shared_ptr<Stream> stream;  // null: reached
  uint64_t sequence = 0;
};

// A kernel, or something else.
struct Task {
  std::function<void()> run;                   // (optional)
  std::shared_ptr<const KernelLaunch> kernel;  // null: run
};

// Begins the kernel that follows a kernel where it may overlap with it, before that one runs; null
// where there is none.
std::shared_ptr<EarlyKernel> begin_early(const Task& task, const Task* following);
// `begun`: the task itself, where it was begun early.
void run_task(const Task& task, const std::shared_ptr<EarlyKernel>& begun);
void run_tasks(const std::vector<Task>& tasks);

// What a stream does next: a task or, with `after`, wait for another stream.
struct Work {
  Task task;
  Point after;
};

struct Stream {
  int device = 0;
  bool blocking = true;  // waits for the legacy stream and it for this one
  std::deque<Work> waiting;
  uint64_t num_done = 0;               // of all that ever came
  bool busy = false;                   // some host thread runs its next work
  std::shared_ptr<EarlyKernel> begun;  // that next work, where it has begun early
  std::shared_ptr<Capture> capture;    // null: not capturing
  // In a stream that joined a capture: what it got there, and how much of that others waited for.
  uint64_t num_captured = 0, num_joined = 0;

  uint64_t num_added() const { return num_done + waiting.size(); }
};

struct Capture {
  std::weak_ptr<Stream> origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool invalid = false;
  bool ended = false;
  std::vector<Task> nodes;  // in an order that is right for all its streams
};

struct EventState {
  bool timing = true;
  Point recorded;
  std::shared_ptr<Capture> capture;       // where it was recorded last, null outside of captures
  std::weak_ptr<Stream> captured_stream;  // and after how much of it
  uint64_t num_captured = 0;
  uint64_t num_records = 0;  // a later record makes the time of an earlier one void
  bool has_time = false;
  std::chrono::steady_clock::time_point time;
};

struct Device {
  std::shared_ptr<Stream> legacy;  // stream 0
  size_t used_bytes = 0;
};

enum class MemoryKind { kDevice, kPinned, kRegistered };
struct Allocation {
  size_t bytes;
  MemoryKind kind;
  int device;
};

struct RuntimeState {
  std::mutex mutex;
  std::condition_variable changed;  // a stream has got further

  bool deferred = true;
  size_t total_bytes = 0;
  int num_multiprocessors = 4;
  int compute_capability[2] = {9, 0};
  std::vector<Device> devices;

  std::map<uintptr_t, Allocation> allocations;                   // by first byte
  std::unordered_map<const void*, size_t> allowed_shared_bytes;  // by kernel
  std::set<std::pair<int, const void*>> loaded_kernels;          // launched once: device, kernel
  std::unordered_map<cudaStream_t, std::shared_ptr<Stream>> streams;
  std::unordered_map<cudaEvent_t, std::shared_ptr<EventState>> events;
  std::unordered_set<cudaGraph_t> graphs;
  std::unordered_set<cudaGraphExec_t> graph_execs;
  std::vector<std::shared_ptr<Capture>> captures;  // that go on

  uint64_t num_pageable_copies = 0;

  // Faults to come.
  int allocations_before_failure = 0;
  int failing_allocations = 0;
  bool losing = false;
  int64_t calls_before_loss = 0;
  cudaError_t loss = cudaSuccess;
};

RuntimeState& runtime();  // never destroyed: a plugin's threads may outlive static objects

using Lock = std::unique_lock<std::mutex>;

int current_device();

// The beginning of every call of the runtime: the lock, and whether devices are lost.
class Call {
 public:
  Call();
  // Notes the error for cudaGetLastError. NotReady is none.
  static cudaError_t end(cudaError_t error);

  cudaError_t error() const { return error_; }
  Lock& lock() { return lock_; }

 private:
  Lock lock_;
  cudaError_t error_ = cudaSuccess;
};

// The stream of a handle; null when there is none such. REQUIRES: the lock.
std::shared_ptr<Stream> find_stream(cudaStream_t stream);

// For calls that a capture forbids; it is invalid after that.
cudaError_t refuse_in_capture();

// To the end of the stream, or into the graph that it captures. Runs it when work is not deferred.
cudaError_t add_work(Lock& lock, const std::shared_ptr<Stream>& stream, std::function<void()> run);
cudaError_t add_task(Lock& lock, const std::shared_ptr<Stream>& stream, Task task);

// Runs what has to run until `point` is reached.
void run_until(Lock& lock, Point point);
Point end_of(const std::shared_ptr<Stream>& stream);

// Runs what waits in the stream, unless another thread does so, or it captures. May be called by
// work of another stream; without the lock.
void try_run_stream(cudaStream_t stream);
bool reached(const Point& point);

// What a lost device does: nothing more. Waits for what other host threads are about to run.
void abandon_work(Lock& lock);

// All streams of a device.
void run_device(Lock& lock, int device);

// The allocation that holds all of these bytes, null when there is none.
const Allocation* find_allocation(const void* memory, size_t bytes);

}  // namespace tgi::cuda_emulation
