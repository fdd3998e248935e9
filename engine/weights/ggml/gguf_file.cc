#include "engine/weights/ggml/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/utf8.h"

namespace tgi {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

constexpr std::string_view kMagic = "GGUF";
constexpr int kMaxDims = 4;
// Deeper arrays exist in no file; each level costs a call here.
constexpr int kMaxArrayDepth = 4;
constexpr uint64_t kDefaultAlignment = 32;

constexpr std::array<std::string_view, 13> kValueTypeNames = {
    "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
    "bool",  "string", "array",  "uint64", "int64",  "float64"};

[[noreturn]] void fail(const std::string& why) {
  throw Error(Code::kInvalidArgument, why);
}

// What is not printable would break the message's line.
std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name.substr(0, 80)) {
    const bool is_plain = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
    out += is_plain ? c : '?';
  }
  return out + (name.size() > 80 ? "...\"" : "\"");
}

void check_name(std::string_view name) {
  if (!is_valid_utf8(name)) fail(fmt::format("the name {} is not UTF-8", quoted(name)));
}

class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  std::span<const std::byte> take(uint64_t size, std::string_view what) {
    if (size > left()) {
      fail(fmt::format("{} at byte {} has {} bytes, but {} are left; is the file complete?", what,
                       at_, size, left()));
    }
    const auto out = bytes_.subspan(at_, size);
    at_ += size;
    return out;
  }

  template <typename T>
  T number(std::string_view what) {
    T value{};
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string_view string(std::string_view what) {
    const auto size = number<uint64_t>(what);
    const auto bytes = take(size, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
};

GgufValueType read_type(Cursor& in, std::string_view key) {
  const auto type = in.number<uint32_t>(key);
  if (type >= kValueTypeNames.size()) {
    fail(fmt::format("{} has a value of type {}, which GGUF does not have", quoted(key), type));
  }
  return static_cast<GgufValueType>(type);
}

// `what`: for messages. Vocabularies are arrays of some hundred thousand strings: nothing is put
// together for each.
GgufValue read_value(
    Cursor& in, GgufValueType type, std::string_view key, const std::string& what, int depth) {
  GgufValue out{.type = type};
  if (type == GgufValueType::kString) {
    const std::string_view text = in.string(what);
    out.bytes = std::as_bytes(std::span(text));
    return out;
  }
  if (type != GgufValueType::kArray) {
    out.bytes = in.take(gguf_value_size(type), what);
    return out;
  }
  if (depth == kMaxArrayDepth) {
    fail(fmt::format("{} is an array in {} others", quoted(key), kMaxArrayDepth));
  }
  out.element_type = read_type(in, key);
  out.count = in.number<uint64_t>(what);
  Cursor begin = in;
  if (const uint64_t size = gguf_value_size(out.element_type)) {
    if (out.count > in.left() / size) {
      fail(fmt::format(
          "{} has {} elements of {} bytes, but {} bytes are left; is the file complete?", what,
          out.count, size, in.left()));
    }
    out.bytes = in.take(out.count * size, what);
    return out;
  }
  if (out.count > in.left() / 8) {  // each has a length
    fail(fmt::format("{} has {} elements, but {} bytes are left; is the file complete?", what,
                     out.count, in.left()));
  }
  for (uint64_t i = 0; i < out.count; ++i) {
    (void)read_value(in, out.element_type, key, what, depth + 1);
  }
  out.bytes = begin.take(in.at() - begin.at(), what);
  return out;
}

void read_metadata(Cursor& in, uint64_t count, GgufMetadata& out) {
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = in.string(fmt::format("the name of metadata {}", i));
    check_name(key);
    if (out.has(key)) fail(fmt::format("the metadata has {} twice", quoted(key)));
    const GgufValueType type = read_type(in, key);
    out.add(key, read_value(in, type, key, fmt::format("the value of {}", quoted(key)), 0));
  }
}

uint64_t alignment_of(const GgufMetadata& metadata) {
  const auto alignment = metadata.find_integer("general.alignment");
  if (!alignment) return kDefaultAlignment;
  if (*alignment < 1 || *alignment > (1 << 24) || (*alignment & (*alignment - 1)) != 0) {
    fail(fmt::format("general.alignment is {}; expected a power of two", *alignment));
  }
  return static_cast<uint64_t>(*alignment);
}

struct TensorPlace {
  GgufTensor tensor;
  uint64_t offset = 0;  // in the data
  uint64_t size = 0;
};

std::vector<int64_t> read_shape(Cursor& in, const std::string& name) {
  const auto num_dims = in.number<uint32_t>(name);
  if (num_dims > kMaxDims) {
    fail(
        fmt::format("tensor {} has {} dimensions; there are at most {}", name, num_dims, kMaxDims));
  }
  std::vector<int64_t> shape(num_dims);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < num_dims; ++i) {
    const auto size = in.number<uint64_t>(name);
    constexpr uint64_t kMost = uint64_t{1}
                               << 56;  // more than any disk holds, and no overflow below
    if (size == 0 || size > kMost || elements > kMost / size) {
      fail(fmt::format("tensor {} has size {} in dimension {}", name, size, i));
    }
    elements *= size;
    shape[num_dims - 1 - i] = static_cast<int64_t>(size);
  }
  if (shape.empty()) shape.push_back(1);
  return shape;
}

TensorPlace read_tensor(Cursor& in, uint64_t index, uint64_t alignment) {
  TensorPlace out;
  GgufTensor& tensor = out.tensor;
  tensor.name = in.string(fmt::format("the name of tensor {}", index));
  const std::string name = quoted(tensor.name);
  check_name(tensor.name);
  tensor.shape = read_shape(in, name);
  const auto type = in.number<uint32_t>(name);
  out.offset = in.number<uint64_t>(name);
  tensor.type = find_ggml_type(type);
  if (tensor.type == nullptr) {
    fail(fmt::format("tensor {} has elements of type {}, {}", name, type, advice_on_type(type)));
  }
  const int64_t cols = tensor.shape.back();
  if (cols % tensor.type->block_size != 0) {
    fail(fmt::format("tensor {} has rows of {} elements, which are no whole blocks of {} ({} each)",
                     name, cols, tensor.type->name, tensor.type->block_size));
  }
  if (out.offset % alignment != 0) {
    fail(fmt::format("tensor {} begins at {}, which is no multiple of {}", name, out.offset,
                     alignment));
  }
  out.size = static_cast<uint64_t>(tensor.num_elements() / tensor.type->block_size *
                                   tensor.type->block_bytes);
  return out;
}

// Gives the tensors their bytes.
void place(std::vector<TensorPlace>& tensors, std::span<const std::byte> data) {
  std::vector<const TensorPlace*> by_offset;
  for (TensorPlace& one : tensors) {
    if (one.offset > data.size() || one.size > data.size() - one.offset) {
      fail(
          fmt::format("tensor {} takes bytes {} to {} of the data, which has {}; is the file "
                      "complete?",
                      quoted(one.tensor.name), one.offset, one.offset + one.size, data.size()));
    }
    one.tensor.bytes = data.subspan(one.offset, one.size);
    by_offset.push_back(&one);
  }
  std::ranges::sort(by_offset, {}, &TensorPlace::offset);
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TensorPlace& before = *by_offset[i - 1];
    if (before.offset + before.size > by_offset[i]->offset) {
      fail(fmt::format("tensors {} and {} overlap", quoted(before.tensor.name),
                       quoted(by_offset[i]->tensor.name)));
    }
  }
}

std::vector<TensorPlace> read_tensors(Cursor& in, uint64_t count, uint64_t alignment) {
  std::vector<TensorPlace> out;
  std::set<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    out.push_back(read_tensor(in, i, alignment));
    const std::string_view name = out.back().tensor.name;
    if (!names.insert(name).second) fail(fmt::format("there are two tensors {}", quoted(name)));
  }
  return out;
}

uint32_t read_version(Cursor& in) {
  const auto version = in.number<uint32_t>("the version");
  if (version == 2 || version == 3) return version;
  const bool is_swapped = version != 0 && (version & 0xFFFF) == 0;
  throw Error(Code::kUnsupported,
              is_swapped ? "this GGUF file was written for big-endian machines; ask for the other "
                           "one, or convert it with gguf_convert_endian of the gguf package"
                         : fmt::format("this is version {} of GGUF; versions 2 and 3 can be read",
                                       version));
}

GgufFile parse(std::span<const std::byte> bytes) {
  if (!is_gguf(bytes)) fail("this is no GGUF file: it does not begin with \"GGUF\"");
  Cursor in(bytes);
  (void)in.take(kMagic.size(), "the magic");
  GgufFile out{.version = read_version(in)};
  const auto num_tensors = in.number<uint64_t>("the number of tensors");
  const auto num_values = in.number<uint64_t>("the number of metadata");
  // Each takes some bytes at least, so that a count can't promise more than the file has.
  constexpr uint64_t kLeastTensor = 8 + 4 + 4 + 8;
  constexpr uint64_t kLeastValue = 8 + 4 + 1;
  if (num_tensors > in.left() / kLeastTensor || num_values > in.left() / kLeastValue) {
    fail(
        fmt::format("{} tensors and {} metadata are announced, but {} bytes are left; is the file "
                    "complete?",
                    num_tensors, num_values, in.left()));
  }
  read_metadata(in, num_values, out.metadata);
  const uint64_t alignment = alignment_of(out.metadata);
  std::vector<TensorPlace> tensors = read_tensors(in, num_tensors, alignment);
  const uint64_t begin =
      std::min<uint64_t>((in.at() + alignment - 1) / alignment * alignment, bytes.size());
  place(tensors, bytes.subspan(begin));
  out.tensors.reserve(tensors.size());
  for (TensorPlace& one : tensors) out.tensors.push_back(std::move(one.tensor));
  return out;
}

}  // namespace

std::string_view gguf_value_type_name(GgufValueType type) {
  return kValueTypeNames[static_cast<size_t>(type)];
}

uint64_t gguf_value_size(GgufValueType type) {
  constexpr std::array<uint8_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<size_t>(type)];
}

int64_t GgufTensor::num_elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

bool is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

bool is_adapter(const GgufMetadata& metadata) {
  return metadata.find_text("general.type").value_or("") == "adapter";
}

GgufFile parse_gguf(std::span<const std::byte> bytes, const std::string& label) {
  try {
    return parse(bytes);
  } catch (const Error& error) {
    throw error.in(label);
  }
}

}  // namespace tgi
