// What an adapter adds against what the loader makes of a weight: with A the identity and B a
// weight as it is stored, the product is the weight, and so has to be what a rank has of it.
#include "engine/lora/adapter_parts.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/model/adapter_sites.h"
#include "engine/model/rank_ranges.h"
#include "tests/catch.h"
#include "tests/lora/adapter_builder.h"
#include "tests/model/fake_device.h"
#include "tests/model/model_files.h"

namespace tgi {
namespace {

float value_at(const HostWeight& weight, int64_t row, int64_t col) {
  const WeightPart& part = weight.parts.at(0);
  const int64_t element = row * part.row_stride + col * part.col_stride;
  return stored_float(part.data + static_cast<size_t>(element) * dtype_size(part.dtype),
                      part.dtype);
}

// (outputs, inputs), of all columns of a stacked linear; what no part adds to is NaN.
struct Product {
  std::vector<float> values;
  int64_t rows = 0;
  int64_t cols = 0;
};

Product product_of(const std::vector<LowRankPart>& parts,
                   int32_t site,
                   int64_t rows,
                   int64_t cols) {
  Product out{.values = std::vector<float>(static_cast<size_t>(rows * cols), std::nanf("")),
              .rows = rows,
              .cols = cols};
  for (const LowRankPart& part : parts) {
    if (part.site != site) continue;
    REQUIRE(part.a.cols == cols);
    REQUIRE(part.first_output + part.num_outputs() <= rows);
    int64_t row = part.first_output;
    for (const HostWeight& piece : part.b) {
      REQUIRE(piece.cols == part.a.rows);
      for (int64_t i = 0; i < piece.rows; ++i, ++row) {
        for (int64_t col = 0; col < cols; ++col) {
          double sum = 0;
          for (int64_t r = 0; r < piece.cols; ++r) {
            sum += static_cast<double>(value_at(piece, i, r)) *
                   static_cast<double>(value_at(part.a, r, col));
          }
          float& value = out.values[static_cast<size_t>(row * cols + col)];
          REQUIRE(std::isnan(value));  // no two parts add to the same
          value = static_cast<float>(sum) * part.scale;
        }
      }
    }
  }
  return out;
}

std::string identity(int64_t size) {
  std::vector<float> values(static_cast<size_t>(size * size), 0.0F);
  for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i * size + i)] = 1.0F;
  return f32_bytes(values);
}

std::string shape(int64_t rows, int64_t cols) {
  return "[" + std::to_string(rows) + "," + std::to_string(cols) + "]";
}

// Every linear of the model as an adapter of full rank, but those that layers share: such adapters
// are refused.
class WholeWeights {
 public:
  WholeWeights(const LoadedConfig& model, const Checkpoint& checkpoint) {
    const TensorTable table(model);
    for (int32_t layer = 0; layer < model.config.num_layers; ++layer) {
      for (size_t linear = 0; linear < static_cast<size_t>(kSitesOfLayer); ++linear) {
        for (const LinearPart& part : linear_parts({.layer = layer, .linear = linear})) {
          const TensorEntry* entry = table.find(part.weight, layer);
          if (entry == nullptr || is_of_shared_layer(*entry->spec, model.config)) continue;
          add(*entry, entry->name, checkpoint);
        }
      }
    }
    for (const TensorEntry& entry : table.entries()) {
      if (entry.spec->role == Role::kLatentUp) add(entry, entry.name, checkpoint);
    }
    if (const TensorEntry* head = table.find(Role::kLmHead)) add(*head, head->name, checkpoint);
    config_["peft_type"] = "LORA";
    config_["use_rslora"] = false;
  }

  MemorySource files() const { return adapter_files(config_, tensors_); }

 private:
  void add(const TensorEntry& entry, const std::string& name, const Checkpoint& checkpoint) {
    if (!seen_.insert(name).second) return;
    const StoredTensor* stored = checkpoint.find(name);
    REQUIRE(stored != nullptr);
    const auto bytes = checkpoint.bytes(*stored);
    const int64_t inputs = entry.cols;
    const int64_t outputs = stored->num_elements() / inputs;
    const bool is_transposed = entry.spec->transposed;
    std::vector<float> values;
    for (int64_t out = 0; out < outputs; ++out) {
      for (int64_t in = 0; in < inputs; ++in) {
        const int64_t at = is_transposed ? in * outputs + out : out * inputs + in;
        values.push_back(stored_float(
            bytes.data() + static_cast<size_t>(at) * dtype_size(*stored->dtype), *stored->dtype));
      }
    }
    checkpoint.release(*stored);
    const std::string suffix = ".weight";
    REQUIRE(name.ends_with(suffix));
    const std::string module = name.substr(0, name.size() - suffix.size());
    REQUIRE(inputs <= kMaxAdapterRank);
    config_["rank_pattern"][module] = inputs;
    config_["alpha_pattern"][module] = inputs;
    tensors_.push_back({"base_model.model." + module + ".lora_A.weight", "F32",
                        shape(inputs, inputs), identity(inputs)});
    tensors_.push_back({"base_model.model." + module + ".lora_B.weight", "F32",
                        shape(outputs, inputs), f32_bytes(values)});
  }

  Json config_ = Json::object();
  std::vector<TestTensor> tensors_;
  std::set<std::string> seen_;
};

const Linear& linear_of(const LayerWeights& layer, size_t linear) {
  return linear < kLayerLinears.size() ? layer.*kLayerLinears[linear].target
                                       : layer.*kOtherLinears[linear - kLayerLinears.size()].target;
}

bool is_shared(const TensorTable& table, const ModelConfig& config, int32_t layer, size_t linear) {
  return std::ranges::any_of(linear_parts({.layer = layer, .linear = linear}),
                             [&](const LinearPart& part) {
                               const TensorEntry* entry = table.find(part.weight, layer);
                               return entry != nullptr && is_of_shared_layer(*entry->spec, config);
                             });
}

bool can_be_dealt_out(const ModelConfig& config, int world_size) {
  try {
    check_world_size(config, world_size);
    return true;
  } catch (const Error&) {
    return false;
  }
}

int check_rank(const LoadedConfig& model,
               const Checkpoint& checkpoint,
               const AdapterFiles& adapter,
               const LoadWeightsOptions& options) {
  FakeDevice device;
  const ModelWeights weights = load_weights(model, checkpoint, device, options);
  const auto parts = adapter_parts(adapter, model, options);
  const TensorTable table(model);
  int num_linears = 0;
  const auto compare = [&](const Matrix* matrix, int32_t site) {
    const bool has_part =
        std::ranges::any_of(parts, [&](const LowRankPart& part) { return part.site == site; });
    CHECK(has_part == (matrix != nullptr));
    if (matrix == nullptr) return;
    INFO(fake(*matrix).names.front());
    const Product product = product_of(parts, site, matrix->rows, matrix->cols);
    CHECK(product.values == fake(*matrix).values);
    ++num_linears;
  };
  for (int32_t layer = 0; layer < model.config.num_layers; ++layer) {
    for (size_t linear = 0; linear < static_cast<size_t>(kSitesOfLayer); ++linear) {
      if (is_shared(table, model.config, layer, linear)) continue;
      compare(linear_of(weights.layers[static_cast<size_t>(layer)], linear).weight.get(),
              site_of(layer, linear));
    }
    const LayerWeights& of_layer = weights.layers[static_cast<size_t>(layer)];
    for (const bool is_value : {false, true}) {
      int32_t head = 0;
      for (const Matrix* matrix : (is_value ? of_layer.value_up : of_layer.key_up).views) {
        compare(matrix, latent_site(model.config, layer, is_value, head++));
      }
    }
  }
  compare(weights.untied_lm_head.get(), head_site(model.config.num_layers));
  return num_linears;
}

void check_folder(const std::filesystem::path& folder, int& num_cut) {
  INFO(folder);
  const auto files = open_folder(folder.string());
  const LoadedConfig model = load_model_config(*files);
  if (model.config.head_division != HeadDivision::kNone) return;
  const auto checkpoint = make_dummy_checkpoint(model, 7);
  const MemorySource adapter_source = WholeWeights(model, *checkpoint).files();
  const AdapterFiles adapter = open_adapter(adapter_source, model);
  for (const int world_size : {1, 2}) {
    if (!can_be_dealt_out(model.config, world_size)) continue;
    for (int rank = 0; rank < world_size; ++rank) {
      INFO("rank " << rank << " of " << world_size);
      const LoadWeightsOptions options{
          .dtype = DType::kF32, .rank = rank, .world_size = world_size};
      CHECK(check_rank(model, *checkpoint, adapter, options) > 0);
      if (world_size > 1) ++num_cut;
    }
  }
}

TEST_CASE("of every family, each rank gets the rows and columns that it has of the weights") {
  int num_folders = 0;
  int num_cut = 0;
  for (const std::string kind : {"models", "families"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(TGI_SOURCE_DIR "/tests/golden/" + kind)) {
      if (!entry.is_directory()) continue;
      check_folder(entry.path(), num_cut);
      ++num_folders;
    }
  }
  CHECK(num_folders >= 200);
  CHECK(num_cut >= 100);
}

// DoRA of every linear, with lengths of 2.
MemorySource doubled_lengths(const LoadedConfig& model) {
  const TensorTable table(model);
  std::vector<TestTensor> tensors;
  std::set<std::string> seen;
  const auto add = [&](const TensorEntry* entry) {
    if (entry == nullptr || !seen.insert(entry->name).second) return;
    const int64_t outputs = entry->rows * entry->spec->turns.count;
    const std::string module =
        "base_model.model." + entry->name.substr(0, entry->name.size() - std::strlen(".weight"));
    const auto waves = [](int64_t count, float size) {
      std::vector<float> values;
      for (int64_t i = 0; i < count; ++i) {
        values.push_back(size * std::sin(static_cast<float>(7 * i)));
      }
      return f32_bytes(values);
    };
    tensors.push_back(
        {module + ".lora_A.weight", "F32", shape(3, entry->cols), waves(3 * entry->cols, 0.5F)});
    tensors.push_back(
        {module + ".lora_B.weight", "F32", shape(outputs, 3), waves(3 * outputs, 0.25F)});
    tensors.push_back({module + ".lora_magnitude_vector", "F32",
                       "[" + std::to_string(outputs) + "]",
                       f32_bytes(std::vector<float>(static_cast<size_t>(outputs), 2.0F))});
  };
  for (int32_t layer = 0; layer < model.config.num_layers; ++layer) {
    for (size_t linear = 0; linear < static_cast<size_t>(kSitesOfLayer); ++linear) {
      for (const LinearPart& part : linear_parts({.layer = layer, .linear = linear})) {
        add(table.find(part.weight, layer));
      }
    }
  }
  add(table.find(Role::kLmHead));
  return adapter_files(Json{{"peft_type", "LORA"}, {"r", 3}, {"lora_alpha", 6}, {"use_dora", true}},
                       tensors);
}

TEST_CASE("lengths are those of the rows as devices get them, quantised or not") {
  int num_quantised = 0;
  int num_parts = 0;
  for (const std::string kind : {"models", "quantised"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(TGI_SOURCE_DIR "/tests/golden/" + kind)) {
      if (!entry.is_directory()) continue;
      INFO(entry.path());
      const auto files = open_folder(entry.path().string());
      const LoadedConfig model = load_model_config(*files);
      const auto base = open_checkpoint(*files);
      FakeDevice device;
      const LoadWeightsOptions options{.dtype = DType::kF32};
      const ModelWeights weights = load_weights(model, *base, device, options);
      const MemorySource source = doubled_lengths(model);
      const AdapterFiles adapter = open_adapter(source, model, base.get());
      for (const LowRankPart& part : adapter_parts(adapter, model, options)) {
        const bool is_head = part.site == head_site(model.config.num_layers);
        const auto layer = static_cast<size_t>(part.site / kSitesOfLayer);
        const auto linear = static_cast<size_t>(part.site % kSitesOfLayer);
        const FakeMatrix& w = fake(is_head ? *weights.untied_lm_head
                                           : *linear_of(weights.layers[layer], linear).weight);
        REQUIRE(std::ssize(part.gain) == part.num_outputs());
        double worst = 0.0;
        int64_t n = 0;
        for (const HostWeight& piece : part.b) {
          for (int64_t i = 0; i < piece.rows; ++i, ++n) {
            double squares = 0.0;
            for (int64_t col = 0; col < w.cols; ++col) {
              auto value = static_cast<double>(w.at(part.first_output + n, col));
              for (int64_t r = 0; r < 3; ++r) {
                value += 2.0 * static_cast<double>(value_at(piece, i, r)) *
                         static_cast<double>(value_at(part.a, r, col));
              }
              squares += value * value;
            }
            const auto gain = static_cast<double>(part.gain[static_cast<size_t>(n)]);
            worst = std::max(worst, std::abs(gain * std::sqrt(squares) / 2.0 - 1.0));
          }
        }
        CHECK(worst < 1e-5);
        ++num_parts;
      }
      if (kind == "quantised") ++num_quantised;
    }
  }
  CHECK(num_quantised >= 15);
  CHECK(num_parts >= 300);
}

TEST_CASE("gains and offsets are cut like rows; where columns are, one rank adds the offset") {
  const LoadedConfig model = load_config(small_llama());
  std::vector<TestTensor> tensors;
  const auto add = [&](const std::string& module, int64_t outputs, int64_t inputs) {
    for (TestTensor& tensor : lora_of(module, outputs, inputs)) tensors.push_back(tensor);
    TestTensor bias = numbers("base_model.model." + module + ".lora_B.bias", 1, outputs);
    bias.shape = "[" + std::to_string(outputs) + "]";
    tensors.push_back(bias);
  };
  add("model.layers.0.self_attn.k_proj", 8, 10);
  add("model.layers.0.self_attn.o_proj", 10, 24);
  Json config = small_adapter_config();
  config["lora_bias"] = true;
  const MemorySource files = adapter_files(config, tensors);
  AdapterFiles adapter = open_adapter(files, model);
  adapter.linears[0].gain = {10, 11, 12, 13, 14, 15, 16, 17};
  adapter.linears[1].gain.assign(10, 3.0F);
  const auto parts_of = [&](int rank) {
    return adapter_parts(adapter, model, {.rank = rank, .world_size = 2});
  };
  const auto first = parts_of(0);
  const auto second = parts_of(1);
  REQUIRE(first.size() == 2);
  REQUIRE(second.size() == 2);
  using Floats = std::vector<float>;
  CHECK(first[0].gain == Floats{10, 11, 12, 13});
  CHECK(second[0].gain == Floats{14, 15, 16, 17});
  CHECK(first[0].offset == Floats{0.0F, 0.25F, 0.5F, 0.75F});
  CHECK(second[0].offset == Floats{1.0F, 1.25F, 1.5F, 1.75F});
  CHECK(first[1].gain == Floats(10, 3.0F));
  CHECK(second[1].gain == Floats(10, 3.0F));
  CHECK(first[1].offset.size() == 10);
  CHECK(second[1].offset.empty());
  // A bias without a product: the second rank has nothing to add.
  for (AdapterLinear& linear : adapter.linears) {
    linear.a = {};
    linear.b = {};
    linear.gain.clear();
  }
  CHECK(parts_of(0).size() == 2);
  CHECK(parts_of(0)[1].num_outputs() == 10);
  CHECK(parts_of(1).size() == 1);
}

TEST_CASE("rows that lie side by side are one piece, and A is cut where the weight's columns are") {
  const LoadedConfig model = load_config(small_llama());
  const MemorySource files = adapter_files(
      small_adapter_config(),
      together({lora_of("model.layers.1.self_attn.o_proj", 10, 24),
                lora_of("model.layers.1.self_attn.v_proj", 8, 10),
                lora_of("model.layers.1.mlp.up_proj", 14, 10), lora_of("lm_head", 11, 10)}));
  const AdapterFiles adapter = open_adapter(files, model);
  const auto parts = adapter_parts(adapter, model, {.rank = 1, .world_size = 2});
  REQUIRE(parts.size() == 4);
  const LowRankPart& v = parts[0];
  CHECK(v.site == site_of(1, 0));
  CHECK(v.first_output == 12 + 4);
  CHECK(v.scale == 2.0F);
  REQUIRE(v.b.size() == 1);
  CHECK(v.b[0].rows == 4);
  CHECK(value_at(v.b[0], 0, 0) == 100.0F + 8.0F / 8.0F);  // the 5th of 8 rows of 2
  CHECK(v.a.cols == 10);
  CHECK(v.a.name == "base_model.model.model.layers.1.self_attn.v_proj.lora_A.weight");
  const LowRankPart& o = parts[1];
  CHECK(o.site == site_of(1, 1));
  CHECK(o.first_output == 0);
  CHECK(o.a.cols == 12);
  CHECK(value_at(o.a, 0, 0) == 12.0F / 8.0F);
  CHECK(o.num_outputs() == 10);
  CHECK(parts[2].site == site_of(1, 2));
  CHECK(parts[2].first_output == 7);
  CHECK(parts[3].site == head_site(2));
  CHECK(parts[3].num_outputs() == 11);
}

TEST_CASE("of the embedding each rank has all, by tokens, as large as embeddings are multiplied") {
  Json config = small_llama();
  config["architectures"] = {"GraniteForCausalLM"};
  config["embedding_multiplier"] = 3.0;
  const LoadedConfig model = load_config(config);
  const std::string module = "base_model.model.model.embed_tokens";
  const MemorySource files =
      adapter_files(small_adapter_config(), {numbers(module + ".lora_embedding_A", 2, 11),
                                             numbers(module + ".lora_embedding_B", 10, 2, 5.0F)});
  const AdapterFiles adapter = open_adapter(files, model);
  for (const int rank : {0, 1}) {
    const auto parts = adapter_parts(adapter, model, {.rank = rank, .world_size = 2});
    REQUIRE(parts.size() == 1);
    const LowRankPart& part = parts[0];
    CHECK(part.is_lookup);
    CHECK(part.site == embedding_site(2));
    CHECK(part.scale == 2.0F * 3.0F);
    CHECK(part.rank() == 2);
    CHECK(part.num_outputs() == 10);
    CHECK(part.a.rows == 11);
    CHECK(value_at(part.a, 4, 1) == (11.0F + 4.0F) / 8.0F);
    CHECK(value_at(part.b.at(0), 9, 1) == 5.0F + 19.0F / 8.0F);
  }
}

TEST_CASE("a model that can't be dealt out is refused") {
  const LoadedConfig model = load_config(small_llama());
  const MemorySource files = adapter_files(small_adapter_config(), lora_of("lm_head", 11, 10));
  const AdapterFiles adapter = open_adapter(files, model);
  refusal_of_action(Code::kInvalidArgument,
                    [&] { adapter_parts(adapter, model, {.rank = 0, .world_size = 4}); });
  refusal_of_action(Code::kInvalidArgument,
                    [&] { adapter_parts(adapter, model, {.rank = 2, .world_size = 2}); });
}

}  // namespace
}  // namespace tgi
