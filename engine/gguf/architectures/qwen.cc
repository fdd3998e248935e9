// Qwen 2 and 3.
#include "engine/gguf/architectures.h"
#include "engine/gguf/vector_files.h"

namespace tgi::gguf {

void read_qwen2(ModelReader& model) {
  read_decoder(model, "Qwen2ForCausalLM", "qwen2");
  name_decoder(model);
}

void read_qwen3(ModelReader& model) {
  read_decoder(model, "Qwen3ForCausalLM", "qwen3");
  read_answer_scores(model);
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_qk_norms(model);
  name_mlp(model);
}

// The first one: Qwen 2's block with as many heads of keys as of queries. Files count the width of
// gate and up together.
void read_qwen(ModelReader& model) {
  read_qwen2(model);
  read_width_of_tensor(model);
  if (!model.config.contains("rms_norm_eps")) read_layer_norm(model, "rms_norm_eps");
  model.pass_over("attention.layer_norm_epsilon");  // the same under another name
}

}  // namespace tgi::gguf
