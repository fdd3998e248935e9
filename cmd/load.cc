#include "cmd/load.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cmd/model_path.h"
#include "cmd/ps.h"

namespace tgi {
void add_load_flags(CLI::App& app, LoadFlags& flags) {
  app.footer("Starts a daemon when none is running, and returns when the model is ready.");
  app.add_option(
         "model", flags.model,
         "a Hugging Face folder (config.json, *.safetensors, tokenizer), a model of the hub "
         "as ORG/NAME[@REVISION], which is downloaded when it is not here, or \"demo\" for "
         "the built-in model")
      ->type_name("MODEL")
      ->required();
  app.add_option("--revision", flags.revision, "of the hub: a branch, a tag or a commit")
      ->type_name("REV");
  app.add_flag("--offline", flags.offline, "download nothing");
  app.add_option("--load-format", flags.load_format,
                 "auto, or dummy: random weights in the shapes of config.json, for measuring")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"auto", "dummy"}));
  app.add_option("--dtype", flags.dtype,
                 "of the weights in memory: auto, f32, bf16 or f16; auto keeps the checkpoint's")
      ->type_name("DTYPE")
      ->check(CLI::IsMember({"auto", "f32", "bf16", "f16"}));
  app.add_option(
         "--quantize", flags.quantize,
         "none, or round the layers' weights to int8 or int4 while loading; the format of a "
         "quantised checkpoint (compressed-tensors, gptq, awq, fp8) is known by itself and "
         "only checked")
      ->type_name("KIND")
      ->check(CLI::IsMember({"none", "int8", "int4", "compressed-tensors", "gptq", "awq", "fp8"}));
  app.add_option("--kv-cache-dtype", flags.kv_cache_dtype,
                 "of the KV cache: auto (as dtype), f32, bf16 or f16; f8e4m3 on a GPU")
      ->type_name("DTYPE")
      ->check(CLI::IsMember({"auto", "f32", "bf16", "f16", "f8e4m3"}));
  app.add_option(
         "--quantize-group-size", flags.quantize_group_size,
         "columns that share a scale: 32, 64 and so on to 256; default 128 for int8, 32 for "
         "int4")
      ->type_name("N");
  app.add_option("--backend", flags.backend,
                 "auto (cuda where there is a GPU, else cpu), cpu, cuda or reference")
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "reference"}));
  app.add_option("--num-shard", flags.num_shard,
                 "ranks that share the model: GPUs, or threads of the processor")
      ->type_name("N");
  app.add_option("--cuda-memory-fraction", flags.cuda_memory_fraction,
                 "of the memory that is free on a GPU, above 0 and at most 1")
      ->type_name("X");
  app.add_flag(
      "--deterministic", flags.deterministic,
      "bits of an answer never depend on its batch; slower on a GPU, always so on the CPU");
}

int run_load(const LoadFlags& flags, const CommonFlags& common) {
  Session session(common);
  const std::string model =
      resolve_model(flags.model, {.revision = flags.revision,
                                  .offline = flags.offline,
                                  .needs_weights = flags.load_format != "dummy",
                                  .cancel_fd = session.interrupt().fd()});
  // A daemon that was just started may be loading its default model: that comes first.
  session.prepare({.accept_failed = true});
  const ipc::LoadParams params{
      .model = model,
      .load_format = flags.load_format,
      .dtype = flags.dtype,
      .quantize = flags.quantize,
      .quantize_group_size = flags.quantize_group_size,
      .kv_cache_dtype = flags.kv_cache_dtype,
      .backend = flags.backend,
      .num_shard = flags.num_shard,
      .deterministic = flags.deterministic ? std::optional(true) : std::nullopt,
      .cuda_memory_fraction = flags.cuda_memory_fraction};
  session.client().call(ipc::kLoad, ipc::to_json(params));
  const ipc::Status status = session.prepare({.may_start = false});
  if (!status.model) {
    throw Error(Code::kUnavailable,
                fmt::format("the daemon took {} but has no model; its phase is {}", params.model,
                            status.phase));
  }
  session.say_verbose(format_status(status));
  session.out().write(fmt::format("loaded {} ({}, {}) in {:.2f} s\n",
                                  shown_model(status.model->name), status.model->architecture,
                                  format_bytes(status.model->memory.weights),
                                  status.model->load_seconds));
  return 0;
}

}  // namespace tgi
