// The models of this machine that tgi has downloaded or made, as `tgi ls` names them.
#pragma once

#include <vector>

#include "ipc/model_name.h"

namespace tgi::daemon {

// Those whose files are there, adapters left out. A store that can't be read has none, which the
// log says.
std::vector<ipc::NamedModel> installed_models();

}  // namespace tgi::daemon
