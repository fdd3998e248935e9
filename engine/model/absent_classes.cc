// Source: the models of these names in `transformers`, and the code beside the published files of
// those that it does not have.
#include "engine/model/absent_classes.h"

#include <algorithm>
#include <array>

namespace tgi {
namespace {

constexpr std::string_view kEncoderDecoder =
    "it is an encoder-decoder, whose prompt goes through an encoder that the answer attends to; "
    "models are decoders, or encoders that give vectors";
constexpr std::string_view kBothSides = "its prompt is read to both sides, the answer to one";
constexpr std::string_view kRunsTwice =
    "its layers run several times, and the stream is brought back between the runs";
constexpr std::string_view kInkling =
    "its layers have several convolutions, and positions that weights make of the stream";
constexpr std::string_view kPublishedMiniMax =
    "the fields and tensors of its first files are not read; the same model is published for "
    "`transformers`, as MiniMaxForCausalLM";

constexpr auto kAbsentClasses = std::to_array<AbsentClass>({
    // Decoders.
    {"BltForCausalLM", "blt", "it reads bytes in patches that a model of its own cuts"},
    {"ChameleonForConditionalGeneration", "chameleon",
     "it may draw no tokens of images, which are listed by their names in its vocabulary"},
    {"CpmAntForCausalLM", "cpmant", "its positions count segments of the prompt"},
    {"DogeForCausalLM", "doge", "its attention sees what a mask made of the values leaves"},
    {"DoryForCausalLM", "dory", kRunsTwice},
    {"Dots3NoteForCausalLM", "dots3_note_text",
     "latent attention is of another size where there is a window"},
    {"Dots3NoteForConditionalGeneration", "dots3_note",
     "latent attention is of another size where there is a window"},
    {"DiffusionGemmaForBlockDiffusion", "diffusion_gemma",
     "it makes blocks of tokens at once, by diffusion"},
    {"Glm5NextForConditionalGeneration", "glm5_next",
     "its indexer chooses among groups of tokens, beside layers that carry a state"},
    {"HrmTextForCausalLM", "hrm_text", kRunsTwice},
    {"InklingForCausalLM", "inkling_text", kInkling},
    {"InklingForConditionalGeneration", "inkling_mm_model", kInkling},
    {"Inkling2ForCausalLM", "inkling2_text", kInkling},
    {"Inkling2ForConditionalGeneration", "inkling2", kInkling},
    {"Inkling2LoopForCausalLM", "inkling2_loop_text", kInkling},
    {"Inkling2LoopForConditionalGeneration", "inkling2_loop", kInkling},
    {"JetMoeForCausalLM", "jetmoe", "heads of its queries are chosen as experts are"},
    {"MuseSparkForConditionalGeneration", "muse_spark",
     "what an expert gives is normed before the experts are summed up, and streams are mixed by "
     "gates of each column"},
    {"PaliGemmaForConditionalGeneration", "paligemma", kBothSides},
    {"Qwen4ExpForCausalLM", "qwen4_exp_text",
     "some of its layers have tables of the last tokens together, and its streams are connected by "
     "matrices of low rank"},
    {"Qwen4ExpForConditionalGeneration", "qwen4_exp",
     "some of its layers have tables of the last tokens together, and its streams are connected by "
     "matrices of low rank"},
    {"RwkvForCausalLM", "rwkv", "its layers carry a state of another kind (time mixing)"},
    {"UnlimitedOcrForConditionalGeneration", "unlimited_ocr",
     "tokens of the answer see the whole prompt, and of the answer a window"},
    {"XLNetLMHeadModel", "xlnet", "it predicts tokens in any order"},
    {"ZambaForCausalLM", "zamba", "heads of its Mamba have matrices of their own"},
    {"ZayaForCausalLM", "zaya",
     "convolutions go over its queries and keys, and what its routers make goes from layer to "
     "layer"},
    {"xLSTMForCausalLM", "xlstm", "its layers carry a state of another kind (mLSTM)"},
    // Of code that was published beside the files.
    {"ArcticForCausalLM", "arctic", "experts stand beside a dense MLP with a stream of its own"},
    {"JAISLMHeadModel", "jais", "GPT-2's block with ALiBi and a gate is not read; Jais 2 is"},
    {"MiniMaxM1ForCausalLM", "minimax_m1", kPublishedMiniMax},
    {"MiniMaxText01ForCausalLM", "minimax_text_01", kPublishedMiniMax},
    {"Phi3SmallForCausalLM", "phi3small", "its attention leaves out blocks of tokens"},
    {"SolarForCausalLM", "solar", "streams of some layers are mixed with those of earlier ones"},
    {"TeleChat2ForCausalLM", "telechat",
     "how it stretches positions past the length that it was trained with is not known here"},
    // Encoder-decoders.
    {"BartForConditionalGeneration", "bart", kEncoderDecoder},
    {"BigBirdPegasusForConditionalGeneration", "bigbird_pegasus", kEncoderDecoder},
    {"BlenderbotForConditionalGeneration", "blenderbot", kEncoderDecoder},
    {"BlenderbotSmallForConditionalGeneration", "blenderbot-small", kEncoderDecoder},
    {"EncoderDecoderModel", "encoder-decoder", kEncoderDecoder},
    {"FSMTForConditionalGeneration", "fsmt", kEncoderDecoder},
    {"LEDForConditionalGeneration", "led", kEncoderDecoder},
    {"LongT5ForConditionalGeneration", "longt5", kEncoderDecoder},
    {"M2M100ForConditionalGeneration", "m2m_100", kEncoderDecoder},
    {"MarianMTModel", "marian", kEncoderDecoder},
    {"MBartForConditionalGeneration", "mbart", kEncoderDecoder},
    {"MT5ForConditionalGeneration", "mt5", kEncoderDecoder},
    {"MvpForConditionalGeneration", "mvp", kEncoderDecoder},
    {"NllbMoeForConditionalGeneration", "nllb-moe", kEncoderDecoder},
    {"PegasusForConditionalGeneration", "pegasus", kEncoderDecoder},
    {"PegasusXForConditionalGeneration", "pegasus_x", kEncoderDecoder},
    {"PLBartForConditionalGeneration", "plbart", kEncoderDecoder},
    {"ProphetNetForConditionalGeneration", "prophetnet", kEncoderDecoder},
    {"SwitchTransformersForConditionalGeneration", "switch_transformers", kEncoderDecoder},
    {"T5ForConditionalGeneration", "t5", kEncoderDecoder},
    {"T5GemmaForConditionalGeneration", "t5gemma", kEncoderDecoder},
    {"T5Gemma2ForConditionalGeneration", "t5gemma2", kEncoderDecoder},
    {"UMT5ForConditionalGeneration", "umt5", kEncoderDecoder},
    {"WhisperForConditionalGeneration", "whisper", kEncoderDecoder},
    {"Florence2ForConditionalGeneration", "florence2", kEncoderDecoder},
    {"Pix2StructForConditionalGeneration", "pix2struct", kEncoderDecoder},
    {"UdopForConditionalGeneration", "udop", kEncoderDecoder},
    {"VisionEncoderDecoderModel", "vision-encoder-decoder", kEncoderDecoder},
    {"Speech2TextForConditionalGeneration", "speech_to_text", kEncoderDecoder},
    {"MoonshineForConditionalGeneration", "moonshine", kEncoderDecoder},
});

}  // namespace

std::span<const AbsentClass> absent_classes() {
  return kAbsentClasses;
}

std::string_view why_absent(std::string_view name) {
  const auto found = std::ranges::find_if(kAbsentClasses, [&](const AbsentClass& absent) {
    return absent.name == name || absent.model_type == name;
  });
  return found == kAbsentClasses.end() ? std::string_view{} : found->reason;
}

}  // namespace tgi
