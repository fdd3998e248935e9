// The names by which requests ask for one of several models.
#pragma once

#include <string>

namespace tgi::ipc {

struct NamedModel {
  std::string name;   // "": it has none
  std::string model;  // a folder, a file, or "demo"

  bool operator==(const NamedModel&) const = default;
};

// NAME=MODEL, or MODEL alone: what stands before the first "=" is a name when it has no "/". Throws
// kInvalidArgument for a name or a model that is none.
NamedModel split_named_model(const std::string& text);

// Throws kInvalidArgument saying what was expected and what came.
void check_model_name(const std::string& name);

// A name for a model that was given none: ORG/NAME as it is, of a path its last part without the
// ending of a file, with "-" for what may be in no name.
std::string model_name_of(const std::string& shown);

}  // namespace tgi::ipc
