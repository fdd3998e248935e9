// A decoder that ranks by its answer as a GGUF file, as llama.cpp's converter writes those of
// Qwen3-Reranker: of the head two rows are kept, and how a pair reaches the model is a text.
#pragma once

#include <string>
#include <vector>

#include "base/files/new_file.h"
#include "engine/model/architecture.h"
#include "engine/quantize/gguf/file_plan.h"
#include "engine/quantize/gguf/tensor_encoder.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/ggml/gguf_writer.h"

namespace tgi {

struct RerankerFile {
  std::string pair_template;
  std::vector<std::string> labels = {"yes", "no"};
  int64_t num_rows = 2;
};

// `folder` holds the model, whose tokens `yes` and `no` answer.
inline void write_reranker(const std::string& folder,
                           int32_t yes,
                           int32_t no,
                           const RerankerFile& file,
                           const std::string& to) {
  // The language model alone: what else the folder says of it is said by the file in its own way.
  const auto all = open_folder(folder);
  std::vector<EmbeddedFile> kept;
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json",
                           "tokenizer_config.json", "generation_config.json"}) {
    kept.push_back({name, all->require(name)});
  }
  const auto files = open_embedded("the language model", kept);
  const LoadedConfig model = load_model_config(*files);
  const auto checkpoint = open_checkpoint(*files);
  const SourceModel source(model, *checkpoint);
  const auto tokenizer = load_tokenizer(*files);
  GgufFilePlan plan = plan_gguf_file(source, *files, *tokenizer, "reranker");
  plan.fields.put_integer("qwen3.pooling_type", 4);
  plan.fields.put_texts("qwen3.classifier.output_labels", file.labels);
  plan.fields.put_text("tokenizer.chat_template.rerank", file.pair_template);
  const FloatMatrix embedding = source.read_matrix(*source.find(Role::kTokenEmbedding, -1));
  GgufTensorPlan head{.name = "cls.output.weight", .shape = {file.num_rows, embedding.cols}};
  for (int64_t row = 0; row < file.num_rows; ++row) {
    const auto* from = embedding.values.data() + (row == 0 ? yes : no) * embedding.cols;
    head.values.insert(head.values.end(), from, from + embedding.cols);
  }
  plan.tensors.push_back(std::move(head));
  const GgmlType& type = *find_ggml_type("F32");
  std::vector<GgufTensorHeader> headers;
  for (const GgufTensorPlan& tensor : plan.tensors) {
    headers.push_back({tensor.name, &type, tensor.shape});
  }
  NewFile out(to);
  GgufWriter writer(out, plan.fields, headers);
  for (const GgufTensorPlan& tensor : plan.tensors) {
    TensorEncoder{source}.encode(tensor, type, {},
                                 [&](std::span<const std::byte> bytes) { writer.append(bytes); });
  }
  writer.finish();
  out.commit_over();
}

}  // namespace tgi
