#include "engine/runtime/load_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/state_layout.h"
#include "engine/model/tensor_table.h"

namespace tgi {
namespace {

constexpr int32_t kMaxPromptOfStep = 8192;  // tokens, when nobody says: activations take memory

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(Code::kCancelled, "the load of the model was stopped");
}

// Ends the load of a rank when it is to stop or another one has failed: minutes of reading would be
// for nothing.
class StoppableCheckpoint final : public Checkpoint {
 public:
  StoppableCheckpoint(std::unique_ptr<Checkpoint> checkpoint,
                      const RankThreads& threads,
                      const std::stop_token& stop)
      : checkpoint_(std::move(checkpoint)), threads_(threads), stop_(stop) {}

  const StoredTensor* find(std::string_view name) const override { return checkpoint_->find(name); }
  std::vector<std::string_view> names() const override { return checkpoint_->names(); }
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    check();
    return checkpoint_->bytes(tensor);
  }
  std::optional<RandomKey> random_key(const StoredTensor& tensor) const override {
    check();
    return checkpoint_->random_key(tensor);
  }
  void release(const StoredTensor& tensor) const override { checkpoint_->release(tensor); }

 private:
  void check() const {
    if (threads_.has_failed()) throw Error(Code::kCancelled, "another rank has failed");
    check_stop(stop_);
  }

  const std::unique_ptr<Checkpoint> checkpoint_;
  const RankThreads& threads_;
  const std::stop_token& stop_;
};

class RankLoader {
 public:
  RankLoader(Backend& backend,
             const LoadedConfig& model,
             const OpenCheckpoint& open,
             const LoadRanksOptions& options)
      : backend_(backend),
        model_(model),
        open_(open),
        options_(options),
        num_ranks_(static_cast<size_t>(options.num_ranks)),
        threads_(std::make_unique<RankThreads>(options.num_ranks)),
        devices_(num_ranks_),
        weights_(num_ranks_) {}

  // A device is dropped by the thread that made it.
  ~RankLoader() {
    if (threads_ == nullptr) return;
    threads_->run([this](int rank) {
      weights_[static_cast<size_t>(rank)] = {};
      devices_[static_cast<size_t>(rank)].reset();
    });
  }
  RankLoader(const RankLoader&) = delete;
  RankLoader& operator=(const RankLoader&) = delete;

  int32_t check(std::span<const GivenBack> given_back) {
    try {
      threads_->run([this](int rank) { make_device(rank); });
    } catch (const Error& error) {
      if (error.code() != Code::kOutOfMemory) throw;
      log_warn("whether it fits will show only when the present model is unloaded",
               {{"reason", error.what()}});
      return 0;
    }
    plan(given_back);
    threads_->run([this](int rank) {
      for (const RopeSpec& rope : model_.config.ropes) {
        devices_[static_cast<size_t>(rank)]->add_rope(rope);
      }
    });
    return out_.plan.num_blocks;
  }

  LoadedRanks load() {
    check_stop(options_.stop);
    threads_->run([this](int rank) { make_device(rank); });
    plan({});
    log_plan();
    threads_->run([this](int rank) { load_weights_of(rank); });
    check_stop(options_.stop);
    take_facts();
    make_workers();
    return std::move(out_);
  }

 private:
  LoadWeightsOptions weights_options(size_t rank) const {
    LoadWeightsOptions out = options_.weights;
    out.rank = static_cast<int>(rank);
    out.world_size = options_.num_ranks;
    out.takes_adapters = num_adapters() > 0;
    return out;
  }

  int32_t num_adapters() const {
    return tgi::num_adapters(devices_.front()->info(), options_.adapter_memory_fraction,
                             options_.max_active_adapters);
  }

  StateSize state_size(size_t rank, int32_t num_blocks, int32_t max_total_tokens) const {
    return {
        .num_ranks = options_.num_ranks,
        .num_blocks = num_blocks,
        .block_size = options_.block_size,
        .kv_dtype = options_.kv_dtype,
        .num_slots = out_.max_running,
        .max_blocks_per_slot = (max_total_tokens + options_.block_size - 1) / options_.block_size,
        .max_batch_tokens = out_.max_batch_tokens,
        .max_adapters = num_adapters(),
        .max_drafts = options_.max_drafts,
        .reported_cols = rank == 0 ? reported_rows().cols(model_.config.hidden_size) : 0,
        .pools_rows = rank == 0 && options_.drafter != nullptr && options_.drafter->reads_hidden()};
  }

  ReportedRows reported_rows() const {
    return options_.drafter == nullptr ? ReportedRows{} : options_.drafter->reported_rows();
  }

  void make_device(int rank) {
    DeviceOptions device = options_.device;
    device.rank = rank;
    device.world_size = options_.num_ranks;
    if (device.num_threads > 0) {
      device.num_threads = std::max(1, device.num_threads / options_.num_ranks);
    }
    devices_[static_cast<size_t>(rank)] = backend_.make_device(device);
  }

  bool ranks_share_memory() const { return tgi::ranks_share_memory(backend_); }

  // A backend whose ranks share a device divides what comes free there.
  int64_t given_back_to(size_t rank, std::span<const GivenBack> given_back) const {
    int64_t out = 0;
    for (const GivenBack& each : given_back) {
      if (ranks_share_memory()) {
        out += each.bytes / options_.num_ranks;
      } else if (rank < static_cast<size_t>(each.num_ranks)) {
        out += each.bytes / each.num_ranks;
      }
    }
    return out;
  }

  int64_t promised_of_each() const {
    return ranks_share_memory() ? options_.promised_bytes / options_.num_ranks : 0;
  }

  // When nobody says.
  int32_t running_of(const DeviceInfo& first, std::span<const GivenBack> given_back) const {
    const int64_t of_sequence = state_bytes(recurrent_layout(model_.config), 1);
    if (of_sequence == 0) return first.max_running;
    int32_t out = first.max_running;
    for (size_t rank = 0; rank < num_ranks_; ++rank) {
      const int64_t left = devices_[rank]->info().memory_bytes + given_back_to(rank, given_back) -
                           plan_weight_bytes(model_, *devices_[rank], weights_options(rank));
      out = std::min(out, automatic_running(first.max_running, left, of_sequence));
    }
    return out;
  }

  // When nobody says: a step has all of an encoder's prompt.
  int32_t batch_tokens_of(const DeviceInfo& first) const {
    if (model_.config.is_causal) return first.max_batch_tokens;
    const int32_t wanted = options_.max_total_tokens
                               ? std::min(*options_.max_total_tokens, model_.config.max_positions)
                               : model_.config.max_positions;
    return std::max(first.max_batch_tokens, std::min(wanted, kMaxPromptOfStep));
  }

  // Of rank 0; of others nothing.
  DrafterBytes drafter_bytes(size_t rank, int32_t context) const {
    if (options_.drafter == nullptr || rank > 0) return {};
    const DeviceInfo& info = devices_.front()->info();
    const bool reads = options_.drafter->reads_hidden() || !reported_rows().is_empty();
    if (reads && !info.reports_rows) {
      throw Error(Code::kUnsupported,
                  fmt::format("the drafter reads what tokens are drawn from, which the {} backend "
                              "does not report; leave --speculator out, or use --backend cpu",
                              info.backend));
    }
    return options_.drafter->bytes(*devices_.front(), drafter_sizes(context));
  }

  DrafterSizes drafter_sizes(int32_t context) const {
    return {.max_running = out_.max_running,
            .max_batch_tokens = out_.max_batch_tokens,
            .max_total_tokens = context,
            .block_size = options_.block_size,
            .num_blocks = out_.plan.num_blocks,
            .num_groups = std::max(kv_plan_.groups.num_full, 1)};
  }

  void check_entries(const DeviceInfo& device) const {
    if (!has_entries(model_.config)) return;
    if (!device.compresses_tokens) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: attention that sees entries of several tokens is not supported "
                              "by the {} backend; use another (--backend cpu)",
                              model_.config.architecture, device.backend));
    }
    if (!is_cache_code(options_.kv_dtype)) return;
    throw Error(Code::kUnsupported,
                fmt::format("{}: entries of several tokens are not held in a KV cache of {}; "
                            "use --kv-cache-dtype bf16, f16 or f32",
                            model_.config.architecture, dtype_name(options_.kv_dtype)));
  }

  // Before anything large is taken. All ranks get as many blocks, so the one with least room says
  // how many.
  void plan(std::span<const GivenBack> given_back) {
    const DeviceInfo& first = devices_.front()->info();
    check_entries(first);
    if (!first.chooses_tokens) leave_out_indexer(model_.config);
    out_.max_running = options_.max_running.value_or(running_of(first, given_back));
    if (model_.config.gives_vectors && !first.takes_encoders) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: models that give vectors are not supported by the {} backend; "
                              "use another (--backend cpu)",
                              model_.config.architecture, first.backend));
    }
    out_.max_batch_tokens = options_.max_batch_tokens.value_or(batch_tokens_of(first));
    MemoryRequest wanted;
    wanted.num_ranks = options_.num_ranks;
    wanted.available_bytes = INT64_MAX;
    wanted.block_size = options_.block_size;
    wanted.max_positions = model_.config.max_positions;
    // All of a prompt is in one step.
    if (!model_.config.is_causal) {
      wanted.max_positions = std::min(wanted.max_positions, out_.max_batch_tokens);
    }
    wanted.max_total_tokens = options_.max_total_tokens;
    wanted.memory_is_shared = ranks_share_memory();
    wanted.max_running = out_.max_running;
    if (options_.kv_cache_bytes)
      wanted.kv_cache_bytes = *options_.kv_cache_bytes / options_.num_ranks;
    const int32_t context =
        std::min(options_.max_total_tokens.value_or(wanted.max_positions), wanted.max_positions);
    kv_plan_ = plan_kv_groups(model_.config, context);
    wanted.kv_groups = kv_plan_.groups;
    wanted.max_batch_tokens = out_.max_batch_tokens;
    out_.max_active_adapters = num_adapters();
    if (num_adapters() > 0) wanted.adapter_fraction = options_.adapter_memory_fraction;
    for (size_t rank = 0; rank < num_ranks_; ++rank) {
      const Device& device = *devices_[rank];
      const DeviceInfo& info = device.info();
      const StateSize one_block = state_size(rank, 1, context);
      const int64_t block_bytes = device.kv_bytes(kv_layout(model_.config, kv_plan_, one_block));
      const int64_t workspace_bytes =
          Transformer::workspace_bytes(model_.config, info, options_.num_ranks,
                                       out_.max_batch_tokens) +
          device.slot_bytes(slot_layout(model_.config, kv_plan_, one_block));
      const int64_t weight_bytes = plan_weight_bytes(model_, device, weights_options(rank));
      const DrafterBytes drafter = drafter_bytes(rank, context);
      const int64_t available =
          info.memory_bytes - promised_of_each() + given_back_to(rank, given_back);
      wanted.available_bytes = std::min(wanted.available_bytes, available);
      wanted.weight_bytes = std::max(wanted.weight_bytes, weight_bytes + drafter.weights);
      wanted.block_bytes = std::max(wanted.block_bytes, block_bytes + drafter.block);
      wanted.workspace_bytes =
          std::max(wanted.workspace_bytes, workspace_bytes + drafter.workspace);
      out_.available_bytes += info.memory_bytes - promised_of_each();
      out_.block_bytes += block_bytes;
      out_.workspace_bytes += workspace_bytes;
      out_.num_threads += info.num_threads;
    }
    out_.plan = plan_memory(wanted);
    const DrafterBytes drafter = drafter_bytes(0, context);
    out_.drafter_bytes = drafter.weights + drafter.workspace + out_.plan.num_blocks * drafter.block;
    out_.kv_groups = kv_plan_.groups;
    out_.num_group_layers = kv_plan_.num_layers;
    out_.kv_bytes = out_.plan.num_blocks * out_.block_bytes;
    out_.adapter_bytes = out_.plan.adapter_bytes * options_.num_ranks;
    planned_for_ = wanted;
  }

  void log_plan() const {
    log_info("memory planned", {{"ranks", options_.num_ranks},
                                {"weights", format_bytes(planned_for_.weight_bytes)},
                                {"kv_cache", format_bytes(out_.plan.kv_bytes)},
                                {"workspace", format_bytes(planned_for_.workspace_bytes)},
                                {"adapters", format_bytes(out_.plan.adapter_bytes)},
                                {"drafter", format_bytes(out_.drafter_bytes)},
                                {"available", format_bytes(planned_for_.available_bytes)},
                                {"blocks", out_.plan.num_blocks},
                                {"max_running", out_.max_running},
                                {"max_total_tokens", out_.plan.max_total_tokens}});
    if (const int32_t stated = model_.config.stated_positions; stated > 0) {
      log_warn(
          "the context ends before the model's: behind it tokens see a choice of those before "
          "them, which this backend does not compute",
          {{"tokens", model_.config.max_positions}, {"of", stated}});
    }
  }

  void load_weights_of(int rank) {
    const auto index = static_cast<size_t>(rank);
    Device& device = *devices_[index];
    const StoppableCheckpoint checkpoint(open_(device.info()), *threads_, options_.stop);
    weights_[index] = load_weights(model_, checkpoint, device, weights_options(index));
    allocate_state(device, model_.config, kv_plan_,
                   state_size(index, out_.plan.num_blocks, out_.plan.max_total_tokens));
  }

  void take_facts() {
    out_.backend = devices_.front()->info().backend;
    out_.isa = devices_.front()->info().isa;
    out_.device = devices_.front()->info().description;
    out_.left_out = devices_.front()->info().left_out;
    out_.keeps = devices_.front()->info().keeps;
    out_.max_logit_bias = devices_.front()->info().max_logit_bias;
    out_.max_top_tokens = devices_.front()->info().max_top_tokens;
    out_.num_params = weights_.front().num_params;
    for (const ModelWeights& weights : weights_) {
      out_.weight_bytes += weights.size_bytes;
      out_.streamed_bytes_per_token += weights.streamed_bytes_per_token;
    }
  }

  void take_drafted(Worker& first) {
    if (options_.drafter == nullptr) return;
    if (options_.drafter->reads_hidden()) first.report_hidden();
    first.report_rows(reported_rows());
    out_.drafted = {.sizes = drafter_sizes(out_.plan.max_total_tokens),
                    .lm_head = &first.lm_head(),
                    .lm_head_bias = first.lm_head_bias(),
                    .token_embedding = &first.token_embedding(),
                    .stop = options_.stop};
  }

  void make_workers() {
    std::vector<Device*> devices;
    for (const auto& device : devices_) devices.push_back(device.get());
    auto communicators = backend_.make_communicators(devices);
    std::vector<std::unique_ptr<WorkerGroup>> workers(num_ranks_);
    try {
      threads_->run([&](int rank) {
        const auto index = static_cast<size_t>(rank);
        workers[index] = std::make_unique<Worker>(
            model_.config, std::move(devices_[index]), std::move(weights_[index]),
            std::move(communicators[index]), kv_plan_, out_.max_batch_tokens);
        if (rank == 0) take_drafted(static_cast<Worker&>(*workers[index]));
      });
    } catch (...) {
      threads_->run([&](int rank) { workers[static_cast<size_t>(rank)].reset(); });
      throw;
    }
    out_.workers = std::make_unique<RankGroup>(std::move(threads_), std::move(workers));
  }

  Backend& backend_;
  LoadedConfig model_;
  const OpenCheckpoint& open_;
  const LoadRanksOptions& options_;
  const size_t num_ranks_;
  std::unique_ptr<RankThreads> threads_;          // (null: the workers have it)
  std::vector<std::unique_ptr<Device>> devices_;  // (num_ranks)
  std::vector<ModelWeights> weights_;             // (num_ranks)
  KvPlan kv_plan_;
  MemoryRequest planned_for_;
  LoadedRanks out_;
};

}  // namespace

bool ranks_share_memory(Backend& backend) {
  return backend.num_devices() == std::numeric_limits<int>::max();
}

void check_num_ranks(Backend& backend, int32_t num_ranks) {
  if (num_ranks < 1) {
    throw Error(Code::kInvalidArgument,
                fmt::format("num_shard must be at least 1, got {}", num_ranks));
  }
  const int num_devices = backend.num_devices();
  if (num_ranks > num_devices) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("num_shard is {}, but the {} backend has {} {}; each rank needs one", num_ranks,
                    backend.name(), num_devices, num_devices == 1 ? "device" : "devices"));
  }
}

int32_t check_ranks(Backend& backend,
                    const LoadedConfig& model,
                    const LoadRanksOptions& options,
                    std::span<const GivenBack> given_back) {
  check_num_ranks(backend, options.num_ranks);
  check_world_size(model.config, options.num_ranks);
  return RankLoader(backend, model, {}, options).check(given_back);
}

LoadedRanks load_ranks(Backend& backend,
                       const LoadedConfig& model,
                       const OpenCheckpoint& open,
                       const LoadRanksOptions& options) {
  check_num_ranks(backend, options.num_ranks);
  check_world_size(model.config, options.num_ranks);
  return RankLoader(backend, model, open, options).load();
}

}  // namespace tgi
