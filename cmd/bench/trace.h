// Readers of recorded load. Two formats, told apart by the first character:
//   the Azure LLM inference traces (github.com/Azure/AzurePublicDataset), CSV:
//     TIMESTAMP,ContextTokens,GeneratedTokens
//     2023-11-16 18:15:46.6805900,374,44
//   Mooncake's traces (github.com/kvcache-ai/Mooncake), one JSON object a line, time in ms, one
//   hash for each 512 tokens of the prompt: requests with the same first hashes share that prefix:
//     {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/bench/load_plan.h"

namespace tgi::bench {

inline constexpr int64_t kTraceBlockTokens = 512;

// In order of time, the first at 0; the first `max_requests` lines only. Throws kInvalidArgument
// naming `name`, the line and what is wrong with it.
std::vector<TraceRequest> parse_trace(std::string_view text,
                                      const std::string& name,
                                      std::optional<int64_t> max_requests = std::nullopt);

}  // namespace tgi::bench
