// One line of the report.
#pragma once

#include <string>
#include <vector>

#include "ipc/protocol.h"

namespace tgi::doctor {

// kUnknown: it was not looked at, or could not be, so that nothing is said for it.
enum class Verdict { kOk, kUnknown, kWarn, kFail };

struct Finding {
  std::string name;  // "memory"
  Verdict verdict = Verdict::kOk;
  std::string text;                                    // one line
  std::string advice{};                                // what to do; only where not all is well
  ipc::OrderedJson data = ipc::OrderedJson::object();  // the same as numbers, for --json
};

}  // namespace tgi::doctor
