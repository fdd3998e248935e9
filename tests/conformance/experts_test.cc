// route, expert_matmul and combine_experts together, as a layer of experts calls them: the
// reference is agreed with, and a token's bits depend on nothing but the token.
#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

constexpr int32_t kMaxTokens = 96;
constexpr int32_t kVocabSize = 64;
constexpr int32_t kNumIds = 40;  // that a table of experts has a row for

// Where a token's experts are those of its row of a table.
enum class TableRows : uint8_t { kNone, kDifferent, kSomeTwice, kOneExpert };

struct ExpertsSetup {
  std::string name;
  int64_t num_tokens = 7;
  int64_t hidden = 33;
  int64_t width = 21;
  int32_t num_experts = 6;
  RouteRule rule{.top_k = 2};
  bool has_choice_bias = false;
  bool has_scale = false;  // of each expert
  bool has_biases = false;
  std::optional<MatrixStorage> storage{};  // none: what the device computes in
  bool uses_one_expert = false;            // all tokens go to the same
  bool weighs_inputs = false;              // weigh_experts between the two matrices
  bool has_ties = false;                   // of two equal logits the first expert's counts
  bool gives_back = true;                  // what experts without matrices read
  TableRows table = TableRows::kNone;

  MatrixStorage storage_on(const Device& device) const {
    return storage ? *storage : MatrixStorage(device.info().activation_dtype);
  }
};

MatrixStorage stored_storage(Quantization kind, int32_t group_size, bool zero_points) {
  MatrixStorage out(kind, group_size);
  out.stored = true;
  out.zero_points = zero_points;
  return out;
}

std::vector<ExpertsSetup> expert_setups() {
  return {
      {.name = "one token", .num_tokens = 1},
      {.name = "one of six", .rule = {.top_k = 1}},
      {.name = "all of three", .num_experts = 3, .rule = {.top_k = 3}},
      {.name = "normalised and scaled, biases",
       .num_tokens = 40,
       .rule = {.top_k = 3, .normalises = true, .scale = 2.5F},
       .has_biases = true},
      {.name = "sigmoids with a bias, groups by two",
       .num_tokens = 60,
       .num_experts = 16,
       .rule = {.score = RouterScore::kSigmoid,
                .top_k = 4,
                .num_groups = 4,
                .top_groups = 2,
                .group_best = 2,
                .normalises = true},
       .has_choice_bias = true},
      {.name = "normalised, each expert with a scale",
       .num_tokens = 20,
       .rule = {.top_k = 3, .normalises = true},
       .has_scale = true},
      {.name = "groups by their best",
       .num_tokens = 30,
       .num_experts = 12,
       .rule = {.top_k = 2, .num_groups = 3, .top_groups = 1}},
      {.name = "two of three good groups, and of equal experts the first",
       .num_tokens = 20,
       .num_experts = 12,
       .rule = {.top_k = 3, .num_groups = 3, .top_groups = 2, .group_best = 2},
       .has_ties = true},
      {.name = "more experts than tokens, of equal ones the first",
       .num_tokens = 3,
       .num_experts = 70,
       .rule = {.top_k = 40, .normalises = true},
       .has_ties = true},
      {.name = "forty groups",
       .num_tokens = 5,
       .num_experts = 80,
       .rule = {.score = RouterScore::kSigmoid,
                .top_k = 5,
                .num_groups = 40,
                .top_groups = 3,
                .group_best = 2},
       .has_ties = true},
      {.name = "what experts read is weighed by sigmoids",
       .num_tokens = 30,
       .rule = {.score = RouterScore::kSigmoid, .top_k = 2},
       .weighs_inputs = true},
      {.name = "what the one expert reads is weighed, whole vectors",
       .num_tokens = 25,
       .hidden = 32,
       .width = 24,
       .rule = {.score = RouterScore::kSigmoid, .top_k = 1},
       .weighs_inputs = true},
      {.name = "chosen by the logit and a bias, weighed by its sigmoid",
       .num_tokens = 40,
       .num_experts = 40,
       .rule = {.score = RouterScore::kSigmoidOfChosen, .top_k = 3, .scale = 1.5F},
       .has_choice_bias = true},
      {.name = "the same, normalised, of equal ones the first",
       .num_tokens = 10,
       .num_experts = 9,
       .rule = {.score = RouterScore::kSigmoidOfChosen, .top_k = 2, .normalises = true},
       .has_ties = true},
      {.name = "roots of softplus with a bias, normalised and scaled",
       .num_tokens = 40,
       .num_experts = 20,
       .rule = {.score = RouterScore::kSqrtSoftplus, .top_k = 6, .normalises = true, .scale = 1.5F},
       .has_choice_bias = true},
      {.name = "roots of softplus, of equal ones the first",
       .num_tokens = 10,
       .num_experts = 9,
       .rule = {.score = RouterScore::kSqrtSoftplus, .top_k = 2},
       .has_ties = true},
      {.name = "roots of softplus in groups",
       .num_tokens = 20,
       .num_experts = 40,
       .rule = {.score = RouterScore::kSqrtSoftplus,
                .top_k = 3,
                .num_groups = 4,
                .top_groups = 2,
                .group_best = 2}},
      {.name = "experts of tokens, roots of softplus, normalised and scaled",
       .num_tokens = 60,
       .num_experts = 20,
       .rule = {.score = RouterScore::kSqrtSoftplus, .top_k = 6, .normalises = true, .scale = 1.5F},
       .table = TableRows::kDifferent},
      {.name = "experts of tokens, some twice, a softmax",
       .num_tokens = 50,
       .num_experts = 7,
       .rule = {.top_k = 4, .scale = 2.0F},
       .has_scale = true,
       .table = TableRows::kSomeTwice},
      {.name = "experts of tokens, some twice, sigmoids, normalised, whole vectors",
       .num_tokens = 70,
       .hidden = 64,
       .width = 40,
       .num_experts = 50,
       .rule = {.score = RouterScore::kSigmoid, .top_k = 40, .normalises = true},
       .has_biases = true,
       .table = TableRows::kSomeTwice},
      {.name = "experts of tokens, each three times the same one, more rows than tokens",
       .num_tokens = kMaxTokens,
       .hidden = 256,
       .width = 136,
       .num_experts = 3,
       .rule = {.score = RouterScore::kSqrtSoftplus, .top_k = 3, .normalises = true},
       .table = TableRows::kOneExpert},
      {.name = "experts of tokens that give what they read",
       .num_tokens = 30,
       .num_experts = 9,
       .rule = {.score = RouterScore::kSqrtSoftplus, .top_k = 3, .num_identity = 4},
       .table = TableRows::kSomeTwice},
      {.name = "sparse mixer, some near",
       .num_tokens = 40,
       .num_experts = 16,
       .rule = {.score = RouterScore::kSparseMixer, .top_k = 2, .mixer_width = 0.25F}},
      {.name = "sparse mixer, all far",
       .num_tokens = 10,
       .num_experts = 40,
       .rule = {.score = RouterScore::kSparseMixer, .top_k = 3, .mixer_width = 0.01F},
       .has_ties = true},
      {.name = "experts that give what they read, many of them chosen",
       .num_tokens = 40,
       .num_experts = 7,
       .rule = {.top_k = 4, .scale = 1.5F, .num_identity = 3},
       .has_choice_bias = true},
      {.name = "experts that give what they read, few tokens and whole vectors",
       .num_tokens = 3,
       .hidden = 64,
       .width = 40,
       .num_experts = 30,
       .rule = {.top_k = 5, .num_identity = 20},
       .has_biases = true},
      {.name = "experts that give what they read, many rows for each of the others",
       .num_tokens = kMaxTokens,
       .hidden = 264,
       .width = 136,
       .num_experts = 4,
       .rule = {.top_k = 3, .normalises = true, .num_identity = 2}},
      {.name = "experts that give nothing",
       .num_tokens = 20,
       .rule = {.top_k = 3, .num_identity = 2},
       .gives_back = false},
      {.name = "int4 of a checkpoint beside experts that give what they read",
       .num_tokens = 50,
       .hidden = 136,
       .width = 72,
       .rule = {.top_k = 2, .num_identity = 3},
       .storage = stored_storage(Quantization::kInt4, 64, true)},
      {.name = "whole vectors, tiles of one expert that are not full",
       .num_tokens = 90,
       .hidden = 64,
       .width = 40,
       .num_experts = 20,
       .rule = {.top_k = 5},
       .has_biases = true},
      {.name = "whole vectors, all tokens for the same experts",
       .num_tokens = 81,
       .hidden = 80,
       .width = 16,
       .num_experts = 30,
       .rule = {.top_k = 2},
       .uses_one_expert = true},
      {.name = "bf16, many tokens for one expert",
       .num_tokens = kMaxTokens,
       .hidden = 70,
       .width = 130,
       .storage = DType::kBF16,
       .uses_one_expert = true},
      {.name = "bf16, more rows than fit at once",
       .num_tokens = kMaxTokens,
       .hidden = 128,
       .width = 64,
       .num_experts = 9,
       .rule = {.top_k = 6},
       .storage = DType::kBF16},
      {.name = "many rows for each expert, k and outputs end within a block",
       .num_tokens = kMaxTokens,
       .hidden = 264,
       .width = 136,
       .num_experts = 3,
       .rule = {.top_k = 2},
       .has_biases = true},
      {.name = "more rows for each expert than a block takes",
       .num_tokens = kMaxTokens,
       .hidden = 200,
       .width = 72,
       .num_experts = 2,
       .rule = {.top_k = 2},
       .has_biases = true},
      {.name = "int8",
       .num_tokens = 50,
       .hidden = 64,
       .width = 96,
       .storage = MatrixStorage(Quantization::kInt8, 32)},
      {.name = "int4",
       .num_tokens = 50,
       .hidden = 64,
       .width = 96,
       .storage = MatrixStorage(Quantization::kInt4, 32)},
      {.name = "int4 of a checkpoint, few rows for each expert",
       .num_tokens = 5,
       .hidden = 136,
       .width = 72,
       .rule = {.top_k = 2},
       .has_biases = true,
       .storage = stored_storage(Quantization::kInt4, 64, true)},
      {.name = "mxfp4 of a checkpoint, many rows for each expert",
       .num_tokens = 90,
       .hidden = 96,
       .width = 136,
       .num_experts = 3,
       .rule = {.top_k = 2},
       .has_biases = true,
       .storage = stored_storage(Quantization::kMxfp4, kMxfp4GroupSize, false)},
      {.name = "int8 of a checkpoint, rows of no whole vectors",
       .num_tokens = 6,
       .hidden = 35,
       .width = 42,
       .rule = {.top_k = 2},
       .storage = stored_storage(Quantization::kInt8, 32, false)},
  };
}

void allocate_experts_state(Device& device, const ExpertsSetup& setup) {
  device.allocate_state({.num_layers = 1,
                         .num_kv_heads = 1,
                         .head_dim = 16,
                         .block_size = 16,
                         .num_blocks = 4,
                         .dtype = device.info().activation_dtype},
                        {.num_slots = 1,
                         .max_blocks_per_slot = 8,
                         .max_batch_tokens = kMaxTokens,
                         .vocab_size = kVocabSize,
                         .block_size = 16,
                         .max_matmul_cols = 256,
                         .num_heads = 1,
                         .num_kv_heads = 1,
                         .head_dim = 16,
                         .num_experts = setup.num_experts,
                         .experts_per_token = setup.rule.top_k,
                         .scales_experts = setup.has_scale});
}

// Logits of a token, far apart where they differ, so that no rounding changes a choice.
Floats clear_logits(Random& random, const ExpertsSetup& setup) {
  Floats out;
  for (int64_t token = 0; token < setup.num_tokens; ++token) {
    std::vector<int32_t> order(static_cast<size_t>(setup.num_experts));
    std::iota(order.begin(), order.end(), 0);
    if (!setup.uses_one_expert) random.shuffle(order);
    for (int32_t rank : order) {
      // Neighbours differ by what a softmax tells apart, and no type rounds.
      if (setup.has_ties) rank = rank % 3 * 8;
      out.push_back(static_cast<float>(rank * rank) * 0x1p-6F - 1.0F);
    }
  }
  return out;
}

// (kNumIds, top_k)
std::vector<int32_t> table_rows(Random& random, const ExpertsSetup& setup) {
  std::vector<int32_t> out;
  for (int32_t id = 0; id < kNumIds; ++id) {
    std::vector<int32_t> row(static_cast<size_t>(setup.num_experts));
    std::iota(row.begin(), row.end(), 0);
    random.shuffle(row);
    row.resize(static_cast<size_t>(setup.rule.top_k));
    if (setup.table == TableRows::kSomeTwice && id % 3 != 1) row.back() = row.front();
    if (setup.table == TableRows::kOneExpert) std::ranges::fill(row, 1);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

class ExpertLayer {
 public:
  ExpertLayer(Device& device, const ExpertsSetup& setup) : device_(device), setup_(setup) {
    Random random(static_cast<uint32_t>(setup.num_tokens * 31 + setup.hidden));
    x_ = random.values(setup.num_tokens * setup.hidden);
    logits_ = clear_logits(random, setup);
    for (int32_t e = 0; e < setup.num_experts - setup.rule.num_identity; ++e) {
      add(random, up_, setup.width, setup.hidden);
      add(random, down_, setup.hidden, setup.width);
    }
    Floats bias = random.values(setup.num_experts);
    for (float& each : bias) each = each * 0.25F + 0.3F;
    choice_bias_.emplace(DeviceTensor::vector(device, bias));
    expert_scale_.emplace(DeviceTensor::vector(device, random.values(setup.num_experts)));
    for (int64_t token = 0; token < setup.num_tokens; ++token) {
      token_ids_.push_back(random.integer(0, kVocabSize - 1));
    }
    if (setup.table == TableRows::kNone) return;
    const std::vector<int32_t> rows = table_rows(random, setup);
    table_ = device.allocate(rows.size() * sizeof(int32_t), "experts of tokens");
    device.copy_to_device(table_.data(), rows.data(), rows.size() * sizeof(int32_t));
  }

  // What tokens [first, first + count) become, and the rows between the two matrices, where all are
  // computed.
  std::vector<Floats> run(int64_t first, int64_t count) {
    const DType dtype = device_.info().activation_dtype;
    const auto part = [&](const Floats& all, int64_t cols) {
      return Floats(all.begin() + first * cols, all.begin() + (first + count) * cols);
    };
    const int64_t routed = count * setup_.rule.top_k;
    DeviceTensor x(device_, count, setup_.hidden, part(x_, setup_.hidden));
    DeviceTensor logits(device_, count, setup_.num_experts, part(logits_, setup_.num_experts));
    DeviceTensor middle(device_, routed, setup_.width, dtype,
                        setup_.width + (setup_.width % 8 == 0 ? 8 : 3));
    DeviceTensor rows(device_, routed, setup_.hidden, dtype);
    DeviceTensor out(device_, count, setup_.hidden, dtype, setup_.hidden + 2);
    const auto first_id = token_ids_.begin() + first;
    run_step(device_, one_sequence({first_id, first_id + count}), [&] {
      device_.route({.rule = setup_.rule,
                     .logits = logits.view(),
                     .choice_bias = setup_.has_choice_bias ? &choice_bias_->view() : nullptr,
                     .expert_scale = setup_.has_scale ? &expert_scale_->view() : nullptr,
                     .experts_by_token = static_cast<const int32_t*>(table_.data()),
                     .num_ids = kNumIds});
      device_.expert_matmul({.experts = up_.views, .x = x.view(), .out = middle.view()});
      if (setup_.weighs_inputs) device_.weigh_experts({.x = middle.view()});
      device_.expert_matmul(
          {.experts = down_.views, .x_is_routed = true, .x = middle.view(), .out = rows.view()});
      const bool gives_back = setup_.rule.num_identity > 0 && setup_.gives_back;
      device_.combine_experts({.is_weighted = setup_.weighs_inputs,
                               .x = rows.view(),
                               .given = gives_back ? &x.view() : nullptr,
                               .out = out.view()});
    });
    if (setup_.rule.num_identity > 0) return {out.read()};
    return {middle.read(), out.read()};
  }

 private:
  struct Experts {
    std::vector<std::unique_ptr<Matrix>> matrices;
    std::vector<std::unique_ptr<DeviceTensor>> biases;
    std::vector<ExpertWeight> views;
  };

  void add(Random& random, Experts& to, int64_t rows, int64_t cols) {
    const MatrixStorage storage = setup_.storage_on(device_);
    if (storage.stored) {
      const GroupedWeight stored(random, rows, cols, storage, false);
      to.matrices.push_back(device_.make_matrix(std::span(&stored.weight, 1), storage));
    } else {
      to.matrices.push_back(make_matrix(device_, random.values(rows * cols), rows, cols, storage));
    }
    to.biases.push_back(
        std::make_unique<DeviceTensor>(DeviceTensor::vector(device_, random.values(rows))));
    to.views.push_back({.w = to.matrices.back().get(),
                        .bias = setup_.has_biases ? &to.biases.back()->view() : nullptr});
  }

  Device& device_;
  const ExpertsSetup& setup_;
  Floats x_, logits_;
  Experts up_, down_;
  std::optional<DeviceTensor> choice_bias_, expert_scale_;
  std::vector<int32_t> token_ids_;
  Buffer table_;  // of experts of tokens, where there is one
};

// Of numbers that are sums of products: as a part of the largest there is.
double error_of(const Floats& got, const Floats& wanted) {
  double largest = 0.0;
  double difference = 0.0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(double{wanted[i]}));
    difference = std::max(difference, std::abs(double{got[i]} - double{wanted[i]}));
  }
  return difference / largest;
}

}  // namespace

TEST_CASE("a layer of experts agrees with the reference") {
  for (const ExpertsSetup& setup : expert_setups()) {
    const auto reference = make_reference_device();
    allocate_experts_state(*reference, setup);
    const auto wanted = ExpertLayer(*reference, setup).run(0, setup.num_tokens);
    std::map<std::string, std::vector<Floats>> by_group;
    for (const DeviceCase& device_case : device_cases()) {
      INFO(device_case.name << ": " << setup.name);
      const auto device = device_case.make();
      const MatrixStorage storage = setup.storage_on(*device);
      if (!device_case.can_hold(storage)) continue;
      allocate_experts_state(*device, setup);
      const auto got = ExpertLayer(*device, setup).run(0, setup.num_tokens);
      // Integers round what they are multiplied with; a sum on the border falls either way. Of a
      // checkpoint's own the reference does not round.
      const bool is_integer = storage.quantization != Quantization::kNone;
      const double of_integers = storage.stored ? 2e-2 : is_integer ? 1e-2 : 0.0;
      const double tolerance =
          std::max(of_integers, 1e-5 + 8.0 * roundoff(device->info().activation_dtype));
      for (size_t i = 0; i < wanted.size(); ++i) CHECK(error_of(got[i], wanted[i]) < tolerance);
      const auto& same = by_group.try_emplace(device_case.bit_group, got).first->second;
      if (!device_case.bit_group.empty()) CHECK(got == same);
    }
  }
}

TEST_CASE("what experts make of a token does not depend on the others") {
  for (const ExpertsSetup& setup : expert_setups()) {
    for (const DeviceCase& device_case : device_cases()) {
      if (device_case.bit_group.empty()) continue;
      INFO(device_case.name << ": " << setup.name);
      const auto device = device_case.make();
      if (!device_case.can_hold(setup.storage_on(*device))) continue;
      allocate_experts_state(*device, setup);
      ExpertLayer layer(*device, setup);
      const Floats all = layer.run(0, setup.num_tokens).back();
      for (int64_t token = 0; token < setup.num_tokens; token += 5) {
        const Floats alone = layer.run(token, 1).back();
        const auto begin = all.begin() + token * setup.hidden;
        CHECK(alone == Floats(begin, begin + setup.hidden));
      }
    }
  }
}

}  // namespace tgi
