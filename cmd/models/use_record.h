// When models of the user's own folders and presets were used last, which no download tells of.
#pragma once

#include <string>
#include <string_view>

namespace tgi {

inline constexpr std::string_view kPresetUse = "preset";  // the source of such a record

// The model that the daemon has from this path was asked for just now. The store keeps it for
// `tgi ls`; where that can't be, nothing is said: the model can be used all the same.
void record_use(const std::string& path);

}  // namespace tgi
