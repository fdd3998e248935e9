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

}  // namespace tgi::gguf
