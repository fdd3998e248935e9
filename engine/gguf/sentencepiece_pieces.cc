#include "engine/gguf/sentencepiece_pieces.h"

#include <cstring>

#include "base/error.h"

namespace tgi::gguf {
namespace {

struct ProtoField {
  uint64_t number = 0;
  uint64_t value = 0;        // of varints
  std::string_view bytes{};  // of all other kinds
};

// The fields of a message, one after the other: https://protobuf.dev/programming-guides/encoding
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}

  bool next(ProtoField& out) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    out = {.number = tag >> 3};
    switch (tag & 7) {
      case 0:
        out.value = varint();
        return true;
      case 1:
        out.bytes = take(8);
        return true;
      case 2:
        out.bytes = take(varint());
        return true;
      case 5:
        out.bytes = take(4);
        return true;
      default:
        malformed();
    }
  }

 private:
  [[noreturn]] static void malformed() {
    throw Error(Code::kInvalidArgument, "tokenizer.model: not a SentencePiece model");
  }
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) malformed();
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      out |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return out;
    }
    malformed();
  }

  std::string_view rest_;
};

float float_of(std::string_view bytes) {
  float out = 0.0F;
  if (bytes.size() == sizeof out) std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

SentencePiece read_piece(std::string_view bytes) {
  SentencePiece out;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 1) out.text = field.bytes;
    if (field.number == 2) out.score = float_of(field.bytes);
    if (field.number != 3) continue;
    if (field.value < 1 || field.value > 6) {
      throw Error(Code::kInvalidArgument, "tokenizer.model: a piece of a kind that does not exist");
    }
    out.type = static_cast<TokenType>(field.value);
  }
  return out;
}

}  // namespace

SentencePieceModel read_sentencepiece(std::string_view proto) {
  SentencePieceModel out;
  ProtoReader reader(proto);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 1) out.pieces.push_back(read_piece(field.bytes));
    if (field.number != 2 && field.number != 3) continue;
    ProtoReader spec(field.bytes);
    for (ProtoField inner; spec.next(inner);) {
      if (field.number == 2 && inner.number == 3) out.type = static_cast<int64_t>(inner.value);
      if (field.number == 3 && inner.number == 3) out.adds_space_before = inner.value != 0;
      if (field.number == 3 && inner.number == 4) out.removes_extra_spaces = inner.value != 0;
    }
  }
  return out;
}

}  // namespace tgi::gguf
