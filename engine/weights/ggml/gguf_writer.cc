#include "engine/weights/ggml/gguf_writer.h"

#include <array>
#include <cstring>

#include "base/error.h"

namespace tgi {
namespace {

constexpr int64_t kAlignment = 32;  // what readers take for granted when no field says otherwise
constexpr int64_t kSpareBytes = int64_t{16} << 20;

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class HeaderText {
 public:
  template <typename T>
  HeaderText& number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof value);
    return *this;
  }
  HeaderText& string(std::string_view text) {
    number(static_cast<uint64_t>(text.size()));
    text_ += text;
    return *this;
  }
  HeaderText& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  void align() { text_.resize(static_cast<size_t>(aligned(static_cast<int64_t>(text_.size())))); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_field(HeaderText& out, const GgufFields::Field& field) {
  out.string(field.key).number(static_cast<uint32_t>(field.type));
  if (field.type == GgufValueType::kString) {
    out.string(field.bytes);
    return;
  }
  if (field.type == GgufValueType::kArray) {
    out.number(static_cast<uint32_t>(field.element_type)).number(field.count);
  }
  out.raw(field.bytes);
}

std::string header_of(const GgufFields& fields, std::span<const GgufTensorHeader> tensors) {
  constexpr uint32_t kVersion = 3;
  HeaderText out;
  out.raw("GGUF").number(kVersion);
  out.number(static_cast<uint64_t>(tensors.size()));
  out.number(static_cast<uint64_t>(fields.fields().size()));
  for (const GgufFields::Field& field : fields.fields()) add_field(out, field);
  int64_t offset = 0;
  for (const GgufTensorHeader& tensor : tensors) {
    out.string(tensor.name).number(static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;) {
      out.number(static_cast<uint64_t>(tensor.shape[i]));
    }
    out.number(tensor.type->id).number(static_cast<uint64_t>(offset));
    offset += aligned(tensor.bytes());
  }
  out.align();
  return out.text();
}

}  // namespace

int64_t GgufTensorHeader::num_elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t GgufTensorHeader::bytes() const {
  TGI_CHECK(!shape.empty() && shape.back() % type->block_size == 0);
  return num_elements() / type->block_size * type->block_bytes;
}

GgufWriter::GgufWriter(NewFile& file,
                       const GgufFields& fields,
                       std::span<const GgufTensorHeader> tensors)
    : file_(file) {
  const std::string header = header_of(fields, tensors);
  total_bytes_ = static_cast<int64_t>(header.size());
  for (const GgufTensorHeader& tensor : tensors) {
    sizes_.push_back(tensor.bytes());
    total_bytes_ += aligned(tensor.bytes());
  }
  file_.require_space(total_bytes_ + kSpareBytes);
  file_.append(std::as_bytes(std::span(header)));
  if (!sizes_.empty()) missing_bytes_ = sizes_.front();
}

void GgufWriter::append(std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  TGI_CHECK(tensor_ < sizes_.size() && size <= missing_bytes_);
  file_.append(bytes);
  missing_bytes_ -= size;
  if (missing_bytes_ > 0) return;
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  const int64_t written = sizes_[tensor_];
  file_.append(std::span(kZeros).first(static_cast<size_t>(aligned(written) - written)));
  ++tensor_;
  if (tensor_ < sizes_.size()) missing_bytes_ = sizes_[tensor_];
}

void GgufWriter::finish() {
  TGI_CHECK(tensor_ == sizes_.size());
}

}  // namespace tgi
