// A model with an adapter merged into its weights, written as a checkpoint of its own.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/files/file_source.h"

namespace tgi {

// Writes `folder`: weights in the types of the base, in files of the usual size, and the other
// files of the base. The folder is whole or not there. The bytes of its weights. Throws what
// open_adapter and MergedWeights throw, kInvalidArgument where the folder is there already,
// kOutOfMemory when the disk is full, and kCancelled when `stop` ends it, between two tensors.
int64_t write_merged_model(const FileSource& base,
                           const FileSource& adapter,
                           const std::string& folder,
                           int num_threads,
                           const std::stop_token& stop);

}  // namespace tgi
