// Which models give way to one that is to be loaded, found before any of them is disturbed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/model_host.h"
#include "engine/runtime/prepared_model.h"

namespace tgi::daemon {

// Of those beside `slot`, first those that nobody uses, of these first the one unused for longest;
// as many as it takes so that `model` fits and at most `max_models` are loaded (0: any number). A
// model that stands in `slot` gives way in any case. What the plan of `model` leaves to the others
// is set. Throws what check_fits throws, and kOutOfMemory, with what is held and pinned, when it
// would not fit even if all gave way that may.
std::vector<std::shared_ptr<ModelSlot>> plan_room(const ModelHost& host,
                                                  const ModelSlot& slot,
                                                  PreparedModel& model,
                                                  int32_t max_models);

// Whether `model` fits beside all that is loaded, that of `slot` too, whose place it is to take:
// then this goes on until the new one is ready. It does not where its KV cache would be less than
// half of what it gets when that has gone: a cache stays as it was planned. What the plan leaves to
// the others is set. Throws what check_fits throws, but kOutOfMemory.
bool fits_beside(const ModelHost& host, const ModelSlot& slot, PreparedModel& model);

}  // namespace tgi::daemon
