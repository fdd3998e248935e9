// What a GGUF file of a checkpoint will hold: metadata, and for each of its tensors where the
// numbers come from. Settled before any weight is looked at, and read again at once: the plan is
// handed to the reader of such files (engine/gguf), and what that takes the model for has to be the
// model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/gguf/model_reader.h"
#include "engine/quantize/source_model.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/ggml/gguf_writer.h"

namespace tgi {

struct GgufTensorPlan {
  std::string name;            // "blk.0.attn_q.weight"
  std::vector<int64_t> shape;  // row-major
  // The model's tensor, or those of the experts that are stacked here; empty: `values`.
  std::vector<const TensorEntry*> sources{};
  std::vector<int32_t> rows{};  // row i is row rows[i] of the source; empty: i
  gguf::Change change = gguf::Change::kNone;
  std::vector<float> values{};

  bool is_vector() const { return shape.size() < 2; }
};

struct GgufFilePlan {
  std::string architecture;
  GgufFields fields;
  std::vector<GgufTensorPlan> tensors;
};

// `name`: of the model, for people. `source` outlives the plan. Throws kUnsupported naming what of
// the model no GGUF file of its architecture can say: fields, tensors, the tokenizer.
GgufFilePlan plan_gguf_file(const SourceModel& source,
                            const FileSource& files,
                            const Tokenizer& tokenizer,
                            const std::string& name);

// The same without a tokenizer.
GgufFilePlan plan_gguf_tensors(const SourceModel& source, const std::string& name);

}  // namespace tgi
