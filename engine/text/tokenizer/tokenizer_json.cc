#include "engine/text/tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_syntax.h"
#include "engine/text/tokenizer/library_number.h"

namespace tgi {
namespace {

constexpr size_t kMaxDepth = 64;

// Receives the parser's events (nlohmann's SAX interface) and builds the tree, except for the big
// members.
class Handler final : public nlohmann::json_sax<Json> {
 public:
  Handler(std::string_view text, TokenizerJson& result) : text_(text), result_(result) {}

  bool null() override { return scalar(Json()); }
  bool boolean(bool value) override { return scalar(Json(value)); }
  bool number_integer(number_integer_t value) override {
    if (place_ == Place::kPiece) return score(static_cast<double>(value));
    if (place_ != Place::kVocab) return scalar(Json(value));
    return token(value, value < 0 ? -1 : value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kPiece) return score(static_cast<double>(value));
    if (place_ != Place::kVocab) return scalar(Json(value));
    const bool fits = value <= static_cast<number_unsigned_t>(Vocabulary::kHighestId);
    return token(value, fits ? static_cast<int64_t>(value) : -1);
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (place_ == Place::kPiece) return score(library_number(text));
    return scalar(Json(value));
  }
  bool binary(binary_t& /*value*/) override { return false; }  // JSON text has none

  bool string(string_t& value) override {
    if (place_ == Place::kMerges) return merge_line(value);
    if (place_ == Place::kPiece) return piece_text(value);
    if (place_ != Place::kMergePair) return scalar(Json(std::move(value)));
    if (pair_size_ < 2) (pair_size_ == 0 ? left_ : right_) = std::move(value);
    ++pair_size_;
    return true;
  }

  bool start_object(size_t /*size*/) override {
    if (place_ != Place::kTree) fail_place("an object");
    if (stack_.size() == 2 && in_model_ && key_ == "vocab") {
      place_ = Place::kVocab;
      result_.has_vocab = true;
      return true;
    }
    if (stack_.size() == 1) in_model_ = key_ == "model";
    return open(Json::object());
  }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kVocab) {
      place_ = Place::kTree;
      return true;
    }
    stack_.pop_back();
    return true;
  }

  bool start_array(size_t /*size*/) override {
    if (place_ == Place::kMerges) {
      place_ = Place::kMergePair;
      pair_size_ = 0;
      return true;
    }
    if (place_ == Place::kPieces) {
      place_ = Place::kPiece;
      pair_size_ = 0;
      return true;
    }
    if (place_ != Place::kTree) fail_place("an array");
    if (stack_.size() == 2 && in_model_ && key_ == "vocab") {
      place_ = Place::kPieces;
      result_.has_pieces = true;
      return true;
    }
    if (stack_.size() == 2 && in_model_ && key_ == "merges") {
      place_ = Place::kMerges;
      result_.has_merges = true;
      return true;
    }
    if (stack_.size() == 1) in_model_ = false;
    return open(Json::array());
  }
  bool end_array() override {
    if (place_ == Place::kMergePair) {
      place_ = Place::kMerges;
      return add_merge(pair_size_ == 2);
    }
    if (place_ == Place::kPiece) {
      if (pair_size_ != 2) fail_place("another number of values");
      place_ = Place::kPieces;
      return true;
    }
    if (place_ == Place::kMerges || place_ == Place::kPieces) {
      place_ = Place::kTree;
      return true;
    }
    stack_.pop_back();
    return true;
  }

  bool parse_error(size_t position,
                   const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    throw json_syntax_error(text_, position, error.what());
  }

 private:
  enum class Place { kTree, kVocab, kMerges, kMergePair, kPieces, kPiece };

  std::string merge_path() const { return fmt::format("model.merges[{}]", result_.merges.size()); }

  [[noreturn]] void fail_place(std::string_view got) const {
    if (place_ == Place::kVocab) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("model.vocab[\"{}\"]: expected a token id from 0 to {}, got {}", key_,
                              Vocabulary::kHighestId, got));
    }
    if (place_ == Place::kPieces || place_ == Place::kPiece) {
      const size_t done = place_ == Place::kPiece && pair_size_ > 0 ? 1 : 0;  // is in the list
      throw Error(Code::kInvalidArgument,
                  fmt::format("model.vocab[{}]: expected [piece, score], got {}",
                              result_.pieces.size() - done, got));
    }
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected two tokens, got {}", merge_path(), got));
  }

  template <typename Number>
  bool token(Number written, int64_t id) {
    if (id < 0 || id > Vocabulary::kHighestId) fail_place(fmt::format("{}", written));
    result_.vocabulary.add(key_, static_cast<int32_t>(id));
    return true;
  }

  bool piece_text(std::string& text) {
    if (pair_size_++ != 0) fail_place("another string");
    result_.pieces.push_back({std::move(text), 0});
    return true;
  }

  bool score(double value) {
    if (pair_size_ != 1) fail_place("a number");
    if (!std::isfinite(value)) fail_place("a score that is not finite");
    result_.pieces.back().score = value;
    ++pair_size_;
    return true;
  }

  // "left right"
  bool merge_line(std::string& line) {
    if (line.starts_with("#version")) return true;
    const size_t space = line.find(' ');
    const bool two = space != std::string::npos && line.find(' ', space + 1) == std::string::npos;
    if (two) {
      left_ = line.substr(0, space);
      right_ = line.substr(space + 1);
    }
    return add_merge(two);
  }

  bool add_merge(bool two) {
    if (!two) fail_place("another number of them");
    result_.merges.push_back({std::move(left_), std::move(right_)});
    return true;
  }

  bool scalar(Json value) {
    if (place_ != Place::kTree) fail_place(value.type_name());
    if (stack_.size() == 1) in_model_ = false;
    add(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (stack_.size() >= kMaxDepth) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("JSON nests deeper than {} levels", kMaxDepth));
    }
    stack_.push_back(add(std::move(value)));
    return true;
  }

  Json* add(Json value) {
    if (stack_.empty()) {
      result_.tree = std::move(value);
      return &result_.tree;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  std::string_view text_;
  TokenizerJson& result_;
  Place place_ = Place::kTree;
  std::vector<Json*> stack_;  // the open objects and arrays of the tree
  std::string key_;           // of the value that comes next
  bool in_model_ = false;     // the second of the stack is the member "model"
  std::string left_, right_;
  size_t pair_size_ = 0;
};

}  // namespace

TokenizerJson read_tokenizer_json(std::string_view text) {
  TokenizerJson result;
  Handler handler(text, result);
  Json::sax_parse(text.begin(), text.end(), &handler);
  result.vocabulary.index_ids();
  return result;
}

}  // namespace tgi
