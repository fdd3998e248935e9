// docs/settings.md: every setting of a model, from ipc/model_settings.h.
#pragma once

#include <string>

namespace tgi {

std::string settings_page();

}  // namespace tgi
