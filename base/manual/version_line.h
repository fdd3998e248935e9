// What --version prints.
#pragma once

#include <string>
#include <string_view>

namespace tgi {

// "tgi 0.1.0 (abc1234) cpu cuda": the commit it was built from, where that was known, and the
// backends that are there: the built-in one and the plugins whose file is found.
std::string version_line(std::string_view program, std::string_view commit);

}  // namespace tgi
