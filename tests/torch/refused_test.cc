// Checkpoints that must not be opened, each with the words that say why.
#include "base/error.h"
#include "cmd/download/torch/torch_file.h"
#include "tests/torch/torch_files.h"

namespace tgi::download {

using Catch::Contains;

namespace {

struct Refused {
  const char* file;
  Code code;
  const char* why;
};

constexpr Refused kRefused[] = {
    {"os_system.bin", Code::kInvalidArgument, "contains posix.system: a checkpoint with code"},
    {"stack_global.bin", Code::kInvalidArgument, "contains posix.system: a checkpoint with code"},
    {"hidden.bin", Code::kInvalidArgument, "contains posix.system: a checkpoint with code"},
    {"eval.bin", Code::kInvalidArgument, "contains __builtin__.eval: a checkpoint with code"},
    {"new_object.bin", Code::kInvalidArgument, "a checkpoint with code"},
    {"numpy.bin", Code::kUnsupported, "contains numpy."},
    {"proto0.bin", Code::kUnsupported, "operation 0x70"},
    {"not_a_dict.bin", Code::kInvalidArgument, "expected a dict of tensors"},
    {"number.bin", Code::kInvalidArgument, "tensor step: expected a tensor"},
    {"stream_os_system.bin", Code::kInvalidArgument, "contains posix.system: a checkpoint with"},
    {"stream_big_endian.bin", Code::kUnsupported, "only little-endian"},
    {"stream_version.bin", Code::kInvalidArgument, "of another version than 1001"},
    {"stream_cut.bin", Code::kInvalidArgument, "cut off in its storage"},
    {"stream_cut_count.bin", Code::kInvalidArgument, "cut off in its storage"},
    {"stream_count.bin", Code::kInvalidArgument, "elements"},
    {"torchscript.bin", Code::kUnsupported, "TorchScript"},
    {"big_endian.bin", Code::kUnsupported, "byte order \"big\""},
    {"sparse.bin", Code::kUnsupported, "contains torch._utils._rebuild_sparse_tensor"},
    {"complex.bin", Code::kUnsupported, "contains torch.ComplexFloatStorage"},
    {"expanded.bin", Code::kUnsupported, "expanded"},
    {"negative.bin", Code::kUnsupported, "conjugate or negative"},
    {"short_storage.bin", Code::kInvalidArgument, "but has 4 bytes"},
    {"no_storage.bin", Code::kInvalidArgument, "storage 0 is not in the file"},
    {"no_pickle.bin", Code::kInvalidArgument, "no data.pkl"},
    {"compressed.bin", Code::kUnsupported, "compressed"},
    {"text.bin", Code::kInvalidArgument, "not a torch checkpoint"},
    {"pointer.bin", Code::kInvalidArgument, "`git lfs pull` in its folder fetches it"},
};

}  // namespace

TEST_CASE("checkpoints with code or anything but tensors are refused by name") {
  for (const Refused& refused : kRefused) {
    INFO(refused.file);
    const std::string path = golden(std::string("refused/") + refused.file);
    try {
      const MappedFile file(path);
      read_torch(file.bytes(), path);
      FAIL("was opened");
    } catch (const Error& error) {
      CHECK(error.code() == refused.code);
      CHECK_THAT(error.what(), Contains(path) && Contains(refused.why));
    }
  }
}

TEST_CASE("the one they were made from is opened") {
  const MappedFile file(golden("refused/good.bin"));
  const auto tensors = read_torch(file.bytes(), "good.bin");
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].name == "weight");
  CHECK(tensors[0].num_bytes() == 8);
}

}  // namespace tgi::download
