// Finds the shared test data (real tokenizers, templates, a trained model). It is not part of the
// project: a test that uses it skips, saying so, where it is absent. $TGI_SHARED_DATA overrides the
// place.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/catch.h"

namespace tgi {

inline std::string shared_data_dir() {
  const char* chosen = std::getenv("TGI_SHARED_DATA");
  return chosen != nullptr ? chosen : std::string(TGI_SOURCE_DIR) + "/../shared/data";
}

inline bool has_shared_data(const std::string& relative) {
  if (std::filesystem::exists(shared_data_dir() + "/" + relative)) return true;
  WARN("skipped: " << shared_data_dir() << "/" << relative << " is not there");
  return false;
}

}  // namespace tgi
