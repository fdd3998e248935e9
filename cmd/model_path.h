// A model as the user names it, as the daemon needs it: the daemon has another working folder than
// the one who asks.
#pragma once

#include <string>

namespace tgi {

// "demo" as it is, anything else as an absolute path.
std::string absolute_model(const std::string& model);

}  // namespace tgi
