// Streams and events of the emulated runtime. Work waits in its stream until somebody needs it, so
// that a host that looks at a result too early sees that, as does a stream that forgot to wait for
// another.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/cuda_emulation/block_runner.h"
#include "tests/cuda_emulation/runtime_state.h"

struct CUstream_st {};
struct CUevent_st {};

namespace tgi::cuda_emulation {

std::shared_ptr<Stream> find_stream(cudaStream_t stream) {
  RuntimeState& state = runtime();
  if (stream == nullptr) return state.devices[static_cast<size_t>(current_device())].legacy;
  const auto found = state.streams.find(stream);
  return found == state.streams.end() ? nullptr : found->second;
}

Point end_of(const std::shared_ptr<Stream>& stream) {
  return {stream, stream->num_added()};
}
bool reached(const Point& point) {
  return !point.stream || point.stream->num_done >= point.sequence;
}

// Nothing is held while waiting for another stream: two streams may wait for one another's points
// in turns, and two host threads may run them.
void run_until(Lock& lock, Point point) {
  RuntimeState& state = runtime();
  while (!reached(point)) {
    Stream& stream = *point.stream;
    if (stream.busy) {
      state.changed.wait(lock);
      continue;
    }
    Work& next = stream.waiting.front();
    if (!reached(next.after)) {
      run_until(lock, next.after);
      continue;
    }
    stream.busy = true;
    const Task task = std::move(next.task);
    const std::shared_ptr<EarlyKernel> begun = std::exchange(stream.begun, nullptr);
    const Task following = stream.waiting.size() > 1 ? stream.waiting[1].task : Task{};
    lock.unlock();
    std::shared_ptr<EarlyKernel> next_begun = begin_early(task, &following);
    run_task(task, begun);
    lock.lock();
    stream.busy = false;
    stream.begun = std::move(next_begun);
    stream.waiting.pop_front();
    ++stream.num_done;
    state.changed.notify_all();
  }
}

void try_run_stream(cudaStream_t handle) {
  Lock lock(runtime().mutex);
  const auto stream = find_stream(handle);
  if (!stream || stream->busy || stream->capture) return;
  run_until(lock, end_of(stream));
}

void abandon_work(Lock& lock) {
  RuntimeState& state = runtime();
  std::vector<std::shared_ptr<Stream>> all;
  for (const Device& device : state.devices) all.push_back(device.legacy);
  for (const auto& [handle, stream] : state.streams) all.push_back(stream);
  for (const auto& stream : all) {
    state.changed.wait(lock, [&] { return !stream->busy; });
    stream->begun = nullptr;  // runs to its end
    stream->num_done += stream->waiting.size();
    stream->waiting.clear();
  }
  state.changed.notify_all();
}

void run_device(Lock& lock, int device) {
  RuntimeState& state = runtime();
  std::vector<Point> ends{end_of(state.devices[static_cast<size_t>(device)].legacy)};
  for (const auto& [handle, stream] : state.streams) {
    if (stream->device == device) ends.push_back(end_of(stream));
  }
  for (const Point& end : ends) run_until(lock, end);
}

cudaError_t add_work(Lock& lock, const std::shared_ptr<Stream>& stream, std::function<void()> run) {
  return add_task(lock, stream, {.run = std::move(run), .kernel = nullptr});
}

cudaError_t add_task(Lock& lock, const std::shared_ptr<Stream>& stream, Task task) {
  RuntimeState& state = runtime();
  if (stream->capture) {
    if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    stream->capture->nodes.push_back(std::move(task));
    ++stream->num_captured;
    return cudaSuccess;
  }
  const std::shared_ptr<Stream>& legacy = state.devices[static_cast<size_t>(stream->device)].legacy;
  if (stream == legacy) {
    for (const auto& [handle, other] : state.streams) {
      if (other->device != stream->device || !other->blocking) continue;
      if (other->capture) {
        other->capture->invalid = true;
        return cudaErrorStreamCaptureImplicit;
      }
      if (!reached(end_of(other))) legacy->waiting.push_back({{}, end_of(other)});
    }
  } else if (stream->blocking && !reached(end_of(legacy))) {
    stream->waiting.push_back({{}, end_of(legacy)});
  }
  stream->waiting.push_back({std::move(task), {}});
  if (!state.deferred) run_until(lock, end_of(stream));
  return cudaSuccess;
}

cudaError_t launch_kernel(const cudaLaunchConfig_t& config,
                          const void* kernel,
                          std::function<void()> body) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const auto stream = find_stream(config.stream);
  if (!stream || stream->device != current_device()) {
    return Call::end(cudaErrorInvalidResourceHandle);
  }
  KernelLaunch launch{kernel,          std::move(body),         config.gridDim,
                      config.blockDim, config.dynamicSmemBytes, false};
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization) {
      launch.overlaps_previous = config.attrs[i].val.programmaticStreamSerializationAllowed != 0;
    }
  }
  const auto allowed = runtime().allowed_shared_bytes.find(kernel);
  const size_t shared_limit = allowed == runtime().allowed_shared_bytes.end()
                                  ? kDefaultSharedBytes
                                  : std::max(kDefaultSharedBytes, allowed->second);
  check_launch(launch, shared_limit);
  // Loads the kernel, which a capture does not allow.
  const bool is_first = runtime().loaded_kernels.insert({stream->device, kernel}).second;
  if (is_first && stream->capture) {
    runtime().loaded_kernels.erase({stream->device, kernel});
    stream->capture->invalid = true;
    return Call::end(cudaErrorStreamCaptureUnsupported);
  }
  return Call::end(
      add_task(call.lock(), stream,
               {.run = nullptr, .kernel = std::make_shared<KernelLaunch>(std::move(launch))}));
}

}  // namespace tgi::cuda_emulation

using namespace tgi::cuda_emulation;

cudaError_t cudaDeviceSynchronize() {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  for (const auto& capture : runtime().captures) {
    const auto origin = capture->origin.lock();
    if (!origin || origin->device != current_device()) continue;
    capture->invalid = true;
    return Call::end(cudaErrorStreamCaptureUnsupported);
  }
  run_device(call.lock(), current_device());
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* out) {
  return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  auto stream = std::make_shared<Stream>();
  stream->device = current_device();
  stream->blocking = (flags & cudaStreamNonBlocking) == 0;
  *out = new CUstream_st;
  runtime().streams[*out] = std::move(stream);
  return cudaSuccess;
}
// The handle goes even where the device is lost, but then its work stays undone.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Call call;
  const auto found = runtime().streams.find(handle);
  if (found == runtime().streams.end()) return Call::end(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Stream> stream = found->second;
  if (call.error() == cudaSuccess) run_until(call.lock(), end_of(stream));
  if (stream->capture) stream->capture->invalid = true;
  runtime().streams.erase(handle);
  delete handle;
  return Call::end(call.error());
}

namespace {
// The stream for a call that a capture of it forbids.
cudaError_t stream_to_look_at(const Call& call, cudaStream_t handle, std::shared_ptr<Stream>& out) {
  if (call.error() != cudaSuccess) return call.error();
  out = find_stream(handle);
  if (!out) return cudaErrorInvalidResourceHandle;
  if (out->capture) {
    out->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

cudaError_t find_event(const Call& call, cudaEvent_t handle, std::shared_ptr<EventState>& out) {
  if (call.error() != cudaSuccess) return call.error();
  const auto found = runtime().events.find(handle);
  if (found == runtime().events.end()) return cudaErrorInvalidResourceHandle;
  out = found->second;
  return cudaSuccess;
}
}  // namespace

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Call call;
  std::shared_ptr<Stream> stream;
  const cudaError_t error = stream_to_look_at(call, handle, stream);
  if (error != cudaSuccess) return Call::end(error);
  run_until(call.lock(), end_of(stream));
  return cudaSuccess;
}
// Says first that work is not ready, so that pollers poll; it is the next time.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Call call;
  std::shared_ptr<Stream> stream;
  const cudaError_t error = stream_to_look_at(call, handle, stream);
  if (error != cudaSuccess) return Call::end(error);
  if (reached(end_of(stream))) return cudaSuccess;
  run_until(call.lock(), end_of(stream));
  return cudaErrorNotReady;
}

namespace {
// The stream joins the capture; the one where the event was recorded may have been waited for.
cudaError_t wait_in_capture(Stream& stream, const EventState& event) {
  if (stream.capture && stream.capture != event.capture) return cudaErrorStreamCaptureMerge;
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.num_captured = 1;
    stream.num_joined = 0;
  }
  if (const auto other = event.captured_stream.lock(); other && other.get() != &stream) {
    other->num_joined = std::max(other->num_joined, event.num_captured);
  }
  return cudaSuccess;
}
}  // namespace

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
  Call call;
  std::shared_ptr<EventState> event;
  const cudaError_t error = find_event(call, event_handle, event);
  if (error != cudaSuccess) return Call::end(error);
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    if (event->capture->ended) return Call::end(cudaErrorCapturedEvent);
    return Call::end(wait_in_capture(*stream, *event));
  }
  if (stream->capture && event->num_records > 0) {
    stream->capture->invalid = true;
    return Call::end(cudaErrorStreamCaptureIsolation);
  }
  if (!reached(event->recorded)) stream->waiting.push_back({{}, event->recorded});
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, void (*function)(void*), void* data) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  return Call::end(add_work(call.lock(), stream, [function, data] { function(data); }));
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return cudaEventCreateWithFlags(out, cudaEventDefault);
}
cudaError_t cudaEventCreate(cudaEvent_t* out, unsigned flags) {
  return cudaEventCreateWithFlags(out, flags);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  auto event = std::make_shared<EventState>();
  event->timing = (flags & cudaEventDisableTiming) == 0;
  *out = new CUevent_st;
  runtime().events[*out] = std::move(event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  Call call;
  if (runtime().events.erase(handle) == 0) return Call::end(cudaErrorInvalidResourceHandle);
  delete handle;
  return Call::end(call.error());
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  Call call;
  std::shared_ptr<EventState> event;
  cudaError_t error = find_event(call, handle, event);
  if (error != cudaSuccess) return Call::end(error);
  const auto stream = find_stream(stream_handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  event->capture = stream->capture;
  if (stream->capture) {
    event->captured_stream = stream;
    event->num_captured = stream->num_captured;
    return cudaSuccess;
  }
  const uint64_t record = ++event->num_records;
  event->has_time = false;
  error = add_work(call.lock(), stream, [event, record] {
    const Lock lock(runtime().mutex);
    if (event->num_records != record) return;
    event->time = std::chrono::steady_clock::now();
    event->has_time = true;
  });
  event->recorded = end_of(stream);
  return Call::end(error);
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Call call;
  std::shared_ptr<EventState> event;
  const cudaError_t error = find_event(call, handle, event);
  if (error != cudaSuccess) return Call::end(error);
  if (event->capture) return Call::end(cudaErrorCapturedEvent);
  run_until(call.lock(), event->recorded);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Call call;
  std::shared_ptr<EventState> event;
  const cudaError_t error = find_event(call, handle, event);
  if (error != cudaSuccess) return Call::end(error);
  if (event->capture) return Call::end(cudaErrorCapturedEvent);
  if (reached(event->recorded)) return cudaSuccess;
  run_until(call.lock(), event->recorded);
  return cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* out_ms, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  Call call;
  std::shared_ptr<EventState> start, end;
  cudaError_t error = find_event(call, start_handle, start);
  if (error == cudaSuccess) error = find_event(call, end_handle, end);
  if (error != cudaSuccess) return Call::end(error);
  if (!start->timing || !end->timing || start->num_records == 0 || end->num_records == 0) {
    return Call::end(cudaErrorInvalidResourceHandle);
  }
  if (!start->has_time || !end->has_time) return cudaErrorNotReady;
  *out_ms = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}
