// The ids that are still in the running while the filters of the sampler work: a list in the
// scratch memory, thinned in place. Not for use outside this folder.
#pragma once

#include <cstdint>

#include "engine/sample/sampler.h"

namespace tgi {

class Candidates {
 public:
  // The candidates in scratch.logits, whose highest is `highest`. Lists as many ids as the first
  // filter of `params` can leave, and applies top-k.
  Candidates(const SamplingParams& params,
             float highest,
             const SamplerMath& math,
             SamplerScratch& scratch);

  void keep_top_p(float mass);
  void keep_typical(float mass);
  void keep_min_p(float ratio);

  int64_t count() const { return count_; }
  // The k-th of them; any order.
  const int32_t* ids() const { return scratch_.ids.data(); }
  const float* values() const { return scratch_.values.data(); }
  float highest() const { return highest_; }

 private:
  // Where a list ordered by (key, id) first reaches a mass.
  struct Cut {
    float key;
    int32_t id;
  };

  // Lists the ids whose logit is at most `distance` below the highest.
  void list_within(float distance);
  void list_top_k(int32_t k);
  void list_top_p(float mass);
  // Fills weights with exp(value - highest); returns their sum.
  double weigh();
  Cut find_cut(double mass);
  // Keeps candidate i where keep(i).
  template <typename Keep>
  void thin(Keep keep);

  SamplerScratch& scratch_;
  const SamplerMath& math_;
  float highest_;
  int64_t count_ = 0;
  double total_ = 0.0;  // of the weights of all ids, when the list holds only the heaviest; else 0
};

}  // namespace tgi
