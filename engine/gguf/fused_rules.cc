#include "engine/gguf/fused_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace tgi::gguf {
namespace {

struct Part {
  std::string stored;
  int64_t num_rows;
};

[[noreturn]] void fail_rows(const GgufTensor& tensor, int64_t num_rows, const std::string& parts) {
  throw Error(Code::kInvalidArgument,
              fmt::format("tensor {} has {} rows, which can't be those of {}", tensor.name,
                          num_rows, parts));
}

// What is behind q is halved: keys and values have as many rows.
std::vector<Part> parts_of_qkv(const ModelReader& model,
                               std::string_view layer,
                               const GgufTensor& tensor) {
  const GgufTensor* const output =
      model.find_tensor(fmt::format("blk.{}.attn_output.weight", layer));
  if (output == nullptr) return {};
  const int64_t q_rows = model.q_rows_of_output * output->shape.back();
  const int64_t others = tensor.shape.front() - q_rows;
  if (others < 2 || others % 2 != 0) {
    fail_rows(tensor, tensor.shape.front(),
              fmt::format("{} of q and as many of k as of v", q_rows));
  }
  return {{"blk.{layer}.attn_q", q_rows},
          {"blk.{layer}.attn_k", others / 2},
          {"blk.{layer}.attn_v", others / 2}};
}

std::vector<Part> parts_of_experts(const GgufTensor& tensor) {
  const int64_t num_rows = tensor.shape.size() > 1 ? tensor.shape[1] : 0;
  if (num_rows < 2 || num_rows % 2 != 0) fail_rows(tensor, num_rows, "gate and up");
  return {{"blk.{layer}.ffn_gate_exps", num_rows / 2}, {"blk.{layer}.ffn_up_exps", num_rows / 2}};
}

// The part's own order of its rows, which are those of the whole from `first` on.
RowOrder order_in_whole(const GgufTensor& tensor,
                        const RowOrder& own,
                        int64_t first,
                        int64_t count) {
  if (!own.rows) return rows_of(first, count);
  if (own.count > count) {
    fail_rows(tensor, tensor.shape.front(), fmt::format("a part of {} rows", own.count));
  }
  return {.name = fmt::format("{}, from {}", own.name, first),
          .count = count,
          .rows = [rows = own.rows, first] {
            std::vector<int32_t> out = rows();
            for (int32_t& row : out) row += static_cast<int32_t>(first);
            return out;
          }};
}

}  // namespace

std::vector<TensorRule> rules_of_parts(const ModelReader& model,
                                       std::string_view stem,
                                       std::string_view layer,
                                       const GgufTensor& tensor) {
  std::vector<Part> parts;
  if (stem == "blk.{layer}.attn_qkv") parts = parts_of_qkv(model, layer, tensor);
  if (stem == "blk.{layer}.ffn_gate_up_exps") parts = parts_of_experts(tensor);
  std::vector<TensorRule> out;
  int64_t first = 0;
  for (const auto& [stored, num_rows] : parts) {
    const auto found = std::ranges::find(model.rules, stored, &TensorRule::stored);
    if (found == model.rules.end()) return {};
    TensorRule rule = *found;
    rule.order = order_in_whole(tensor, found->order, first, num_rows);
    out.push_back(std::move(rule));
    first += num_rows;
  }
  return out;
}

}  // namespace tgi::gguf
