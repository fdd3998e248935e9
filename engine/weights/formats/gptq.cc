// Integers as AutoGPTQ and GPTQModel store them:
//   qweight  I32 (in * bits / 32, out)     a word holds consecutive inputs of one output
//   qzeros   I32 (groups, out * bits / 32)  consecutive outputs; less one in the first layout
//   scales   (groups, out)
//   g_idx    I32 (in), the group of each input; may be absent when they are in order
// Words follow each other as one string of bits: of 3 bits 32 codes are in three words, and some in
// two of them. With desc_act the inputs of a group are scattered, so such matrices are decoded.
// Marlin's layout is another one: gptq_marlin.h.
//
// Source: https://github.com/AutoGPTQ/AutoGPTQ, https://github.com/ModelCloud/GPTQModel
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/auto_round.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/gptq_marlin.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace gptq_format {
namespace {

struct GptqConfig {
  int32_t bits = 4;
  int64_t group_size = 128;  // 0: one per row
  bool symmetric = true;
  bool act_order = false;
  bool zeros_less_one = true;
  bool is_marlin = false;
  bool quantises_head = false;
  std::vector<std::string> modules{};        // (optional) that alone are quantised
  std::vector<std::string> plain_modules{};  // that are not

  // The fewest codes that fill whole words.
  int64_t per_words() const { return 32 % bits == 0 ? 32 / bits : 32; }
  int64_t words_of(int64_t codes) const { return codes * bits / 32; }
  uint32_t mask() const { return (1U << bits) - 1; }
  int32_t offset() const { return 1 << (bits - 1); }  // of a stored code to a signed one
};

constexpr auto kFields = std::to_array<KnownField>({
    read("bits"),
    read_or_null("group_size"),
    read_or_null("sym"),
    read_or_null("desc_act"),
    read_or_null("checkpoint_format"),
    read_or_null("format"),
    read_or_null("is_marlin_format"),
    read_or_null("lm_head"),
    read_or_null("modules_in_block_to_quantize"),
    harmless_if("modules_to_not_convert",
                "[[]]",
                "what is quantised is said by modules_in_block_to_quantize"),
    harmless("backend", "chooses how the same sums are computed"),
});

[[noreturn]] void unsupported(const JsonReader& quantization,
                              std::string_view key,
                              const std::string& message) {
  throw Error(Code::kUnsupported, fmt::format("{}: gptq {}", quantization.path_of(key), message));
}

// [["self_attn.q_proj", ...], ...], or one list.
std::vector<std::string> read_modules(const JsonReader& quantization) {
  constexpr std::string_view kKey = "modules_in_block_to_quantize";
  std::vector<std::string> out;
  if (!quantization.has(kKey)) return out;
  const auto add = [&](const auto& self, const Json& value) -> void {
    if (value.is_string()) return out.push_back(value.get<std::string>());
    if (!value.is_array()) unsupported(quantization, kKey, "takes a list of names");
    for (const Json& item : value) self(self, item);
  };
  add(add, quantization.json().at(std::string(kKey)));
  return out;
}

// What AutoGPTQ, GPTQModel and AutoRound say by the same fields.
GptqConfig read_sizes(const JsonReader& quantization) {
  GptqConfig out;
  const int64_t bits = quantization.integer("bits");
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
    unsupported(quantization, "bits",
                fmt::format("with {} bits can't be loaded; supported: 2, 3, 4, 8", bits));
  }
  out.bits = static_cast<int32_t>(bits);
  out.group_size = read_group_size(quantization, "group_size", 128);
  out.symmetric = quantization.boolean_or("sym", true);
  return out;
}

GptqConfig read_gptq(const JsonReader& quantization) {
  GptqConfig out = read_sizes(quantization);
  out.act_order = quantization.boolean_or("desc_act", false);
  // Newer tools say `format`, most of them both.
  const std::string_view key = name_in_use(quantization, {"checkpoint_format", "format"});
  const std::string layout = ascii_lower(quantization.string_or(key, "gptq"));
  if (layout != "gptq" && layout != "gptq_v2" && layout != "marlin") {
    unsupported(quantization, key,
                fmt::format("in the layout '{}' can't be loaded; supported: gptq, gptq_v2, marlin",
                            layout));
  }
  out.zeros_less_one = layout == "gptq";
  out.is_marlin = layout == "marlin" || quantization.boolean_or("is_marlin_format", false);
  if (out.is_marlin && (out.bits != 4 || !out.symmetric || out.act_order)) {
    unsupported(quantization, quantization.has(key) ? key : "is_marlin_format",
                "in marlin's layout has 4 bits, no zero points (sym) and no desc_act");
  }
  out.quantises_head = quantization.boolean_or("lm_head", false);
  out.modules = read_modules(quantization);
  return out;
}

GptqConfig read_gptq_of_auto_round(const JsonReader& quantization) {
  AutoRoundConfig auto_round = read_auto_round(quantization);
  GptqConfig out = read_sizes(quantization);
  out.zeros_less_one = auto_round.format == "gptq";
  out.plain_modules = std::move(auto_round.plain_modules);
  return out;
}

GptqConfig read_gptq(const Json& config) {
  const JsonReader quantization = quantization_of(config);
  return is_auto_round(JsonReader(config, "")) ? read_gptq_of_auto_round(quantization)
                                               : read_gptq(quantization);
}

bool claims_auto_round(const JsonReader& quantization) {
  if (!read_auto_round(quantization).format.starts_with("gptq")) return false;
  (void)read_gptq_of_auto_round(quantization);
  check_auto_round(quantization);
  return true;
}

bool claims(const JsonReader& config) {
  if (is_auto_round(config)) return claims_auto_round(quantization_of(config));
  if (quant_method_of(config) != "gptq") return false;
  const JsonReader quantization = quantization_of(config);
  (void)read_gptq(quantization);
  check_quantization(quantization, kFields, "gptq");
  return true;
}

bool is_quantised(const GptqConfig& gptq, const MatrixSpec& spec) {
  if (spec.kind == MatrixKind::kEmbedding) return false;
  if (spec.kind == MatrixKind::kHead) return gptq.quantises_head;
  if (is_left_plain(gptq.plain_modules, module_name(spec))) return false;
  return gptq.modules.empty() || any_is_part_of_module(gptq.modules, module_name(spec));
}

bool is_plain(const GptqConfig& gptq, const Checkpoint& checkpoint, const MatrixSpec& spec) {
  return !is_quantised(gptq, spec) ||
         is_plain_choice(checkpoint, spec, {"qweight", "qzeros", "scales", "g_idx", "B", "s"});
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  const GptqConfig gptq = read_gptq(config);
  if (!is_quantised(gptq, spec)) return {};
  return {.quantised_as =
              fmt::format("gptq with {} bits{}", gptq.bits, gptq.act_order ? " and act-order" : ""),
          .bits = gptq.act_order ? 0 : std::max(gptq.bits, 4),
          .group_size = gptq.group_size,
          .zero_points = !gptq.symmetric};
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const GptqConfig gptq = read_gptq(config);
  if (is_plain(gptq, checkpoint, spec)) return collect_dense(checkpoint, spec, problems);
  if (gptq.is_marlin) return collect_marlin(checkpoint, spec, gptq.group_size, problems);
  const int64_t per_words = gptq.per_words();
  const int64_t group_size = gptq.group_size == 0 ? spec.cols : gptq.group_size;
  const int64_t groups = (spec.cols + group_size - 1) / group_size;
  if (spec.cols % per_words != 0 || spec.rows % per_words != 0) {
    problems.misshapen.push_back(fmt::format("{}: ({}, {}) can't be packed by {}", spec.name,
                                             spec.rows, spec.cols, per_words));
    return {};
  }
  ArrayCollector arrays(checkpoint, spec, problems);
  arrays.require("qweight", {"I32", "U32"}, {{gptq.words_of(spec.cols), spec.rows}});
  arrays.require("qzeros", {"I32", "U32"}, {{groups, gptq.words_of(spec.rows)}});
  arrays.require("scales", {"F16", "BF16", "F32"}, {{groups, spec.rows}});
  if (gptq.act_order) {
    arrays.require("g_idx", {"I32", "U32"}, {{spec.cols}});
  } else {
    arrays.allow("g_idx", {"I32", "U32"}, {{spec.cols}});
  }
  return arrays.take();
}

// The groups of the block's columns. With act-order any of the matrix's; else what the config says,
// which g_idx must agree with.
int64_t read_groups(const GptqConfig& gptq,
                    const MatrixSpec& spec,
                    const Checkpoint& checkpoint,
                    const StoredTensor* g_idx,
                    Range cols,
                    DecodedBlock& block) {
  const int64_t first = block.cut_groups(cols, gptq.group_size, !gptq.symmetric);
  if (g_idx == nullptr) return first;
  const int64_t group_size = gptq.group_size == 0 ? spec.cols : gptq.group_size;
  const int64_t groups = (spec.cols + group_size - 1) / group_size;
  const ArrayReader reader(checkpoint, *g_idx);
  for (int64_t col = 0; col < cols.count; ++col) {
    const auto group = static_cast<int32_t>(reader.word(cols.begin + col));
    if (group < 0 || group >= groups) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensor {}: column {} belongs to group {}, but there are {}",
                              reader.name(), cols.begin + col, group, groups));
    }
    int32_t& expected = block.group_of[static_cast<size_t>(col)];
    if (!gptq.act_order && group != expected + first) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensor {}: column {} belongs to group {}, expected {} as "
                              "desc_act is false; set desc_act in quantization_config to true",
                              reader.name(), cols.begin + col, group, expected + first));
    }
    if (gptq.act_order) expected = group;
  }
  if (!gptq.act_order) return first;
  block.num_groups = groups;
  block.scales.resize(static_cast<size_t>(block.rows * groups));
  if (!gptq.symmetric) block.zeros.resize(block.scales.size());
  return 0;
}

// The bits from code `index` on of words that lie `stride` apart, those of the code at least.
uint32_t bits_from(const GptqConfig& gptq,
                   const ArrayReader& words,
                   int64_t first,
                   int64_t stride,
                   int64_t index) {
  const int64_t bit = index * gptq.bits;
  return words.bits_from(first + bit / 32 * stride, stride, static_cast<int32_t>(bit % 32),
                         gptq.bits);
}

void read_scales(const GptqConfig& gptq,
                 const MatrixSpec& spec,
                 const ArrayReader& scales,
                 const ArrayReader& zeros,
                 Range rows,
                 int64_t first_group,
                 DecodedBlock& block) {
  for (int64_t group = 0; group < block.num_groups; ++group) {
    for (int64_t row = 0; row < rows.count; ++row) {
      const int64_t line = first_group + group;
      const int64_t column = rows.begin + row;
      const auto to = static_cast<size_t>(row * block.num_groups + group);
      block.scales[to] = scales.number(line * spec.rows + column);
      uint32_t stored = bits_from(gptq, zeros, line * gptq.words_of(spec.rows), 1, column);
      if (gptq.zeros_less_one) ++stored;
      const int32_t zero = static_cast<int32_t>(stored & gptq.mask()) - gptq.offset();
      if (!gptq.symmetric) {
        block.zeros[to] = static_cast<int8_t>(zero);
      } else if (zero != 0) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("tensor {}: the zero point of group {}, output {} is {}, expected "
                                "{} as sym is true; set sym in quantization_config to false",
                                zeros.name(), line, column, zero + gptq.offset(), gptq.offset()));
      }
    }
  }
}

// A tile of outputs at a time, so that the rows that are written stay in the cache.
void read_codes(const GptqConfig& gptq,
                const MatrixSpec& spec,
                const ArrayReader& weights,
                Range rows,
                Range cols,
                DecodedBlock& block) {
  constexpr int64_t kTile = 64;
  const uint32_t mask = gptq.mask();
  // Codes that are taken from one word.
  const int64_t per_word = 32 % gptq.bits == 0 ? 32 / gptq.bits : 1;
  const int64_t num_tiles = (rows.count + kTile - 1) / kTile;
  decode_parallel(num_tiles, kTile * cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t last = std::min(rows.count, (tile + 1) * kTile);
      int64_t col = 0;
      while (col < cols.count) {
        const int64_t stored = cols.begin + col;
        const int64_t count = std::min(per_word - stored % per_word, cols.count - col);
        for (int64_t row = tile * kTile; row < last; ++row) {
          uint32_t word = bits_from(gptq, weights, rows.begin + row, spec.rows, stored);
          int8_t* to = block.codes.data() + row * cols.count + col;
          for (int64_t i = 0; i < count; ++i, word >>= gptq.bits) {
            to[i] = static_cast<int8_t>(static_cast<int32_t>(word & mask) - gptq.offset());
          }
        }
        col += count;
      }
    }
  });
}

HostWeight slice(const Json& config,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  const GptqConfig gptq = read_gptq(config);
  if (is_plain(gptq, checkpoint, spec)) {
    return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  }
  DecodedBlock block(spec.name, rows, cols);
  if (gptq.is_marlin) {
    const int64_t first = block.cut_groups(cols, gptq.group_size, false);
    read_marlin(checkpoint, spec, tensors, rows, cols, first, block);
    return to_host_weight(std::move(block), storage);
  }
  const int64_t first_group =
      read_groups(gptq, spec, checkpoint, find_array(tensors, "g_idx"), cols, block);
  const ArrayReader scales(checkpoint, *find_array(tensors, "scales"));
  const ArrayReader zeros(checkpoint, *find_array(tensors, "qzeros"));
  read_scales(gptq, spec, scales, zeros, rows, first_group, block);
  const ArrayReader weights(checkpoint, *find_array(tensors, "qweight"));
  read_codes(gptq, spec, weights, rows, cols, block);
  return to_host_weight(std::move(block), storage);
}

// AutoGPTQ gives every matrix a bias; of those that had none it is zero.
bool may_ignore(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  if (is_marlin_workspace(tensor.name)) return true;
  if (!tensor.name.ends_with(".bias")) return false;
  const bool is_zero = std::ranges::all_of(checkpoint.bytes(tensor),
                                           [](std::byte byte) { return byte == std::byte{0}; });
  checkpoint.release(tensor);
  return is_zero;
}

}  // namespace
}  // namespace gptq_format

template <>
const WeightFormat& weight_format<"gptq">() {
  static constexpr WeightFormat kThis = {
      .name = "gptq",
      .claims = gptq_format::claims,
      .form_of = gptq_format::form_of,
      .collect = gptq_format::collect,
      .slice = gptq_format::slice,
      .may_ignore = gptq_format::may_ignore,
  };
  return kThis;
}

}  // namespace tgi
