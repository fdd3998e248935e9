// The result of "load" where the daemon chooses the name (`next_name`): which one the model got.
#pragma once

#include <string>

#include "ipc/protocol.h"

namespace tgi::ipc {

struct PlacedModel {
  std::string model;  // as it was asked for
  std::string name;
  bool is_new = false;  // else it was there by that name
};

OrderedJson to_json(const PlacedModel& placed);
PlacedModel placed_model_from_json(const OrderedJson& json);

}  // namespace tgi::ipc
