// Of a model of vectors the files that sentence-transformers would have beside its weights: how
// hidden states are pooled, and what comes behind. Source: the keys of the `gguf` package, and what
// llama.cpp does with them.
#pragma once

#include <map>
#include <string>

#include "engine/gguf/model_reader.h"

namespace tgi::gguf {

// Nothing for a model that says nothing of pooling. As llama.cpp's server gives them, vectors have
// length 1. To be called once the architecture has been read; writes into its config whether tokens
// see what follows them. Throws kInvalidArgument and kUnsupported naming the field.
std::map<std::string, std::string> vector_files(ModelReader& model);

// Of a model that gives scores: the classifier's labels, as config.json has them, of as many rows
// as cls.output has. REQUIRES: it has one.
void read_labels(ModelReader& model);

// Of a decoder that may rank by its answer: whether this file does, which it says itself.
void read_answer_scores(ModelReader& model);

// Whether the file is to be taken for one that gives scores: it has a classifier, and does not say
// that it gives vectors. Otherwise the classifier is left out.
bool has_classifier(ModelReader& model);

}  // namespace tgi::gguf
