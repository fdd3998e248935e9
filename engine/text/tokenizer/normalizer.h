// The "normalizer" of tokenizer.json: rewrites a text before it is cut into pieces. Immutable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/text/tokenizer/alignment.h"

namespace tgi {

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing

  // component: the object under "normalizer". Throws kInvalidArgument or kUnsupported with its
  // path.
  explicit Normalizer(const JsonReader& component);

  // at_start: whether `text` begins where the whole input does; turns false when its beginning is
  // taken away. alignment: that of `text`, kept up with it; null: nobody asks. REQUIRES: valid
  // UTF-8.
  void apply(std::string& text, bool& at_start, Alignment* alignment = nullptr) const;

  bool changes_nothing() const { return steps_.empty(); }

  class Step {
   public:
    virtual ~Step() = default;
    virtual void apply(std::string& text, bool& at_start, Alignment* alignment) const = 0;
  };

 private:
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace tgi
