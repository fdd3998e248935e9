// CudaDevice: the ops, each from its arguments and the step's state to a launch.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "cuda/adapters.h"
#include "cuda/cuda_device.h"
#include "cuda/device_state.h"
#include "cuda/kernels/attention.h"
#include "cuda/kernels/latent.h"
#include "cuda/kernels/packed.h"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

const CudaMatrix& matrix(const Matrix& w) {
  return static_cast<const CudaMatrix&>(w);
}

}  // namespace

bool CudaDevice::multiply_as(const MatmulLaunch& launch,
                             const std::optional<CublasAlgorithm>& algorithm) {
  if (!algorithm) {
    launch_matmul_stream(stream_.get(), launch);
    return true;
  }
  if (!cublas_.run(stream_.get(), launch, *algorithm, cublas_workspace_.data())) return false;
  if (launch.bias != nullptr) launch_add_bias(stream_.get(), launch.out, launch.bias);
  return true;
}

void CudaDevice::multiply(const Tensor& x,
                          const CudaMatrix& w,
                          const Tensor* bias,
                          const Tensor& out) {
  const float* const bias_data = bias == nullptr ? nullptr : bias->as<const float>();
  if (w.packed) {
    const PackedLaunch launch = {.shape = *w.packed,
                                 .w = w.memory.data(),
                                 .bias = bias_data,
                                 .x = x,
                                 .out = out,
                                 .one_kernel = plan_options_.deterministic,
                                 .partials = partials_of(*w.packed)};
    if (is_faster_unpacked(launch)) return multiply_unpacked(launch);
    return launch_packed_matmul(stream_.get(), launch);
  }
  multiply_dense({.x = x,
                  .w = w.memory.data(),
                  .w_stride = w.stride,
                  .outputs = w.rows,
                  .bias = bias_data,
                  .out = out});
}

void CudaDevice::multiply_dense(const MatmulLaunch& launch) {
  if (launch.x.rows == 0) return;
  if (!is_aligned(launch)) return launch_matmul_plain(stream_.get(), launch);
  if (plan_options_.deterministic) return launch_matmul_stream(stream_.get(), launch);
  const MatmulShape exact = shape_of(launch);
  if (const auto it = unlike_bucket_.find(exact); it != unlike_bucket_.end()) {
    if (!multiply_as(launch, it->second.algorithm)) multiply_otherwise(launch, exact);
    return;
  }
  MatmulShape shape = exact;
  shape.rows = row_bucket(exact.rows);
  const MatmulChoice* choice = tuner_.find(shape);
  if (choice == nullptr) {
    MatmulChoice guess;
    if (launch.x.rows > kMaxStreamRows) {
      const std::vector<CublasAlgorithm> proposed = cublas_.propose(launch, 1);
      if (!proposed.empty()) guess.algorithm = proposed[0];
    }
    tuner_.adopt(shape, guess);
    choice = tuner_.find(shape);
  }
  if (!multiply_as(launch, choice->algorithm)) multiply_otherwise(launch, exact);
}

// The algorithm of the bucket does not suit this number of rows: the library's own guesses for it,
// and the kernel that takes any shape when it has none. Kept, so that a shape is asked for once.
void CudaDevice::multiply_otherwise(const MatmulLaunch& launch, const MatmulShape& exact) {
  for (const CublasAlgorithm& algorithm : cublas_.propose(launch, kProposals)) {
    if (!multiply_as(launch, algorithm)) continue;
    unlike_bucket_[exact] = {.algorithm = algorithm};
    return;
  }
  unlike_bucket_[exact] = {};
  launch_matmul_stream(stream_.get(), launch);
}

float* CudaDevice::partials_of(const PackedShape& shape) const {
  if (packed_partials_bytes(shape) > static_cast<int64_t>(unpacked_.size_bytes())) return nullptr;
  return static_cast<float*>(unpacked_.data());
}

// What was measured; without that, where the kernels for few rows end.
bool CudaDevice::is_faster_unpacked(const PackedLaunch& launch) const {
  if (launch.one_kernel || !may_unpack(launch)) return false;
  if (unpacked_bytes(launch.shape) > static_cast<int64_t>(unpacked_.size_bytes())) return false;
  const MatmulChoice* const choice = tuner_.find(packed_matmul_shape(launch));
  return choice == nullptr ? launch.x.rows > kMaxPackedStreamRows : choice->algorithm.has_value();
}

// In parts of so many outputs as there is room for.
void CudaDevice::multiply_unpacked(const PackedLaunch& launch) {
  const int32_t outputs = launch.shape.outputs;
  const int32_t at_once = unpacked_outputs(launch.shape);
  for (int32_t first = 0; first < outputs; first += at_once) {
    const int64_t count = std::min(at_once, outputs - first);
    const Tensor part = {.data = unpacked_.data(),
                         .dtype = launch.x.dtype,
                         .rows = count,
                         .cols = launch.x.cols,
                         .stride = launch.x.cols};
    launch_packed_unpack(
        stream_.get(), {.shape = launch.shape, .w = launch.w, .first_output = first, .out = part});
    multiply_dense({.x = launch.x,
                    .w = part.data,
                    .w_stride = part.stride,
                    .outputs = count,
                    .bias = launch.bias == nullptr ? nullptr : launch.bias + first,
                    .out = launch.out.columns(first, count)});
  }
}

// What is dense of the two is added by the other kernel.
void CudaDevice::embed_packed(const EmbedArgs& args) {
  EmbedArgs rest = args;
  const auto add = [&](const CudaMatrix& w, const int32_t* token_ids, float multiplier, bool adds) {
    launch_packed_embed(stream_.get(), {.shape = *w.packed,
                                        .table = w.memory.data(),
                                        .token_ids = token_ids,
                                        .rows = step_.tokens,
                                        .multiplier = multiplier,
                                        .adds = adds,
                                        .out = args.out});
  };
  const CudaMatrix* table = args.table == nullptr ? nullptr : &matrix(*args.table);
  if (table != nullptr && table->packed) {
    add(*table, token_ids_, args.multiplier, false);
    rest.table = table = nullptr;
    rest.multiplier = 1.0F;
  }
  const CudaMatrix* positions =
      args.position_table == nullptr ? nullptr : &matrix(*args.position_table);
  const bool has_packed_positions = positions != nullptr && positions->packed;
  if (has_packed_positions) rest.position_table = nullptr;
  if (rest.table != nullptr || rest.position_table != nullptr) embed(rest);
  if (has_packed_positions) add(*positions, nullptr, 1.0F, true);
}

void CudaDevice::embed(const EmbedArgs& args) {
  const auto is_packed = [](const Matrix* w) { return w != nullptr && matrix(*w).packed; };
  if (is_packed(args.table) || is_packed(args.position_table)) return embed_packed(args);
  const CudaMatrix* table = args.table == nullptr ? nullptr : &matrix(*args.table);
  EmbedLaunch launch = {.table = table == nullptr ? nullptr : table->memory.data(),
                        .stride = table == nullptr ? 0 : table->stride,
                        .position_table = nullptr,
                        .position_stride = 0,
                        .num_ids = table == nullptr ? 0 : static_cast<int32_t>(table->rows),
                        .token_ids = token_ids_,
                        .rows = step_.tokens,
                        .multiplier = args.multiplier,
                        .out = args.out};
  if (args.position_table != nullptr) {
    launch.position_table = matrix(*args.position_table).memory.data();
    launch.position_stride = matrix(*args.position_table).stride;
  }
  launch_embed(stream_.get(), launch);
}

void CudaDevice::norm(const NormArgs& args) {
  launch_norm(stream_.get(), args);
}

void CudaDevice::matmul(const MatmulArgs& args) {
  multiply(args.x, matrix(*args.w), args.bias, args.out);
}

int64_t CudaDevice::adapter_bytes(std::span<const LowRankPart> parts, DType dtype) const {
  return CudaAdapter::bytes(parts, dtype);
}

std::unique_ptr<Adapter> CudaDevice::make_adapter(std::span<const LowRankPart> parts, DType dtype) {
  use_device(index_);
  return std::make_unique<CudaAdapter>(parts, dtype);
}

// In the order of the stream: steps on their way still see the one before.
void CudaDevice::set_adapter(int32_t index, const Adapter* adapter) {
  TGI_CHECK(index >= 1 && index <= slot_layout_->max_adapters);
  const LowRankAdapter entry =
      adapter == nullptr ? LowRankAdapter{} : static_cast<const CudaAdapter*>(adapter)->entry();
  has_seen_adapters_ = has_seen_adapters_ || adapter != nullptr;
  place_changes_.copy(stream_.get(), adapter_places_ + index, &entry, sizeof entry);
}

LowRankLaunch CudaDevice::low_rank_launch(const LowRankArgs& args) const {
  return {.places = adapter_places_,
          .slot_places = slots_.adapters,
          .tokens = step_.tokens,
          .logit_rows = args.of_output_rows ? step_.logit_rows : nullptr,
          .choices = {},
          .heads = {},
          .token_ids = nullptr,
          .site = args.site,
          .num_rows = args.x.rows,
          .shrunk = shrunk_rows_,
          .x = args.x,
          .out = args.out};
}

void CudaDevice::add_low_rank(const LowRankArgs& args) {
  if (!has_adapters_) return;
  launch_low_rank(stream_.get(), low_rank_launch(args));
}

void CudaDevice::add_low_rank_of_tokens(const LowRankLookupArgs& args) {
  if (!has_adapters_) return;
  // Its type is that of what is looked up.
  LowRankLaunch launch = low_rank_launch({.site = args.site, .x = args.out, .out = args.out});
  launch.token_ids = token_ids_;
  launch_low_rank(stream_.get(), launch);
}

// As many heads at once as there are short rows for, which depends on the size of the step alone.
void CudaDevice::add_low_rank_to_heads(const HeadLowRankArgs& args) {
  if (!has_adapters_) return;
  const int64_t room =
      std::max<int64_t>(slot_layout_->max_batch_tokens / std::max<int64_t>(args.x.rows, 1), 1);
  for (int32_t first = 0; first < args.num_heads; first += static_cast<int32_t>(room)) {
    LowRankLaunch launch =
        low_rank_launch({.site = args.first_site + first,
                         .x = args.x.columns(first * args.x_step, args.x_cols),
                         .out = args.out.columns(first * args.out_step, args.out_cols)});
    launch.heads = {.count = std::min(static_cast<int32_t>(room), args.num_heads - first),
                    .x_step = args.x_step,
                    .out_step = args.out_step};
    launch_low_rank(stream_.get(), launch);
  }
}

StoreKvLaunch CudaDevice::store_launch(KvPlace place, int32_t padded_dim, int32_t rope) const {
  StoreKvLaunch launch = {.cache = cache_.of(place),
                          .cache_head_dim = padded_dim,
                          .cache_dtype = kv_.dtype,
                          .key_scales = nullptr,
                          .value_scales = nullptr,
                          .block_size = kv_.block_size,
                          .block_tables = slots_.tables_of(place.group),
                          .max_blocks = slots_.max_blocks,
                          .rows = step_.tokens,
                          .cos_sin = nullptr,
                          .cos_sin_stride = kMaxRotaryColumns,
                          .rope = {}};
  if (rope >= 0) {
    launch.cos_sin = cos_sin_;
    launch.rope = ropes_[static_cast<size_t>(rope)].table;
  }
  return launch;
}

void CudaDevice::qk_norm_rope_store_kv(const QkvArgs& args) {
  launch_qk_norm_rope_store_kv(stream_.get(), args,
                               store_launch(args.place, padded_dim(args), args.rope));
}

void CudaDevice::attention(const AttentionArgs& args) {
  if (args.latent_dim > 0) return attend_latents(args);
  const int32_t dim = padded_dim(args);
  if (dim == args.head_dim && dim == args.value_cols()) return attend(args);
  // Zeros past the end of a key or a value change neither a product nor a sum.
  TGI_CHECK(args.num_heads <= heads_.num_heads && dim <= heads_.padded_dim());
  const int64_t cols = int64_t{args.num_heads} * dim;
  Tensor q = {.data = padded_heads_,
              .dtype = args.q.dtype,
              .rows = args.q.rows,
              .cols = cols,
              .stride = cols};
  Tensor out = q;
  out.data = padded_heads_ + static_cast<size_t>(capacity_.max_tokens * cols) * dtype_size(q.dtype);
  launch_copy_heads(stream_.get(), args.q, args.head_dim, q, dim);
  AttentionArgs padded = args;
  padded.head_dim = dim;
  padded.value_dim = 0;
  padded.q = q;
  padded.out = out;
  attend(padded);
  launch_copy_heads(stream_.get(), out, dim, args.out, args.value_cols());
}

void CudaDevice::attend(const AttentionArgs& args) {
  AttentionLaunch launch;
  launch.cache = cache_.of(args.place);
  launch.cache_dtype = kv_.dtype;
  launch.block_size = kv_.block_size;
  launch.block_tables = slots_.tables_of(args.place.group);
  launch.max_blocks = slots_.max_blocks;
  launch.plan = step_.attention();
  launch.partials = partials_;
  launch.shared_bytes_of_multiprocessor = shared_bytes_;
  TGI_CHECK(args.num_kv_heads % plan_options_.num_kv_heads == 0);
  launch.heads_of_item = args.num_kv_heads / plan_options_.num_kv_heads;
  launch.num_sequences = shape_.num_sequences;
  // A captured step is launched for every batch of its bucket, so its grids are those of the
  // fullest.
  launch.num_decode_blocks = is_padded_ || !plan_.items.empty() ? plan_options_.num_blocks : 0;
  launch.max_merges = is_padded_ ? max_decode_merges(shape_.num_tokens, plan_options_)
                                 : static_cast<int32_t>(plan_.merges.size());
  launch.num_tiles = is_padded_ ? 0 : static_cast<int32_t>(plan_.tiles.size());
  launch_attention(stream_.get(), args, launch);
}

void CudaDevice::activation(const ActivationArgs& args) {
  launch_activation(stream_.get(), args);
}

void CudaDevice::gather_output_rows(const Tensor& x, const Tensor& out) {
  launch_gather(stream_.get(), x, step_.logit_rows, out);
}

void CudaDevice::add(const AddArgs& args) {
  launch_add(stream_.get(), args);
}

void CudaDevice::rotate_and_store_latent(const LatentArgs& args) {
  launch_rotate_and_store_latent(
      stream_.get(), args, store_launch(args.place, padded_head_dim(kv_.head_dim), args.rope));
}

void CudaDevice::head_matmul(const HeadMatmulArgs& args) {
  const CudaMatrix& first = matrix(*args.heads.front());
  TGI_CHECK(!first.packed);  // never quantised: StoragePlan::of_heads
  HeadMatmulLaunch launch;
  launch.num_heads = static_cast<int32_t>(args.heads.size());
  TGI_CHECK(args.heads.size() <= launch.heads.size());
  for (size_t h = 0; h < args.heads.size(); ++h) {
    launch.heads[h] = matrix(*args.heads[h]).memory.data();
  }
  launch.w_stride = first.stride;
  launch.outputs = first.rows;
  launch.cols = first.cols;
  launch.x_step = args.x_step;
  launch.out_step = args.out_step;
  launch.x = args.x;
  launch.out = args.out;
  launch.one_kernel = plan_options_.deterministic;
  launch_head_matmul(stream_.get(), launch);
}

void CudaDevice::attend_latents(const AttentionArgs& args) {
  LatentAttentionLaunch launch = {.keys = cache_.of(args.place).keys,
                                  .cache_dim = heads_.padded_dim(),
                                  .block_size = kv_.block_size,
                                  .block_tables = slots_.tables_of(args.place.group),
                                  .max_blocks = slots_.max_blocks,
                                  .rows = step_.tokens,
                                  .num_splits = 1,
                                  .partials = partials_};
  if (!plan_options_.deterministic) {
    launch.num_splits = latent_splits(args.q.rows, args.num_heads, plan_options_.num_blocks);
  }
  launch_latent_attention(stream_.get(), args, launch);
}

void CudaDevice::report_rows(const ReportArgs& args) {
  const int64_t cols = slot_layout_->reported_cols;
  TGI_CHECK(args.first_col + args.x.cols <= cols);
  if (reports_rows_) launch_report_rows(stream_.get(), args.x, reported_ + args.first_col, cols);
}

void CudaDevice::pool(const PoolArgs& args) {
  TGI_CHECK(args.hidden.cols == slot_layout_->pooled_cols);
  launch_report_rows(stream_.get(), args.hidden, pooled_, args.hidden.cols);
}

void CudaDevice::sample(const SampleArgs& args) {
  const CudaMatrix& head = matrix(*args.lm_head);
  const int64_t stride = (int64_t{slots_.vocab_size} + 7) / 8 * 8;
  for (int64_t begin = 0; begin < args.hidden.rows; begin += kLogitTileRows) {
    const int64_t count = std::min<int64_t>(args.hidden.rows - begin, kLogitTileRows);
    Tensor hidden = args.hidden.first_rows(count);
    hidden.data = static_cast<std::byte*>(args.hidden.data) +
                  static_cast<size_t>(begin * args.hidden.stride) * dtype_size(args.hidden.dtype);
    const Tensor logits = {
        .data = logits_, .dtype = DType::kF32, .rows = count, .cols = head.rows, .stride = stride};
    multiply(hidden, head, nullptr, logits);
    if (args.site >= 0 && has_adapters_) {
      LowRankLaunch launch = low_rank_launch({.site = args.site, .x = hidden, .out = logits});
      launch.logit_rows = step_.logit_rows + begin;
      launch_low_rank(stream_.get(), launch);
    }
    launch_logit_transform(stream_.get(), logits,
                           {.bias = args.bias == nullptr ? nullptr : args.bias->as<const float>(),
                            .scale = args.logit_scale,
                            .softcap = args.logit_softcap});
    launch_sample(stream_.get(), {.slots = slots_,
                                  .rows = step_.logit_rows + begin,
                                  .num_rows = static_cast<int32_t>(count),
                                  .logits = logits_,
                                  .stride = stride,
                                  .token_ids = token_ids_,
                                  .masks = masks_,
                                  .draw_ids = args.draw_ids,
                                  .workspace = sample_workspace_,
                                  .out = sampled_ + begin});
  }
  if (!shape_.has_drafts) return;
  launch_record_verified(stream_.get(), {.slots = slots_,
                                         .rows = step_.logit_rows,
                                         .num_rows = static_cast<int32_t>(args.hidden.rows),
                                         .token_ids = token_ids_,
                                         .out = sampled_});
}

}  // namespace tgi::cuda
