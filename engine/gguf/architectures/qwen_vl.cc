// Qwen's models of images: their text model. Positions of text are alike in every section.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_qwen2vl(ModelReader& model) {
  model.pass_over("rope.dimension_sections");
  read_qwen2(model);
}

void read_qwen3vl(ModelReader& model) {
  model.pass_over("rope.dimension_sections");
  model.pass_over("n_deepstack_layers");
  read_qwen3(model);
}

void read_qwen3vlmoe(ModelReader& model) {
  model.pass_over("rope.dimension_sections");
  model.pass_over("n_deepstack_layers");
  read_qwen3moe(model);
}

}  // namespace tgi::gguf
