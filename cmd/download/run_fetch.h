// A fetch with its display, for a command: the work is done on threads of its own, the display and
// Ctrl-C are looked after by the caller's.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cmd/download/fetch_model.h"
#include "cmd/download/progress.h"

namespace tgi::download {

// What fetch_model returns; a checkpoint of torch is converted, and the path is that of the
// converted folder. Readable `cancel_fd` stops it (-1: nothing does). Throws what fetch_model
// throws.
FetchedModel run_fetch(const FetchRequest& request,
                       ProgressKind kind,
                       int cancel_fd,
                       const std::function<void(const std::string&)>& write);

// The same from the cache alone, a conversion that was made before included. Nothing when something
// is missing.
std::optional<FetchedModel> find_usable(const FetchRequest& request);

// A request made of this process's environment and what the user gave, never of a file.
FetchRequest request_for(const std::string& model);

// kTerminal when stderr is one, else kLines.
ProgressKind kind_for_stderr();

}  // namespace tgi::download
