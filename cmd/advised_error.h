// An error that knows better what to do than its code does: main() says its advice in place of
// advice_for().
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace tgi {

class AdvisedError : public Error {
 public:
  AdvisedError(Code code, const std::string& message, std::string advice)
      : Error(code, message), advice_(std::move(advice)) {}

  const std::string& advice() const { return advice_; }

 private:
  std::string advice_;
};

}  // namespace tgi
