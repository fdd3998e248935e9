// See adapters.h.
#include "cuda/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cuda/cuda_matrix.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

int32_t num_sites(std::span<const LowRankPart> parts) {
  int32_t count = 0;
  for (const LowRankPart& part : parts) count = std::max(count, part.site + 1);
  return count;
}

// The parts of each site, in their order: adapters of experts have many of both.
std::vector<std::vector<const LowRankPart*>> parts_by_site(std::span<const LowRankPart> parts) {
  std::vector<std::vector<const LowRankPart*>> out(static_cast<size_t>(num_sites(parts)));
  for (const LowRankPart& part : parts) out[static_cast<size_t>(part.site)].push_back(&part);
  return out;
}

int64_t matrix_bytes(int64_t rows, int64_t cols, DType dtype) {
  return aligned(rows * cols * static_cast<int64_t>(dtype_size(dtype)));
}

int64_t vector_bytes(const std::vector<float>& values) {
  return aligned(static_cast<int64_t>(values.size() * sizeof(float)));
}

// Row after row, rounded; returns where the next begins.
std::byte* write_matrix(const HostWeight& piece, DType dtype, std::byte* out) {
  if (piece.format != "dense" || piece.parts.size() != 1) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: an adapter's matrix has to be plain numbers", piece.name));
  }
  for (int64_t row = 0; row < piece.rows; ++row) {
    write_rounded_row(piece.parts[0], row, dtype, out);
    out += piece.cols * static_cast<int64_t>(dtype_size(dtype));
  }
  return out;
}

}  // namespace

int64_t CudaAdapter::bytes(std::span<const LowRankPart> parts, DType dtype) {
  std::vector<int64_t> rows(static_cast<size_t>(num_sites(parts)));  // of the stacked a
  std::vector<int64_t> cols(rows.size());
  int64_t total = aligned(static_cast<int64_t>(rows.size() * sizeof(LowRankSite)));
  for (const LowRankPart& part : parts) {
    require_rank(part);
    total += vector_bytes(part.gain) + vector_bytes(part.offset);
    if (part.rank() == 0) continue;
    rows[static_cast<size_t>(part.site)] += part.a.rows;
    cols[static_cast<size_t>(part.site)] = part.a.cols;
    total += matrix_bytes(part.num_outputs(), part.rank(), dtype);
  }
  for (size_t site = 0; site < rows.size(); ++site) {
    total += matrix_bytes(rows[site], cols[site], dtype);
  }
  return total;
}

CudaAdapter::CudaAdapter(std::span<const LowRankPart> parts, DType dtype) {
  size_bytes = bytes(parts, dtype);
  memory_ = allocate_device(static_cast<size_t>(size_bytes), "adapter");
  auto* const device = static_cast<std::byte*>(memory_.data());
  std::vector<std::byte> host(static_cast<size_t>(size_bytes));
  const auto by_site = parts_by_site(parts);
  std::vector<LowRankSite> sites(by_site.size());
  int64_t used = aligned(static_cast<int64_t>(sites.size() * sizeof(LowRankSite)));
  // All of a site's a lie together, in the order of its pieces.
  for (size_t index = 0; index < sites.size(); ++index) {
    if (by_site[index].empty()) continue;
    LowRankSite& site = sites[index];
    const int64_t begin = used;
    int64_t rows = 0;
    int64_t cols = 0;
    std::byte* out = host.data() + begin;
    for (const LowRankPart* const here : by_site[index]) {
      const LowRankPart& part = *here;
      if (site.num_pieces == kMaxLowRankPieces) {
        throw Error(Code::kUnsupported,
                    fmt::format("{}: more than {} products of one adapter with one linear",
                                part.a.name, kMaxLowRankPieces));
      }
      TGI_CHECK(!part.is_lookup || by_site[index].size() == 1);
      site.pieces[site.num_pieces++] = {.b = nullptr,
                                        .first_rank = site.rank,
                                        .rank = static_cast<int32_t>(part.rank()),
                                        .first_output = static_cast<int32_t>(part.first_output),
                                        .num_outputs = static_cast<int32_t>(part.num_outputs()),
                                        .scale = part.scale};
      site.rank += static_cast<int32_t>(part.rank());
      if (part.is_lookup) site.num_tokens = static_cast<int32_t>(part.a.rows);
      if (part.rank() == 0) continue;
      out = write_matrix(part.a, dtype, out);
      rows += part.a.rows;
      cols = part.a.cols;
    }
    TGI_CHECK(site.rank <= kMaxStackedRank);
    if (rows > 0) site.a = device + begin;
    used += matrix_bytes(rows, cols, dtype);
    int32_t next = 0;
    for (const LowRankPart* const part : by_site[index]) {
      LowRankPiece& piece = site.pieces[next++];
      const auto add_vector = [&](const std::vector<float>& values) -> const float* {
        if (values.empty()) return nullptr;
        std::memcpy(host.data() + used, values.data(), values.size() * sizeof(float));
        return reinterpret_cast<const float*>(device +
                                              std::exchange(used, used + vector_bytes(values)));
      };
      piece.gain = add_vector(part->gain);
      piece.offset = add_vector(part->offset);
      if (part->rank() == 0) continue;
      piece.b = device + used;
      std::byte* to = host.data() + used;
      for (const HostWeight& each : part->b) to = write_matrix(each, dtype, to);
      used += matrix_bytes(part->num_outputs(), part->rank(), dtype);
    }
  }
  TGI_CHECK(used == size_bytes);
  std::memcpy(host.data(), sites.data(), sites.size() * sizeof(LowRankSite));
  const Stream stream;
  check(cudaMemcpyAsync(device, host.data(), host.size(), cudaMemcpyHostToDevice, stream.get()),
        "bringing an adapter to the GPU");
  stream.synchronize();
  entry_ = {.sites = reinterpret_cast<const LowRankSite*>(device),
            .num_sites = static_cast<int32_t>(sites.size())};
}

}  // namespace tgi::cuda
