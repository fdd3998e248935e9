// man/tgid.1 from the table of settings, in the classic man macros (man(7)).
#pragma once

#include <string>

namespace tgi {

std::string tgid_man_page();

}  // namespace tgi
