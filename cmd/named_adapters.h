// The adapters that `tgi serve` is given, as the flags write them.
#pragma once

#include <string>

#include "cmd/serve_options.h"

namespace tgi {

// Of NAME=ADAPTER, or of ADAPTER alone, whose name is it without its revision.
struct NamedAdapterText {
  std::string name;
  std::string adapter;
};
NamedAdapterText split_named_adapter(const std::string& text);

// Throws UsageError naming the flag where two adapters have one name, or one has a model's.
void check_adapter_names(const ServeOptions& options);

}  // namespace tgi
