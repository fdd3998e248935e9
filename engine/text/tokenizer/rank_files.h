// The files of ranks that a folder may have instead of a tokenizer.json: tekken.json and
// tiktoken's.
#pragma once

#include <optional>
#include <string>

#include "base/files/file_source.h"
#include "engine/text/tokenizer/tokenizer_config.h"
#include "engine/text/tokenizer/tokenizer_json.h"

namespace tgi {

// The name of the one that is read, tekken.json first; nothing when there is none.
std::optional<std::string> find_rank_file(const FileSource& files);

// name: as it gives it. Throws as read_tekken and read_tiktoken do, with the file.
TokenizerJson read_rank_file(const FileSource& files,
                             const std::string& name,
                             const TokenizerConfig& config);

}  // namespace tgi
