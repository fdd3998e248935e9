#include "engine/weights/ggml/gguf_checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/weights/ggml/gguf_file.h"
#include "engine/weights/ggml/gguf_values.h"

namespace tgi {
namespace {

struct Stored {
  GgufTensor tensor;
  std::string file;
};

using Orders = std::map<std::string, std::vector<int32_t>>;

class GgufCheckpoint final : public Checkpoint {
 public:
  explicit GgufCheckpoint(const FileSource& files) : files_(files) {
    const Json index = parse_json(files.require_text(kGgufIndexFile));
    std::map<std::string, Stored, std::less<>> stored;
    for (const Json& file : index.at("files")) add_file(file.get<std::string>(), stored);
    for (const auto& [name, rows] : index.at("orders").items()) {
      orders_[name] = rows.get<std::vector<int32_t>>();
    }
    for (const auto& [name, entry] : index.at("tensors").items()) {
      const auto it = stored.find(entry.at("tensor").get<std::string>());
      TGI_CHECK(it != stored.end());  // the index is of these files
      const auto turn = stored.find(entry.value("turn", ""));
      add(name, entry, it->second, turn == stored.end() ? nullptr : &turn->second);
    }
    const Json numbers = index.value("numbers", Json::object());
    for (const auto& [name, entry] : numbers.items()) add_number(name, entry);
  }

  const StoredTensor* find(std::string_view name) const override {
    const auto it = records_.find(name);
    return it == records_.end() ? nullptr : &it->second.tensor;
  }

  std::vector<std::string_view> names() const override {
    std::vector<std::string_view> out;
    for (const auto& [name, record] : records_) out.emplace_back(name);
    return out;
  }

  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    return records_.find(tensor.name)->second.bytes;
  }

  void release(const StoredTensor& tensor) const override {
    const Record& record = records_.find(tensor.name)->second;
    if (record.decoded.empty()) files_.release(record.bytes);
  }

 private:
  struct Record {
    StoredTensor tensor;
    std::span<const std::byte> bytes;
    std::vector<float> decoded{};  // what `bytes` are of, unless they are the file's
  };

  void add_file(const std::string& name, std::map<std::string, Stored, std::less<>>& out) {
    const std::string label = files_.describe(name);
    for (GgufTensor& tensor : parse_gguf(files_.require(name), label).tensors) {
      const std::string key(tensor.name);
      const auto [it, is_new] = out.emplace(key, Stored{std::move(tensor), label});
      if (!is_new) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("tensor {} is both in {} and in {}", key, it->second.file, label));
      }
    }
  }

  void add(const std::string& name, const Json& entry, const Stored& stored, const Stored* turn) {
    const GgmlType& type = *stored.tensor.type;
    Record record{.tensor = {.name = name,
                             .dtype_name = type.name,
                             .dtype = native_type(type),
                             .shape = entry.at("shape").get<std::vector<int64_t>>(),
                             .file = stored.file},
                  .bytes = stored.tensor.bytes};
    if (entry.contains("expert")) {
      const size_t size = record.bytes.size() / static_cast<size_t>(stored.tensor.shape.front());
      record.bytes = record.bytes.subspan(entry["expert"].get<size_t>() * size, size);
    }
    if (entry.contains("order")) record.tensor.row_order = orders_.at(entry["order"]);
    check_rows(record, entry, stored);
    check_size(record, entry, stored, turn);
    const bool is_vector = record.tensor.shape.size() != 2;  // or the kernel of a convolution
    if (turn != nullptr) {
      take_turns(record, stored, *turn);
    } else if (entry.contains("change") || (is_vector && !record.tensor.row_order.empty())) {
      decode(record, stored, entry.value("change", ""));
    }
    const auto it = records_.emplace(name, std::move(record)).first;
    if (!it->second.decoded.empty())
      it->second.bytes = std::as_bytes(std::span(it->second.decoded));
  }

  void add_number(const std::string& name, const Json& entry) {
    Record record{.tensor = {.name = name,
                             .dtype_name = "F32",
                             .dtype = DType::kF32,
                             .shape = entry.at("shape").get<std::vector<int64_t>>(),
                             .file = files_.describe(kGgufIndexFile)},
                  .bytes = {},
                  .decoded = {entry.at("value").get<float>()}};
    Record& kept = records_.emplace(name, std::move(record)).first->second;
    kept.bytes = std::as_bytes(std::span(kept.decoded));
  }

  // Of the matrix, or of one of a stack of them.
  static int64_t rows_of_one(const Json& entry, const Stored& stored) {
    const std::vector<int64_t>& shape = stored.tensor.shape;
    return entry.contains("expert") && shape.size() > 1 ? shape[1] : shape.front();
  }

  // Every row that the order names is stored.
  static void check_rows(const Record& record, const Json& entry, const Stored& stored) {
    if (record.tensor.row_order.empty()) return;
    const int64_t num_rows = rows_of_one(entry, stored);
    for (const int32_t row : record.tensor.row_order) {
      if (row >= 0 && row < num_rows) continue;
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: tensor {} has {} rows; its architecture's fields ask for row {}",
                              stored.file, stored.tensor.name, num_rows, row));
    }
  }

  // The fields of an architecture say a shape; what is stored is another matter.
  static void check_size(const Record& record,
                         const Json& entry,
                         const Stored& stored,
                         const Stored* turn) {
    int64_t count = stored.tensor.num_elements();
    if (entry.contains("expert")) count /= stored.tensor.shape.front();
    if (const auto& order = record.tensor.row_order; !order.empty()) {
      count = count / rows_of_one(entry, stored) * static_cast<int64_t>(order.size());
    }
    if (turn != nullptr) count += turn->tensor.num_elements();
    if (record.tensor.num_elements() == count) return;
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: tensor {} has {} elements where its architecture's fields ask for {}",
                    stored.file, stored.tensor.name, count, shape_text(record.tensor.shape)));
  }

  static std::vector<float> values_of(const Stored& stored, std::span<const std::byte> bytes) {
    try {
      return decode_values(stored.tensor, bytes);
    } catch (const Error& error) {
      throw error.in(stored.file);
    }
  }

  static void take_turns(Record& record, const Stored& first, const Stored& second) {
    const std::vector<float> a = values_of(first, first.tensor.bytes);
    const std::vector<float> b = values_of(second, second.tensor.bytes);
    if (a.size() != b.size()) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("{}: tensor {} has {} numbers and {} has {}; expected as many", first.file,
                      first.tensor.name, a.size(), second.tensor.name, b.size()));
    }
    for (size_t i = 0; i < a.size(); ++i) record.decoded.insert(record.decoded.end(), {a[i], b[i]});
    record.tensor.dtype_name = "F32";
    record.tensor.dtype = DType::kF32;
  }

  static void decode(Record& record, const Stored& stored, const std::string& change) {
    const std::vector<float> all = values_of(stored, record.bytes);
    const auto num_values = static_cast<size_t>(record.tensor.num_elements());
    record.decoded.resize(num_values);
    const auto& order = record.tensor.row_order;
    const size_t row_size = order.empty() ? num_values : num_values / order.size();
    for (size_t i = 0; i < num_values; ++i) {
      const size_t row = order.empty() ? 0 : static_cast<size_t>(order[i / row_size]);
      float value = all[row * row_size + i % row_size];
      if (change == "plus_one") value -= 1.0F;
      if (change == "minus_exp") value = std::log(-value);
      record.decoded[i] = value;
    }
    record.tensor.row_order = {};
    record.tensor.dtype_name = "F32";
    record.tensor.dtype = DType::kF32;
  }

  const FileSource& files_;
  Orders orders_;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_gguf_checkpoint(const FileSource& files) {
  return std::make_unique<GgufCheckpoint>(files);
}

}  // namespace tgi
