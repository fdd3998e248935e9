// CudaDevice: memory, weights and state. Steps are in cuda_step.cc, the ops in cuda_ops.cc.
#include "cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "cuda/architectures.h"
#include "cuda/device_state.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/latent.h"
#include "cuda/kernels/packed.h"
#include "cuda/launch.h"
#include "cuda/state_layers.h"

namespace tgi::cuda {
namespace {

// Left free beside the plan: the spare KV block, graphs, kMaxUnpackedBytes, what the libraries
// take for themselves.
constexpr int64_t kReserveBytes = int64_t{512} << 20;
// Room for the prompts with penalties and the biases that a step tells the GPU; more wait for it.
constexpr size_t kListBytes = size_t{1} << 20;
// Adapters that come and go between two steps; more wait for the stream.
constexpr size_t kPlaceChangeBytes = 256 * sizeof(LowRankAdapter);
// Of each matrix, as it may be an expert's.
constexpr int64_t kTableBytes = sizeof(ExpertPointers);

cudaDeviceProp properties_of(int index) {
  int num_devices = 0;
  check(cudaGetDeviceCount(&num_devices), "counting GPUs");
  if (index >= num_devices) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format(
            "rank {} needs a GPU of its own, but this machine shows {}; lower --num-shard or "
            "see CUDA_VISIBLE_DEVICES",
            index, num_devices));
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "asking a GPU what it is");
  check_architecture(properties.name, properties.major, properties.minor);
  return properties;
}

std::string combination_of(const cudaDeviceProp& properties, const std::string& library) {
  int driver = 0;
  (void)cudaDriverGetVersion(&driver);
  return fmt::format("{}, {} multiprocessors, driver {}, cuBLASLt {}, alignments, kinds",
                     properties.name, properties.multiProcessorCount, driver, library);
}

std::string tuning_path(const DeviceOptions& options, const cudaDeviceProp& properties) {
  if (options.cache_dir.empty()) return "";
  std::string name;
  for (const char* c = properties.name; *c != '\0'; ++c)
    name += std::isalnum(static_cast<unsigned char>(*c)) != 0 ? *c : '-';
  return fmt::format("{}/cuda/matmul-{}.jsonl", options.cache_dir, name);
}

// Makes the GPU current before members are made.
int use(int index) {
  use_device(index);
  return index;
}

void check_dtype(DType dtype) {
  if (dtype == DType::kBF16 || dtype == DType::kF16) return;
  throw Error(
      Code::kUnsupported,
      fmt::format(
          "the cuda backend computes in bf16 or f16, the model is {}; give --dtype bf16, or "
          "--backend cpu",
          dtype_name(dtype)));
}

}  // namespace

static void check_heads(const HeadLayout& heads, const SlotLayout& slots) {
  if (slots.latent_dim > 0) {
    if (slots.has_alibi) {
      throw Error(Code::kUnsupported,
                  "the cuda backend's latent attention has no ALiBi, which this model's positions "
                  "are; use --backend cpu");
    }
    return check_latents(heads.num_heads, heads.padded_dim(), slots.latent_dim);
  }
  for (const KvHeads& kind : heads.kinds) {
    check_attention(padded_dim(kind), heads.num_heads, kind.num_kv_heads);
  }
}

void check_cache_dtype(DType dtype, DType kv_cache) {
  if (kv_cache == dtype || kv_cache == DType::kF8E4M3) return;
  throw Error(
      Code::kUnsupported,
      fmt::format("a KV cache of {} beside weights of {}: the cuda backend takes the weights' type "
                  "or f8e4m3",
                  dtype_name(kv_cache), dtype_name(dtype)));
}

CudaDevice::CudaDevice(int index, const DeviceOptions& options)
    : index_(use((properties_of(index), index))),
      options_(options),
      tuner_(tuning_path(options, properties_of(index)),
             combination_of(properties_of(index), cublas_.version())) {
  check_dtype(options.dtype);
  const cudaDeviceProp properties = properties_of(index);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
  cublas_workspace_ = allocate_device(kCublasWorkspaceBytes, "workspace of cuBLASLt");
  const auto share =
      static_cast<int64_t>(static_cast<double>(free_bytes) * options.memory_fraction);
  info_ = {.backend = "cuda",
           .isa = fmt::format("sm_{}{}", properties.major, properties.minor),
           .description = properties.name,
           .num_threads = 0,
           .memory_bytes = std::max<int64_t>(share - kReserveBytes, 0),
           .activation_dtype = options.dtype,
           .makes_random_matrices = true,
           .keeps = {.stored_integers = true, .stored_f8 = true},
           .num_steps_in_flight = 2,
           .max_running = 256,
           .max_batch_tokens = 2048,
           .max_logit_bias = kMaxLogitBias,
           .max_top_tokens = kMaxTopTokens,
           .takes_adapters = true,
           .reports_rows = true};
  plan_options_.num_blocks = decode_grid_blocks(
      properties.multiProcessorCount, static_cast<int64_t>(properties.sharedMemPerMultiprocessor));
  plan_options_.deterministic = options.deterministic;
  shared_bytes_ = static_cast<int64_t>(properties.sharedMemPerMultiprocessor);
  prepare_attention_kernels(shared_bytes_);
  prepare_expert_kernels();
  prepare_packed_kernels();
  prepare_latent_attention();
  prepare_head_matmul();
}

CudaDevice::~CudaDevice() {
  (void)cudaSetDevice(index_);
  (void)cudaStreamSynchronize(stream_.get());
}

Buffer CudaDevice::allocate(size_t size_bytes, std::string_view purpose) {
#ifndef NDEBUG
  TGI_CHECK(!serves_);  // steady state allocates nothing
#endif
  use_device(index_);
  return allocate_device(size_bytes, purpose);
}

void CudaDevice::copy_to_device(void* to, const void* from, size_t size_bytes) {
  use_device(index_);
  check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyHostToDevice, stream_.get()),
        "copying to the GPU");
  stream_.synchronize();
}

void CudaDevice::copy_to_host(void* to, const void* from, size_t size_bytes) {
  use_device(index_);
  check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDeviceToHost, stream_.get()),
        "copying from the GPU");
  stream_.synchronize();
}

int64_t CudaDevice::matrix_bytes(std::string_view format,
                                 const MatrixStorage& storage,
                                 int64_t rows,
                                 int64_t cols) const {
  return cuda_matrix_bytes(format, storage, rows, cols) + kTableBytes;
}

std::unique_ptr<Matrix> CudaDevice::make_matrix(std::span<const HostWeight> pieces,
                                                const MatrixStorage& storage) {
  use_device(index_);
  if (!loader_) loader_.emplace(stream_.get());
  std::unique_ptr<CudaMatrix> matrix = loader_->load(pieces, storage);
  matrix->size_bytes += kTableBytes;
  matrix->alive = std::make_shared<int>(0);
  if (matrix->packed && !options_.deterministic) make_room_for_unpacked(*matrix->packed);
  matrices_.push_back({.alive = matrix->alive,
                       .launch = {.x = {},
                                  .w = matrix->memory.data(),
                                  .w_stride = matrix->stride,
                                  .outputs = matrix->rows,
                                  .bias = nullptr,
                                  .out = {}},
                       .cols = matrix->cols,
                       .dtype = matrix->dtype,
                       .packed = matrix->packed});
  return matrix;
}

void CudaDevice::make_room_for_unpacked(const PackedShape& shape) {
  const auto wanted =
      static_cast<size_t>(std::max(unpacked_bytes(shape), packed_partials_bytes(shape)));
  if (wanted <= unpacked_.size_bytes() || wanted > kMaxUnpackedBytes) return;
  unpacked_ = {};
  unpacked_ = allocate_device(wanted, "weights as plain numbers");
}

int32_t CudaDevice::add_rope(const RopeSpec& rope) {
  use_device(index_);
  int32_t first_column = 0;
  for (const Rope& other : ropes_) first_column += other.table.rotary_dim;
  if (first_column + rope.rotary_dim > kMaxRotaryColumns) {
    throw Error(
        Code::kUnsupported,
        fmt::format("rotary dimensions of all kinds of layers: the cuda backend holds {}, got {}",
                    kMaxRotaryColumns, first_column + rope.rotary_dim));
  }
  Rope& added = ropes_.emplace_back();
  const size_t size_bytes = rope.inv_freq.size() * sizeof(float);
  added.inv_freq = allocate_device(size_bytes, "frequencies of a rotary embedding");
  copy_to_device(added.inv_freq.data(), rope.inv_freq.data(), size_bytes);
  added.table = {.first_column = first_column,
                 .rotary_dim = rope.rotary_dim,
                 .dynamic_original_positions = rope.dynamic_original_positions,
                 .dynamic_factor = rope.dynamic_factor,
                 .base = rope.base,
                 .attention_factor = rope.attention_factor,
                 .interleaved = rope.interleaved,
                 .inv_freq = static_cast<const float*>(added.inv_freq.data())};
  return static_cast<int32_t>(ropes_.size()) - 1;
}

int64_t CudaDevice::kv_bytes(const KvLayout& layout) const {
  return KvCache::bytes(layout);
}

int64_t CudaDevice::slot_bytes(const SlotLayout& layout) const {
  const HeadLayout heads =
      HeadLayout::of(layout, {.num_kv_heads = layout.num_kv_heads, .head_dim = layout.head_dim});
  // Here, so that what can't be computed is refused before weights are read.
  check_state(layout.state);
  check_heads(heads, layout);
  AttentionPlanOptions plan = plan_options_;
  plan.num_kv_heads = heads.common_kv_heads();
  int64_t total = 0;
  for (const int64_t size : state_sizes(layout, plan, heads)) total += (size + 255) / 256 * 256;
  return total;
}

void CudaDevice::allocate_state(const KvLayout& kv, const SlotLayout& slots) {
  use_device(index_);
  TGI_CHECK(slots.block_size == kv.block_size);
  heads_ = HeadLayout::of(slots, {.num_kv_heads = kv.num_kv_heads, .head_dim = kv.head_dim});
  check_heads(heads_, slots);
  check_cache_dtype(options_.dtype, kv.dtype);
  loader_.reset();
  stream_.synchronize();
  graphs_.clear();
  slot_layout_ = slots;
  kv_ = kv;
  plan_options_.num_kv_heads = heads_.common_kv_heads();
  capacity_ = StepCapacity::of(slots, plan_options_);

  // Before the cache takes what is left: what is measured on is given back.
  if (!options_.cache_dir.empty() && !options_.deterministic)
    measure_matmuls(slots.max_batch_tokens);

  // One block more than there are: padding rows write to it.
  KvLayout with_spare = kv;
  ++with_spare.num_blocks;
  cache_ = {};
  cache_ = KvCache(with_spare);

  const StateSizes sizes = state_sizes(slots, plan_options_, heads_);
  state_.clear();
  for (const int64_t size : sizes) {
    state_.push_back(allocate_device(static_cast<size_t>(size), "slot table and workspace"));
  }
  const auto part = [this](StatePart which) { return state_[static_cast<size_t>(which)].data(); };
  step_ = StepArrays::at(part(StatePart::kStep), capacity_);
  slots_ = {.num_slots = slots.num_slots,
            .max_blocks = slots.max_blocks_per_slot,
            .vocab_size = slots.vocab_size,
            .max_bias = kMaxLogitBias,
            .num_groups = slots.num_groups,
            .block_tables = static_cast<int32_t*>(part(StatePart::kBlockTables)),
            .last_tokens = static_cast<int32_t*>(part(StatePart::kLastTokens)),
            .sampling = static_cast<SlotSampling*>(part(StatePart::kSampling)),
            .bias = static_cast<TokenBiasEntry*>(part(StatePart::kBias)),
            .token_counts = static_cast<uint16_t*>(part(StatePart::kTokenCounts))};
  token_ids_ = static_cast<int32_t*>(part(StatePart::kTokenIds));
  start_ids_ = static_cast<int32_t*>(part(StatePart::kStartIds));
  cos_sin_ = static_cast<float*>(part(StatePart::kCosSin));
  padded_heads_ = static_cast<std::byte*>(part(StatePart::kPaddedHeads));
  partials_ = static_cast<float*>(part(StatePart::kPartials));
  layer_states_ = static_cast<float*>(part(StatePart::kLayerStates));
  logits_ = static_cast<float*>(part(StatePart::kLogits));
  sample_workspace_ = part(StatePart::kSampleWorkspace);
  masks_ = static_cast<uint32_t*>(part(StatePart::kMasks));
  sampled_ = static_cast<SampledRow*>(part(StatePart::kSampled));
  reported_ = static_cast<float*>(part(StatePart::kReported));
  pooled_ = static_cast<float*>(part(StatePart::kPooled));
  slot_adapters_.clear();
  has_seen_adapters_ = false;
  if (slots.max_adapters > 0) {
    slots_.adapters = static_cast<int32_t*>(part(StatePart::kSlotAdapters));
    adapter_places_ = static_cast<LowRankAdapter*>(part(StatePart::kAdapterPlaces));
    shrunk_rows_ = static_cast<float*>(part(StatePart::kShrunkRows));
    place_changes_ = PinnedStaging(kPlaceChangeBytes);
    slot_adapters_.assign(static_cast<size_t>(slots.num_slots), 0);
  }
  expert_memory_ = {.scores = static_cast<float*>(part(StatePart::kExpertScores)),
                    .experts = static_cast<int32_t*>(part(StatePart::kChosenExperts)),
                    .weights = static_cast<float*>(part(StatePart::kChosenWeights)),
                    .rows = static_cast<int32_t*>(part(StatePart::kChosenRows)),
                    .tokens = static_cast<int32_t*>(part(StatePart::kRoutedTokens)),
                    .tiles = static_cast<ExpertTile*>(part(StatePart::kExpertTiles))};
  expert_tables_.reset(slots.num_experts > 0 ? matrices_.size() : 0);

  for (InFlight& each : in_flight_) {
    each.staging = allocate_pinned(step_.size_bytes, "what a step tells the GPU");
    each.arrays = StepArrays::at(each.staging.data(), capacity_);
    each.results =
        allocate_pinned(static_cast<size_t>(sizes[static_cast<size_t>(StatePart::kSampled)]),
                        "what a step gives back");
    each.masks = allocate_pinned(static_cast<size_t>(sizes[static_cast<size_t>(StatePart::kMasks)]),
                                 "which tokens a step may draw");
    each.reported =
        allocate_pinned(static_cast<size_t>(sizes[static_cast<size_t>(StatePart::kReported)]),
                        "what a step reports of its rows");
    each.pooled =
        allocate_pinned(static_cast<size_t>(sizes[static_cast<size_t>(StatePart::kPooled)]),
                        "hidden states that a step gives back");
    each.lists = PinnedStaging(kListBytes);
    each.ticket = 0;
  }
  start_nobody();
  stream_.synchronize();
}

}  // namespace tgi::cuda
