#include "engine/runtime/demo_model.h"

#include <span>
#include <string>

// The assembler reads the files: no generated source, no copy at run time. TGI_ASSETS_DIR is set by
// CMake for this file alone.
#define TGI_EMBED(symbol, file)                                             \
  __asm__(".pushsection .rodata\n.balign 64\n.global tgi_embedded_" #symbol \
          "\ntgi_embedded_" #symbol ":\n.incbin \"" TGI_ASSETS_DIR "/" file \
          "\"\n.global tgi_embedded_" #symbol "_end\ntgi_embedded_" #symbol \
          "_end:\n"                                                         \
          ".byte 0\n.popsection\n");                                        \
  extern "C" const std::byte tgi_embedded_##symbol[];                       \
  extern "C" const std::byte tgi_embedded_##symbol##_end[];

TGI_EMBED(config, "demo/config.json")
TGI_EMBED(generation_config, "demo/generation_config.json")
TGI_EMBED(tokenizer, "demo/tokenizer.json")
TGI_EMBED(tokenizer_config, "demo/tokenizer_config.json")
TGI_EMBED(weights, "demo/model.safetensors")

#undef TGI_EMBED

namespace tgi {
namespace {

std::span<const std::byte> between(const std::byte* begin, const std::byte* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::unique_ptr<FileSource> open_demo_model() {
  return open_embedded(
      std::string(kDemoModel),
      {{"config.json", between(tgi_embedded_config, tgi_embedded_config_end)},
       {"generation_config.json",
        between(tgi_embedded_generation_config, tgi_embedded_generation_config_end)},
       {"tokenizer.json", between(tgi_embedded_tokenizer, tgi_embedded_tokenizer_end)},
       {"tokenizer_config.json",
        between(tgi_embedded_tokenizer_config, tgi_embedded_tokenizer_config_end)},
       {"model.safetensors", between(tgi_embedded_weights, tgi_embedded_weights_end)}});
}

}  // namespace tgi
