#include "daemon/room_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <tuple>

#include "base/error.h"

namespace tgi::daemon {
namespace {

struct Candidate {
  std::shared_ptr<ModelSlot> slot;
  std::shared_ptr<ServedModel> model;
  bool is_used = false;
  std::chrono::steady_clock::time_point last_used;
};

struct Beside {
  std::vector<Candidate> may_go;  // in the order in which they give way
  std::vector<std::string> pinned;
  int32_t num_loaded = 0;
};

Beside look_beside(const ModelHost& host, const ModelSlot& slot) {
  Beside out;
  for (const auto& [name, other] : host.all()) {
    if (other.get() == &slot) continue;
    const SlotStanding standing = other->standing();
    if (standing.model == nullptr) continue;
    ++out.num_loaded;
    if (standing.terms.is_pinned) {
      out.pinned.push_back(name.empty() ? standing.model->options().model : name);
    } else if (standing.phase == "ready") {
      out.may_go.push_back({other, standing.model, standing.num_uses > 0,
                            standing.last_used.value_or(Clock::time_point())});
    }
  }
  std::ranges::sort(out.may_go, {},
                    [](const Candidate& each) { return std::tuple(each.is_used, each.last_used); });
  return out;
}

std::string described(const Beside& beside, const std::string& others) {
  std::string out;
  if (!others.empty()) out += fmt::format("; loaded beside it: {}, which go on", others);
  if (!beside.pinned.empty()) out += fmt::format("; pinned: {}", fmt::join(beside.pinned, ", "));
  if (!beside.may_go.empty()) {
    out += "; it would not fit either if those gave way that are not pinned";
  }
  return others.empty() ? out : out + "; `tgi unload NAME` makes room";
}

// kInvalidArgument: a context that was asked for (--max-total-tokens) may be too long for what is
// free now; if it is something else, that is told when nobody is left to give way.
bool may_be_for_room(const Error& error) {
  return error.code() == Code::kOutOfMemory || error.code() == Code::kInvalidArgument;
}

}  // namespace

std::vector<std::shared_ptr<ModelSlot>> plan_room(const ModelHost& host,
                                                  const ModelSlot& slot,
                                                  PreparedModel& model,
                                                  int32_t max_models) {
  const Beside beside = look_beside(host, slot);
  const int32_t too_many = max_models == 0 ? 0 : std::max(0, beside.num_loaded + 1 - max_models);
  if (std::cmp_greater(too_many, beside.may_go.size())) {
    throw Error(Code::kOutOfMemory,
                fmt::format("there is no place for {}: --max-models is {}{}", model.options.model,
                            max_models, described(beside, host.describe_others(slot))));
  }
  std::vector<GivenBack> given_back;
  const std::shared_ptr<ServedModel> in_place = slot.current();
  if (in_place != nullptr) given_back.push_back(given_back_by(*in_place, model, false));
  std::vector<std::shared_ptr<ModelSlot>> out;
  for (;;) {
    const bool is_last = out.size() == beside.may_go.size();
    if (std::cmp_greater_equal(out.size(), too_many)) {
      model.options.promised_bytes = host.promised_bytes(slot, out);
      model.ranks.promised_bytes = model.options.promised_bytes;
      // Alone, the load itself tells.
      if (beside.num_loaded == 0 && in_place == nullptr) return out;
      try {
        check_fits(model, given_back);
        return out;
      } catch (const Error& error) {
        if (!may_be_for_room(error)) throw;
        if (is_last) {
          if (error.code() == Code::kInvalidArgument) throw;
          throw Error(Code::kOutOfMemory,
                      error.what() + described(beside, host.describe_others(slot)));
        }
      }
    }
    const Candidate& next = beside.may_go.at(out.size());
    given_back.push_back(given_back_by(*next.model, model, true));
    out.push_back(next.slot);
  }
}

bool fits_beside(const ModelHost& host, const ModelSlot& slot, PreparedModel& model) {
  const std::shared_ptr<ServedModel> serving = slot.current();
  if (serving == nullptr) return false;
  model.options.promised_bytes = host.promised_bytes();
  model.ranks.promised_bytes = model.options.promised_bytes;
  try {
    const int64_t beside = check_fits(model, {});
    if (beside == 0) return false;
    const GivenBack given_back = given_back_by(*serving, model, false);
    return beside * 2 >= check_fits(model, std::span(&given_back, 1));
  } catch (const Error& error) {
    if (!may_be_for_room(error)) throw;
    return false;
  }
}

}  // namespace tgi::daemon
