#include "engine/gguf/model_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "engine/gguf/fused_rules.h"

namespace tgi::gguf {
namespace {

constexpr size_t kMaxListed = 20;

// "blk.12.attn_q.weight" is "blk.{layer}.attn_q", layer 12, ".weight".
struct StoredName {
  std::string stem;
  std::string layer{};
  std::string suffix{};
};

StoredName split(std::string_view name) {
  StoredName out;
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (!name.ends_with(suffix)) continue;
    out.suffix = suffix;
    name.remove_suffix(suffix.size());
    break;
  }
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) {
    out.stem = name;
    return out;
  }
  const size_t end = std::min(name.find('.', kBlock.size()), name.size());
  out.layer = name.substr(kBlock.size(), end - kBlock.size());
  out.stem = fmt::format("{}{{layer}}{}", kBlock, name.substr(end));
  return out;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

int64_t bounded(int64_t value, std::string_view key) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (value >= -kMost && value <= kMost) return value;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected at most {}, got {}", key, kMost, value));
}

constexpr std::string_view kExpert = "{expert}";

std::string_view change_name(Change change) {
  return change == Change::kPlusOne ? "plus_one" : "minus_exp";
}

std::string suffix_of(const TensorRule& rule, const StoredName& name) {
  if (!rule.bias_suffix) return name.suffix;
  return name.suffix == ".bias" ? *rule.bias_suffix : "";
}

class IndexMaker {
 public:
  void add(const TensorRule& rule, const StoredName& name, const GgufTensor& tensor) {
    const std::string full = replaced(rule.name, "{layer}", name.layer) + suffix_of(rule, name);
    Json entry = {{"tensor", tensor.name}};
    std::vector<int64_t> shape = rule.shape.empty() ? tensor.shape : rule.shape;
    if (!rule.shape_of_weight.empty() && name.suffix != ".bias") shape = rule.shape_of_weight;
    const bool is_second = name.suffix == ".bias" && full.find("[1]") != std::string::npos;
    if (is_second) {
      second_turns_[full] = tensor.name;
      return;
    }
    if (rule.change != Change::kNone && name.suffix != ".bias")
      entry["change"] = change_name(rule.change);
    const bool is_stack = full.find(kExpert) != std::string::npos;
    if (rule.order.rows) add_order(rule.order, tensor, is_stack ? 1 : 0, entry, shape);
    if (shape.size() >= (is_stack ? 3 : 2)) types_[full] = tensor.type->name;
    if (!is_stack) {
      entry["shape"] = shape;
      put(full, std::move(entry));
      return;
    }
    const int64_t num_experts = shape.front();
    entry["shape"] = std::vector<int64_t>(shape.begin() + 1, shape.end());
    for (int64_t expert = 0; expert < num_experts; ++expert) {
      entry["expert"] = expert;
      put(replaced(full, kExpert, std::to_string(expert)), entry);
    }
  }

  TensorIndex take() {
    join_turns();
    return {.index = {{"tensors", std::move(tensors_)}, {"orders", std::move(orders_)}},
            .types = std::move(types_)};
  }

 private:
  // Vectors whose numbers take turns are one.
  void join_turns() {
    for (const auto& [name, second] : second_turns_) {
      const std::string first = replaced(name, "[1]", "[0]");
      if (!tensors_.contains(first)) {
        throw Error(Code::kInvalidArgument, fmt::format("there is a {}, but no {}", second, first));
      }
      Json entry = std::move(tensors_[first]);
      tensors_.erase(first);
      Json& size = entry["shape"].back();
      size = 2 * size.get<int64_t>();
      entry["turn"] = second;
      put(replaced(name, "[1]", ""), std::move(entry));
    }
  }

  void add_order(const RowOrder& order,
                 const GgufTensor& tensor,
                 size_t dimension,
                 Json& entry,
                 std::vector<int64_t>& shape) {
    const int64_t num_rows = tensor.shape.at(dimension);
    if (order.count < 1 || order.count > num_rows) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensor {} has {} rows; the fields of its architecture ask for {}",
                              tensor.name, num_rows, order.count));
    }
    if (!orders_.contains(order.name)) orders_[order.name] = order.rows();
    entry["order"] = order.name;
    shape.at(dimension) = static_cast<int64_t>(orders_[order.name].size());
  }

  void put(const std::string& name, Json entry) {
    if (tensors_.contains(name)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensors {} and {} are both {}",
                              tensors_[name].at("tensor").get<std::string>(),
                              entry.at("tensor").get<std::string>(), name));
    }
    tensors_[name] = std::move(entry);
  }

  Json tensors_ = Json::object();
  Json orders_ = Json::object();
  Json types_ = Json::object();
  std::map<std::string, std::string> second_turns_;
};

}  // namespace

ModelReader::ModelReader(const GgufMetadata& metadata, std::span<const GgufTensor> tensors)
    : metadata_(metadata), tensors_(tensors), architecture_(metadata.text("general.architecture")) {
  for (const GgufTensor& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
  constexpr int64_t kMost = 100'000;
  num_layers_ = integer("block_count");
  if (num_layers_ < 1 || num_layers_ > kMost) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected 1 to {}, got {}",
                                                    key_of("block_count"), kMost, num_layers_));
  }
}

std::string ModelReader::key_of(std::string_view key) const {
  return fmt::format("{}.{}", architecture_, key);
}

bool ModelReader::has(std::string_view key) const {
  return metadata_.has(key_of(key));
}

std::optional<std::string> ModelReader::asked(std::string_view key) {
  std::string full = key_of(key);
  read_.insert(std::string(key));
  return metadata_.has(full) ? std::optional(std::move(full)) : std::nullopt;
}

int64_t ModelReader::integer(std::string_view key) {
  (void)asked(key);
  return bounded(metadata_.integer(key_of(key)), key_of(key));
}

int64_t ModelReader::positive(std::string_view key) {
  const int64_t value = one_integer(key);
  if (value >= 1) return value;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected 1 or more, got {}", key_of(key), value));
}

std::optional<int64_t> ModelReader::find_integer(std::string_view key) {
  const auto full = asked(key);
  return full ? std::optional(bounded(metadata_.integer(*full), *full)) : std::nullopt;
}

std::optional<double> ModelReader::find_number(std::string_view key) {
  const auto full = asked(key);
  return full ? std::optional(metadata_.number(*full)) : std::nullopt;
}

std::optional<bool> ModelReader::find_boolean(std::string_view key) {
  const auto full = asked(key);
  return full ? std::optional(metadata_.boolean(*full)) : std::nullopt;
}

std::optional<std::string> ModelReader::find_text(std::string_view key) {
  const auto full = asked(key);
  return full ? std::optional(std::string(metadata_.text(*full))) : std::nullopt;
}

std::vector<int64_t> ModelReader::integers_of_layers(std::string_view key) {
  const auto full = asked(key);
  if (!full) return {};
  const auto layers = static_cast<size_t>(num_layers_);
  if (metadata_.find(*full)->type != GgufValueType::kArray) {
    return std::vector<int64_t>(layers, bounded(metadata_.integer(*full), *full));
  }
  std::vector<int64_t> out = metadata_.integers(*full);
  for (const int64_t value : out) bounded(value, *full);
  if (out.size() != layers) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected {} numbers, one for each layer, got {}", *full, layers,
                            out.size()));
  }
  return out;
}

int64_t ModelReader::one_of_layers(std::string_view key) {
  std::vector<int64_t> all = integers_of_layers(key);
  std::erase(all, 0);
  return all.empty() ? 0 : one_of(all, key);
}

int64_t ModelReader::one_integer(std::string_view key) {
  const std::vector<int64_t> all = integers_of_layers(key);
  if (all.empty()) return integer(key);  // says that there is none
  return one_of(all, key);
}

int64_t ModelReader::one_of(const std::vector<int64_t>& all, std::string_view key) const {
  if (std::ranges::adjacent_find(all, std::not_equal_to<>()) != all.end()) {
    throw Error(
        Code::kUnsupported,
        fmt::format(
            "{}: differs from layer to layer, which is not supported for this architecture: {}",
            key_of(key), fmt::join(all, ", ")));
  }
  return all.front();
}

std::vector<double> ModelReader::numbers(std::string_view key) {
  const auto full = asked(key);
  return full ? metadata_.numbers(*full) : std::vector<double>();
}

std::vector<bool> ModelReader::booleans_of_layers(std::string_view key) {
  const auto full = asked(key);
  if (!full || metadata_.find(*full)->type != GgufValueType::kArray) return {};
  std::vector<bool> out = metadata_.booleans(*full);
  if (out.size() == static_cast<size_t>(num_layers_)) return out;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected {} values, one for each layer, got {}", *full, num_layers_,
                          out.size()));
}

const GgufTensor* ModelReader::find_tensor(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

std::optional<int64_t> ModelReader::find_layer_with(std::string_view tensor) const {
  for (int64_t layer = 0; layer < num_layers_; ++layer) {
    if (has_tensor(fmt::format("blk.{}.{}", layer, tensor))) return layer;
  }
  return std::nullopt;
}

const GgufTensor& ModelReader::tensor(std::string_view name) const {
  const GgufTensor* const found = find_tensor(name);
  if (found == nullptr) {
    throw Error(Code::kInvalidArgument, fmt::format("there is no tensor {}", name));
  }
  return *found;
}

std::vector<float> ModelReader::values(std::string_view name) const {
  const GgufTensor& found = tensor(name);
  if (found.type->name != "F32") {
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: expected elements of F32, got {}", name, found.type->name));
  }
  std::vector<float> out(static_cast<size_t>(found.num_elements()));
  std::memcpy(out.data(), found.bytes.data(), found.bytes.size());
  return out;
}

bool ModelReader::is_ignored(std::string_view stem, const std::string& layer) const {
  const bool is_number = !layer.empty() && layer.size() < 9 &&
                         layer.find_first_not_of("0123456789") == std::string::npos;
  if (end_layer_ && is_number && std::stoll(layer) >= *end_layer_) return true;
  return std::ranges::find(ignored_, stem) != ignored_.end();
}

void ModelReader::check_all_read() const {
  std::vector<std::string_view> unknown;
  const std::string prefix = architecture_ + ".";
  for (const std::string_view key : metadata_.keys()) {
    if (!key.starts_with(prefix) || read_.contains(std::string(key.substr(prefix.size()))))
      continue;
    unknown.push_back(key);
  }
  if (unknown.empty()) return;
  throw Error(Code::kUnsupported,
              fmt::format("metadata that this build does not know for this architecture: {}",
                          fmt::join(unknown, ", ")));
}

std::vector<TensorRule> ModelReader::rules_for(std::string_view stem,
                                               std::string_view layer,
                                               const GgufTensor& tensor) const {
  std::vector<TensorRule> out;
  for (const TensorRule& rule : rules) {
    if (rule.stored != stem) continue;
    if (!rule.beside.empty() && !has_tensor(fmt::format("blk.{}.{}", layer, rule.beside))) continue;
    if (rule.only_rows > 0 && tensor.shape.front() != rule.only_rows) continue;
    out.push_back(rule);
  }
  return out.empty() ? rules_of_parts(*this, stem, layer, tensor) : out;
}

TensorIndex ModelReader::make_index() const {
  IndexMaker index;
  std::vector<std::string> unknown;
  for (const GgufTensor& tensor : tensors_) {
    const StoredName name = split(tensor.name);
    if (is_ignored(name.stem, name.layer)) continue;
    bool is_named = false;
    for (const TensorRule& rule : rules_for(name.stem, name.layer, tensor)) {
      index.add(rule, name, tensor);
      is_named = true;
    }
    if (!is_named) unknown.emplace_back(tensor.name);
  }
  if (unknown.empty()) {
    TensorIndex out = index.take();
    out.index["numbers"] = numbers_;
    return out;
  }
  const size_t count = unknown.size();
  unknown.resize(std::min(count, kMaxListed));
  throw Error(
      Code::kUnsupported,
      fmt::format("{} tensors that this build does not know in models of {}: {}{}", count,
                  architecture_, fmt::join(unknown, ", "), count > kMaxListed ? ", ..." : ""));
}

}  // namespace tgi::gguf
