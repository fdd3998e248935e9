// A folder of a web server, as https://host/path/model/: there is no list of files, so the names
// that a model may have are asked for one by one, and the shards that its index names.
#pragma once

#include <memory>
#include <string>

#include "cmd/download/source.h"

namespace tgi::download {

// `url` with or without a slash at its end. Where `file` is given, that one of the folder (and the
// other parts, where its name says that it was split) and nothing else is asked for. Throws
// kInvalidArgument when it has a user's name, which would be kept in places where nobody looks for
// one.
std::unique_ptr<Source> open_https(const std::string& url, const std::string& file = "");

}  // namespace tgi::download
