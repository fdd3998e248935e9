// Adapters that PEFT wrote (scripts/golden/make_adapters), merged into the weights of their bases:
// the logits have to be those that PEFT computed. This checks what is read of them: which linear,
// which numbers, which scale.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>

#include "engine/lora/adapter_files.h"
#include "tests/lora/adapter_builder.h"
#include "tests/model/fake_device.h"
#include "tests/promises/engine_fixture.h"

namespace tgi {
namespace {

const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/";

std::vector<double> doubles_of(const Checkpoint& checkpoint, const Factor& factor) {
  const std::vector<float> values = read_factor(checkpoint, factor);
  return {values.begin(), values.end()};
}

std::vector<double> doubles_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const auto bytes = checkpoint.bytes(tensor);
  const size_t size = dtype_size(*tensor.dtype);
  std::vector<double> out(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<double>(stored_float(bytes.data() + i * size, *tensor.dtype));
  }
  return out;
}

// The tensors of a checkpoint, to be changed.
class MergedModel {
 public:
  MergedModel(const FileSource& files, const LoadedConfig& model)
      : model_(model), sites_(model), json_(parse_json(files.require_text("config.json"))) {
    const auto base = open_checkpoint(files);
    for (const std::string_view name : base->names()) {
      const StoredTensor& tensor = *base->find(name);
      const auto bytes = base->bytes(tensor);
      tensors_[std::string(name)] = {
          tensor.name, std::string(tensor.dtype_name),
          "[" + shape_text(tensor.shape).substr(1, shape_text(tensor.shape).size() - 2) + "]",
          std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
    }
    base_ = open_checkpoint(files);
  }

  // Whether it can be: an offset needs a bias of the model's own.
  bool merge(const AdapterFiles& adapter, const AdapterLinear& linear) {
    const SitePart& part = linear.parts.front();
    const bool is_expert = part.expert != SitePart::kNone;
    const ModuleTarget& target =
        is_expert ? sites_.expert_target(part) : *sites_.find(linear.module);
    const auto outputs = static_cast<size_t>(target.outputs);
    const auto gain = [&](size_t out) {
      return linear.gain.empty() ? 1.0 : static_cast<double>(linear.gain[out]);
    };
    if (!merge_bias(linear, outputs, gain)) return false;
    if (!linear.a) return true;
    const StoredTensor* stored = find_by_any_name(*base_, target.name, model_.architecture->prefix);
    REQUIRE(stored != nullptr);
    const bool is_alone = !is_expert && part.rows.count == 0;
    std::vector<double> weight = is_alone ? doubles_of(*base_, *stored) : left_weight(*stored);
    const std::vector<double> a = doubles_of(*adapter.tensors, linear.a);
    const std::vector<double> b = doubles_of(*adapter.tensors, linear.b);
    const auto first = static_cast<size_t>(target.first);
    const auto rank = static_cast<size_t>(linear.rank);
    const auto inputs = static_cast<size_t>(target.inputs);
    const bool is_head = linear.parts.front().role == Role::kLmHead;
    if (target.is_embedding()) keep_head(*stored);
    const bool is_transposed =
        target.is_embedding() || (!is_head && is_stored_transposed(linear.parts.front()));
    for (size_t out = 0; out < outputs; ++out) {
      for (size_t in = 0; in < inputs; ++in) {
        double sum = 0;
        for (size_t r = 0; r < rank; ++r) sum += b[out * rank + r] * a[r * inputs + in];
        double& value = weight[first + (is_transposed ? in * outputs + out : out * inputs + in)];
        value = gain(out) * (value + static_cast<double>(linear.scale) * sum);
      }
    }
    // A tied head parts from the embedding.
    const bool parts = is_head && model_.config.tied_embeddings;
    if (parts) json_["tie_word_embeddings"] = false;
    TestTensor merged = tensors_.at(stored->name);
    merged.name = parts ? "lm_head.weight" : stored->name;
    merged.dtype = "F32";
    merged.data = f32_bytes({weight.begin(), weight.end()});
    tensors_[merged.name] = std::move(merged);
    return true;
  }

  MemorySource files() const {
    std::vector<TestTensor> all;
    for (const auto& [name, tensor] : tensors_) all.push_back(tensor);
    return MemorySource(
        {{"config.json", json_.dump()}, {"model.safetensors", build_safetensors(all)}});
  }

 private:
  // As other modules of the same tensor have left it.
  std::vector<double> left_weight(const StoredTensor& stored) const {
    const TestTensor& tensor = tensors_.at(stored.name);
    if (tensor.dtype != "F32") return doubles_of(*base_, stored);
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return {values.begin(), values.end()};
  }

  // A head that is tied to the embedding stays as it was.
  void keep_head(const StoredTensor& embedding) {
    if (!model_.config.tied_embeddings || tensors_.contains("lm_head.weight")) return;
    json_["tie_word_embeddings"] = false;
    TestTensor head = tensors_.at(embedding.name);
    head.name = "lm_head.weight";
    tensors_["lm_head.weight"] = std::move(head);
  }

  template <typename Gain>
  bool merge_bias(const AdapterLinear& linear, size_t outputs, const Gain& gain) {
    const ModuleTarget* target = sites_.find(linear.module + ".bias");
    if (target == nullptr) return linear.offset.empty();
    TestTensor merged =
        tensors_.at(find_by_any_name(*base_, target->name, model_.architecture->prefix)->name);
    std::vector<double> bias = doubles_of(*base_, *base_->find(merged.name));
    REQUIRE(bias.size() == outputs);
    for (size_t i = 0; i < outputs; ++i) {
      bias[i] *= gain(i);
      if (!linear.offset.empty()) bias[i] += static_cast<double>(linear.offset[i]);
    }
    merged.dtype = "F32";
    merged.data = f32_bytes({bias.begin(), bias.end()});
    tensors_[merged.name] = std::move(merged);
    return true;
  }

  bool is_stored_transposed(const SitePart& part) const {
    return TensorTable(model_).find(part.role, part.layer)->spec->transposed;
  }

  const LoadedConfig& model_;
  const ModuleSites sites_;
  Json json_;
  std::unique_ptr<Checkpoint> base_;
  std::map<std::string, TestTensor> tensors_;
};

double log_of_sum(const std::vector<double>& logits) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  return std::log(sum);
}

// The largest difference of a logit from what is expected, as a part of the largest of these.
double difference_of(const FileSource& files, const Json& expected) {
  LoadedFixture loaded = load_workers(files, {});
  double largest = 0;
  for (const Json& one : expected.at("cases")) {
    auto token_ids = one.at("prompt_ids").get<std::vector<int32_t>>();
    const auto greedy_ids = one.at("greedy_ids").get<std::vector<int32_t>>();
    token_ids.insert(token_ids.end(), greedy_ids.begin(), greedy_ids.end() - 1);
    std::vector<int32_t> positions;
    for (const Json& row : one.at("rows")) positions.push_back(row.at("position").get<int32_t>());
    const auto logprobs =
        all_logprobs(*loaded.workers, token_ids, positions, loaded.model.config.vocab_size,
                     loaded.kv_plan.groups.num_groups());
    for (size_t i = 0; i < positions.size(); ++i) {
      const auto logits = one.at("rows")[i].at("logits").get<std::vector<double>>();
      const double norm = log_of_sum(logits);
      double scale = 0;
      for (const double logit : logits) scale = std::max(scale, std::abs(logit));
      for (size_t id = 0; id < logits.size(); ++id) {
        largest = std::max(largest, std::abs(logits[id] - norm - logprobs[i][id]) / scale);
      }
    }
  }
  return largest;
}

void check_adapter(const std::string& folder) {
  INFO(folder);
  const auto files = open_folder(folder);
  const Json expected = parse_json(files->require_text("expected.json"), 16);
  const auto base_files = open_folder(kGolden + expected.at("base").get<std::string>());
  const LoadedConfig model = load_model_config(*base_files);
  const auto base = open_checkpoint(*base_files);
  const AdapterFiles adapter = open_adapter(*files, model, base.get());
  MergedModel merged(*base_files, model);
  bool is_merged = true;
  std::set<const StoredTensor*> products;
  for (const AdapterLinear& linear : adapter.linears) {
    is_merged = merged.merge(adapter, linear) && is_merged;
    if (linear.a) products.insert(linear.a.tensor);
  }
  if (is_merged) CHECK(difference_of(merged.files(), expected) < 1e-4);
  CHECK(difference_of(*base_files, expected) > 1e-2);  // the adapter says something
  CHECK(read_adapter_facts(*files).num_linears == std::ssize(products));
  CHECK(adapter.facts.num_linears == std::ssize(products));
}

}  // namespace

TEST_CASE("adapters of every kind are read as PEFT wrote them") {
  const char* const only = std::getenv("TGI_GOLDEN_ADAPTER");  // one, by its name
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden + "adapters")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || (only != nullptr && name != only)) continue;
    check_adapter(entry.path().string());
    ++count;
  }
  CHECK((only != nullptr || count >= 20));
}

}  // namespace tgi
