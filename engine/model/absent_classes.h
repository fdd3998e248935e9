// Classes of models that people have and that are not read, with the reason: for who asks for one.
#pragma once

#include <span>
#include <string_view>

namespace tgi {

struct AbsentClass {
  std::string_view name;  // of "architectures"
  std::string_view model_type;
  std::string_view reason;
};

// docs/models.md lists them by their reasons.
std::span<const AbsentClass> absent_classes();

// By either name; empty: nothing is known of it.
std::string_view why_absent(std::string_view name);

}  // namespace tgi
