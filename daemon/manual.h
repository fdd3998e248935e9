// man/tgid.8, the completions of tgid and its --help, from the table of settings.
#pragma once

#include <string>
#include <string_view>

#include "base/manual/program_doc.h"

namespace tgi::daemon {

// The whole document: every setting with its variable and default, examples, files.
CommandDoc describe_tgid();

std::string tgid_man_page();

// For "bash", "zsh" or "fish"; throws kInvalidArgument for another.
std::string tgid_completion(std::string_view shell);

// The flags that --help shows, parted by spaces.
std::string_view tgid_common_flags();

}  // namespace tgi::daemon
