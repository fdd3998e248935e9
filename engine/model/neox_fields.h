// GPT-NeoX's rotation under the common names: transformers 4.46 to 4.57 write them beside the
// class's own, and no class reads them.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace tgi {

// Throws kInvalidArgument where the common name says another number than what counts: that of
// rope_parameters, of the class's own field, or the class's default.
inline void check_common_name(const JsonReader& config,
                              std::string_view common,
                              std::string_view own,
                              double fallback) {
  if (!config.has(common)) return;
  double counts = config.number_or(own, fallback);
  if (config.has("rope_parameters"))
    counts = config.object("rope_parameters").number_or(common, counts);
  const double said = config.number_or(common, counts);
  if (said == counts) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: {}, but {} is what counts, and it is {}; leave one of them",
                          config.path_of(common), said, own, counts));
}

inline void check_common_names(const JsonReader& config, double default_pct) {
  check_common_name(config, "rope_theta", "rotary_emb_base", 10000.0);
  check_common_name(config, "partial_rotary_factor", "rotary_pct", default_pct);
}

}  // namespace tgi
