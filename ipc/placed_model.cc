#include "ipc/placed_model.h"

#include <array>
#include <span>

#include "ipc/field_table.h"

namespace tgi::ipc {

template <>
std::span<const Field<PlacedModel>> fields<PlacedModel>() {
  static constexpr std::array kFields = {
      field<&PlacedModel::model>("model"),
      field<&PlacedModel::name>("name", {.required = true}),
      field<&PlacedModel::is_new>("is_new", {.required = true}),
  };
  return kFields;
}

OrderedJson to_json(const PlacedModel& placed) {
  return write_value(placed);
}

PlacedModel placed_model_from_json(const OrderedJson& json) {
  return from_reply<PlacedModel>(json, "result");
}

}  // namespace tgi::ipc
