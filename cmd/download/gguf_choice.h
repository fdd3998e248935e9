// Which GGUF files of a repository a name means: ORG/NAME:QUANTISATION, as people write it, or
// ORG/NAME:FILE.gguf. A repository usually holds one model in many quantisations, each a file or
// the parts of one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/download/source.h"

namespace tgi::download {

struct GgufModel {
  std::string tag;                // "Q4_K_M" where no other has it, else the path of the first file
  std::vector<RemoteFile> files;  // its parts in order
  int num_parts = 1;              // more than `files` has: some are missing

  bool has_all_parts() const { return static_cast<int>(files.size()) == num_parts; }
  int64_t bytes() const;  // of the parts whose size is known
};

bool is_gguf(std::string_view path);

// "Q4_K_M" of "org-model-q4_k_m.gguf", of "Q4_K_M/model-00001-of-00002.gguf" and the like, upper
// case; empty when the name says none.
std::string quantization_of(std::string_view path);

// In the order of the listing, without encoders of images and matrices of importance.
std::vector<GgufModel> gguf_models(const std::vector<RemoteFile>& files);

// `tag`: a quantisation in any case, or a path or name ending with .gguf; empty or "latest": the
// usual one. Throws kNotFound or kInvalidArgument, saying which there are.
GgufModel choose_gguf(const std::vector<RemoteFile>& files, const std::string& tag);

}  // namespace tgi::download
