// Names for what is being written beside the place where it shall be: ".NAME.partial-PID-XXXXXX",
// which tells whether its writer is still there.
#pragma once

#include <filesystem>
#include <string>

namespace tgi {

// ".NAME.partial-" of such things for `path`.
std::string partial_prefix(const std::filesystem::path& path);

// Removes what processes that died left in `parent` under names that begin like that.
void remove_partial_leftovers(const std::filesystem::path& parent, const std::string& prefix);

}  // namespace tgi
