#include "engine/quantize/gguf/file_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "engine/gguf/model_reader.h"
#include "engine/gguf/tensor_places.h"
#include "engine/gguf/tokenizer_fields.h"
#include "engine/model/gguf_model_fields.h"
#include "engine/quantize/gguf/config_differences.h"
#include "engine/quantize/gguf/loader_rules.h"

namespace tgi {
namespace {

constexpr size_t kMaxListed = 12;

[[noreturn]] void unsupported(const GgufFilePlan& plan, const std::string& why) {
  throw Error(Code::kUnsupported,
              fmt::format("a GGUF file of the architecture {} can't hold this model: {}",
                          plan.architecture, why));
}

const gguf::GgufArchitecture& find_reader(std::string_view name) {
  for (const gguf::GgufArchitecture& one : gguf::gguf_architectures()) {
    if (one.name == name) return one;
  }
  throw Error(Code::kInternal, fmt::format("nothing reads {}", name));
}

// Sizes of 1 say nothing, but for the first: that there is one head, say.
std::vector<int64_t> without_ones(std::vector<int64_t> shape) {
  shape.erase(std::remove(shape.begin() + 1, shape.end(), 1), shape.end());
  return shape;
}

std::vector<int64_t> shape_of(const TensorEntry& entry) {
  if (entry.is_vector()) return without_ones(entry.vector_shape());
  return {entry.rows, entry.cols};
}

// order[r] is where row r of the model is stored; nothing where that leaves rows out.
std::optional<std::vector<int32_t>> inverse(const std::vector<int32_t>& order, int64_t num_rows) {
  std::vector<int32_t> out(static_cast<size_t>(num_rows), -1);
  if (order.size() != out.size()) return std::nullopt;
  for (size_t row = 0; row < order.size(); ++row) {
    if (order[row] < 0 || order[row] >= num_rows) return std::nullopt;
    out[static_cast<size_t>(order[row])] = static_cast<int32_t>(row);
  }
  if (std::ranges::find(out, -1) != out.end()) return std::nullopt;
  return out;
}

class Planner {
 public:
  Planner(const SourceModel& source, const std::string& name) : source_(source) {
    plan_.architecture = gguf_architecture_of(source.model());
    put_model_fields(source.model(), plan_.fields);
    plan_.fields.put_text("general.type", "model");
    plan_.fields.put_text("general.name", name);
    constexpr int64_t kQuantizationVersion = 2;  // of ggml's blocks
    plan_.fields.put_integer("general.quantization_version", kQuantizationVersion);
    add_rope_factors();
    state_numbers();
  }

  // The names depend on which tensors there are, which depends on the names: after two or three
  // rounds nothing changes any more.
  void place_tensors() {
    constexpr int kMaxRounds = 5;
    start_with_guess();
    for (int round = 0; round < kMaxRounds; ++round) {
      const std::vector<GgufTensorPlan> before = std::exchange(plan_.tensors, made_);
      place_by(read(before).rules);
      if (names_of(before) == names_of(plan_.tensors)) return;
    }
    unsupported(plan_, "the names of its tensors can't be settled");
  }

  void keep_known_fields() {
    const gguf::ModelReader reader = read(plan_.tensors);
    const std::string prefix = plan_.architecture + ".";
    std::vector<std::string> unknown;
    for (const GgufFields::Field& field : plan_.fields.fields()) {
      if (!field.key.starts_with(prefix)) continue;
      if (!reader.was_asked(std::string_view(field.key).substr(prefix.size())))
        unknown.push_back(field.key);
    }
    for (const std::string& key : unknown) plan_.fields.erase(key);
  }

  void check_read_back() const {
    const gguf::ModelReader reader = read(plan_.tensors);
    reader.check_all_read();
    check_names(reader);
    Json config = reader.config;
    const std::string text = config.dump();
    const auto files =
        open_embedded("the config of the file", {{"config.json", std::as_bytes(std::span(text))}});
    const LoadedConfig again = load_model_config(*files);
    const std::vector<std::string> differences =
        config_differences(source_.model().config, again.config);
    if (!differences.empty()) {
      unsupported(plan_, fmt::format("what it would be read as differs in {}",
                                     fmt::join(differences, "; ")));
    }
    check_loader_rules(plan_, source_.model().config);
  }

  GgufFilePlan take() { return std::move(plan_); }

 private:
  // Which layers have no tensors of their own is not known yet; what readers look at is there.
  void start_with_guess() {
    const ModelConfig& config = source_.model().config;
    plan_.tensors = made_;
    const auto add = [&](const char* name, int64_t rows, int64_t cols) {
      plan_.tensors.push_back({.name = name, .shape = {rows, cols}});
    };
    add("token_embd.weight", config.vocab_size, embedding_cols(config));
    add("blk.0.ffn_up.weight", std::max(config.intermediate_size, 1), config.hidden_size);
    add("blk.0.attn_output.weight", config.hidden_size,
        int64_t{config.num_heads} * config.head_dim);
  }

  static std::set<std::string> names_of(const std::vector<GgufTensorPlan>& tensors) {
    std::set<std::string> out;
    for (const GgufTensorPlan& tensor : tensors) out.insert(tensor.name);
    return out;
  }

  // What the reader makes of the plan. The metadata and the tensors' names are the plan's.
  gguf::ModelReader read(const std::vector<GgufTensorPlan>& tensors) const {
    metadata_ = plan_.fields.metadata();
    seen_.clear();
    for (const GgufTensorPlan& tensor : tensors) {
      seen_.push_back({.name = tensor.name,
                       .type = find_ggml_type("F32"),
                       .shape = tensor.shape,
                       .bytes = std::as_bytes(std::span(tensor.values))});
    }
    gguf::ModelReader reader(metadata_, seen_);
    find_reader(plan_.architecture).read(reader);
    return reader;
  }

  void place_by(std::span<const gguf::TensorRule> rules) {
    std::map<std::string, size_t> stacks;
    std::vector<std::string> without_place;
    std::set<std::pair<std::string, std::string>> placed;
    for (const TensorEntry& entry : source_.table().entries()) {
      if (find_stated(entry) != nullptr) continue;
      const bool is_stacked =
          entry.num_stacked > 0 && !entry.is_vector() && entry.spec->turns.count == 1;
      const auto place =
          gguf::find_place(rules, {entry.name, entry.layer, entry.expert, is_stacked});
      if (!place || entry.stored_names().size() != 1) {
        without_place.push_back(entry.name);
        continue;
      }
      // Values may be what the matrix of keys gives, and that matrix is there already.
      if (!place->is_of_stack && !placed.emplace(place->stored, entry.name).second) continue;
      GgufTensorPlan tensor{.name = place->stored, .shape = shape_of(entry), .sources = {&entry}};
      if (!place->is_bias) tensor.change = place->rule->change;
      if (place->rule->order.rows) {
        const auto rows = inverse(place->rule->order.rows(), tensor.shape.front());
        if (!rows) {
          without_place.push_back(entry.name);
          continue;
        }
        tensor.rows = *rows;
      }
      if (!place->is_of_stack) {
        plan_.tensors.push_back(std::move(tensor));
        continue;
      }
      const auto [it, is_first] = stacks.emplace(tensor.name, plan_.tensors.size());
      if (is_first) {
        tensor.shape.insert(tensor.shape.begin(), 0);
        plan_.tensors.push_back(std::move(tensor));
      } else {
        plan_.tensors[it->second].sources.push_back(&entry);
      }
      ++plan_.tensors[it->second].shape.front();
    }
    unplaced_ = std::move(without_place);
  }

  // Everything has a place, and what the reader looks for under those names is what was put there.
  void check_names(const gguf::ModelReader& reader) const {
    if (!unplaced_.empty()) {
      std::vector<std::string> listed = unplaced_;
      listed.resize(std::min(listed.size(), kMaxListed));
      unsupported(plan_, fmt::format("{} tensors have no place in it: {}{}", unplaced_.size(),
                                     fmt::join(listed, ", "),
                                     unplaced_.size() > kMaxListed ? ", ..." : ""));
    }
    const Json index = reader.make_index().index.at("tensors");
    for (const TensorEntry& entry : source_.table().entries()) {
      if (find_stated(entry) == nullptr && !index.contains(entry.name)) {
        unsupported(plan_, fmt::format("it would be read without {}", entry.name));
      }
    }
  }

  // Frequencies of layers that see everything, of which the later ones turn nothing.
  void add_proportional_factors() {
    const ModelConfig& config = source_.model().config;
    for (const LayerPlan& layer : config.layers) {
      if (layer.sliding_window > 0 || layer.rope == kNoRope) continue;
      const RopeSpec& rope = config.ropes[static_cast<size_t>(layer.rope)];
      if (std::ranges::find(rope.inv_freq, 0.0F) == rope.inv_freq.end()) return;
      constexpr float kNever = 1e30F;
      std::vector<float> factors;
      for (const float frequency : rope.inv_freq) factors.push_back(frequency == 0 ? kNever : 1.0F);
      return add_made("rope_freqs.weight", std::move(factors));
    }
  }

  // Divisors of frequencies that no field can say: Llama 3's, and what LongRoPE lists.
  void add_rope_factors() {
    add_proportional_factors();
    const Json& json = source_.model().json;
    Json scaling = json.value("rope_scaling", Json());
    if (!scaling.is_object()) scaling = json.value("rope_parameters", Json());
    if (!scaling.is_object()) return;
    const std::string type = scaling.value("rope_type", scaling.value("type", std::string()));
    if (type == "llama3") {
      const RopeSpec& rope = source_.model().config.ropes.front();
      std::vector<float> factors;
      for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
        const double plain =
            std::pow(double{rope.base}, -2.0 * static_cast<double>(i) / rope.rotary_dim);
        factors.push_back(static_cast<float>(plain / rope.inv_freq[i]));
      }
      add_made("rope_freqs.weight", std::move(factors));
    }
    if (type != "longrope" && type != "su") return;
    add_made("rope_factors_long.weight", scaling.at("long_factor").get<std::vector<float>>());
    add_made("rope_factors_short.weight", scaling.at("short_factor").get<std::vector<float>>());
    const Json original = json.value("original_max_position_embeddings",
                                     scaling.value("original_max_position_embeddings", Json()));
    if (original.is_number()) {
      plan_.fields.put_integer(plan_.architecture + ".rope.scaling.original_context_length",
                               original.get<int64_t>());
    }
    plan_.fields.put_number(plan_.architecture + ".rope.scaling.attn_factor",
                            source_.model().config.ropes.front().attention_factor);
  }

  // Tensors of one number in each layer that files have as lists of their metadata.
  struct StatedNumber {
    Role role;
    const char* key;
  };
  static const StatedNumber* find_stated(const TensorEntry& entry) {
    static constexpr StatedNumber kStated[] = {{Role::kXieluAlphaP, gguf::kXieluFields[0]},
                                               {Role::kXieluAlphaN, gguf::kXieluFields[1]},
                                               {Role::kXieluBeta, gguf::kXieluFields[2]},
                                               {Role::kXieluEps, gguf::kXieluFields[3]}};
    const auto* const it = std::ranges::find(kStated, entry.spec->role, &StatedNumber::role);
    return it == std::end(kStated) ? nullptr : it;
  }

  void state_numbers() {
    std::map<std::string_view, std::vector<float>> lists;
    for (const TensorEntry& entry : source_.table().entries()) {
      const StatedNumber* const stated = find_stated(entry);
      if (stated != nullptr) lists[stated->key].push_back(source_.read_vector(entry).front());
    }
    for (const auto& [key, values] : lists) plan_.fields.put_numbers(key, values);
  }

  void add_made(const char* name, std::vector<float> values) {
    made_.push_back({.name = name,
                     .shape = {static_cast<int64_t>(values.size())},
                     .values = std::move(values)});
  }

  const SourceModel& source_;
  GgufFilePlan plan_;
  std::vector<GgufTensorPlan> made_;
  std::vector<std::string> unplaced_;
  mutable GgufMetadata metadata_;         // what the reader
  mutable std::vector<GgufTensor> seen_;  // was given last
};

}  // namespace

GgufFilePlan plan_gguf_tensors(const SourceModel& source, const std::string& name) {
  Planner planner(source, name);
  planner.place_tensors();
  planner.keep_known_fields();
  planner.check_read_back();
  return planner.take();
}

GgufFilePlan plan_gguf_file(const SourceModel& source,
                            const FileSource& files,
                            const Tokenizer& tokenizer,
                            const std::string& name) {
  GgufFilePlan plan = plan_gguf_tensors(source, name);
  gguf::put_tokenizer({.files = files,
                       .tokenizer = tokenizer,
                       .vocab_size = source.model().config.vocab_size,
                       .end_ids = source.model().config.eos_token_ids},
                      plan.fields);
  return plan;
}

}  // namespace tgi
