// Which dialect a chat template shows.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/dialect/spoken.h"
#include "tests/shared_data.h"

namespace tgi::dialect {
namespace {

std::string name_of(const ToolDialect* dialect) {
  return dialect == nullptr ? "none" : std::string(dialect->name);
}

struct Shown {
  const char* marks;
  const char* tools;
  const char* reasoning;
};

// Marks as the templates of the families hold them, those of others beside them where they do.
constexpr Shown kShown[] = {
    {"<|channel|>analysis<|message|> to=functions.", "gpt_oss", "gpt_oss"},
    {"<｜DSML｜function_calls></think>", "deepseek_v32", "think"},
    {"<｜DSML｜tool_calls></think>", "deepseek_v4", "think"},
    {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜> ```json", "deepseek_v3",
     "none"},
    {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜></think>", "deepseek_v31", "think"},
    {"<|tool_calls_section_begin|>", "kimi_k2", "none"},
    {"<minimax:tool_call><invoke name=</think>", "minimax_m2", "think"},
    {"<beginning_of_sentence><tool_calls>", "minimax_m1", "none"},
    {"<｜DSML｜ calls></think>", "deepseek_v41", "think"},
    {"<longcat_tool_call>{\"name\": ", "longcat", "none"},
    {"<longcat_tool_call><longcat_arg_key></longcat_think>", "longcat_keys", "longcat"},
    {"<｜tool_calls_begin｜><steptml:invoke name=</think>", "step3", "think"},
    {"<dots_function_call><invoke name=", "dots", "none"},
    {"<functions></functions> <function_calls></function_calls>", "olmo3", "none"},
    {"<seed:tool_call><function=<parameter=<seed:think></seed:think>", "seed_oss", "seed_oss"},
    {"[gMASK]<tool_call><arg_key></think>", "glm45", "think"},
    {"<tool_call><function=<parameter=</think>", "qwen3_coder", "think"},
    {"<function=", "functionary", "none"},
    {"[TOOL_CALLS][ARGS][THINK][/THINK]", "mistral_v11", "mistral"},
    {"[TOOL_CALLS]", "mistral", "none"},
    {"<|START_ACTION|>\"parameters\": <|START_THINKING|>", "command_r7b", "command_r7b"},
    {"Action: ```json \"parameters\": ", "command_r_plus", "none"},
    {"<|tool_list_start|></think>", "lfm2", "think"},
    {"<|tool_call|><|start_of_role|>", "granite", "none"},
    {"<|tool|><|/tool|>", "phi4_mini", "none"},
    {"functools[ <|end|>", "phi4_mini", "none"},
    {"functools[", "firefunction_v2", "none"},
    {"<function_call> no_function", "granite_20b_fc", "none"},
    {"<TOOLCALL></think>", "nemotron_json", "think"},
    {"<tool_calls>[BEGIN FINAL RESPONSE]", "apriel", "apriel"},
    {"<tool_calls>", "hunyuan", "none"},
    {"tool_calls{} :opensource", "hunyuan_v3", "hunyuan_v3"},
    {"<|tools_prefix|>", "apertus", "none"},
    {"<|tool_call:begin|>", "solar_open", "solar_open"},
    {"<|function_call|>", "gigachat", "none"},
    {"<|action_start|>", "internlm2", "none"},
    {"[gMASK]", "glm4", "none"},
    {"<tool_call>\"parameters\": </think>", "hermes", "think"},
    {"[func_name1(params_name1=params_value1", "pythonic", "none"},
    {"tool_call_name", "xlam", "none"},
    {"\"parameters\": ", "llama3_json", "none"},
    {"<|im_start|>", "generic", "none"},
    {"<|tool_call>call:<|channel>thought<channel|>", "gemma4", "gemma4"},
    {"<start_function_call>call:<escape>", "function_gemma", "none"},
    {"]<]minimax[>[<tool_call></mm:think>", "minimax_m3", "minimax_m3"},
    {"<function name=\"<param name=\"</think>", "minicpm5", "think"},
    {"<|open|>message<|sep|>", "kimi_k3", "kimi_k3"},
    {">>>all", "functionary_v32", "none"},
    {"<|from|>system<|recipient|>all", "functionary_v22", "none"},
    {"<atem:function_calls>", "muse_glimmer", "muse_glimmer"},
    {"<|tool_call:start|><|tool_arg:start|><|think:start|><|think:end|>", "solar_open2",
     "solar_open2"},
    {"<｜GCML｜tool_calls><|role_sep|></think>", "gigachat35", "gigachat35"},
    {"<iquest_tool_call><arg_key></think>", "iquest_q1", "think"},
    {"<ifm|tool_calls><ifm|tool_call><ifm|arg_key>ifm|think_fast", "k2_horizon", "k2_horizon"},
    {"<|message_model|><|content_invoke_tool_json|>", "inkling", "inkling"},
    {"<tool_call><think><response></global_setting>", "hermes", "ernie45"},
    {"<|tool_call|><|start_of_role|><think></think> between <response></response>", "granite",
     "ernie45"},
    {"<|tool_call|><|start_of_role|> after 'Here is my thought process:'", "granite", "granite"},
    {"<minimax:tool_call><think></think><response>", "minimax_m2", "think"},
    {"<tool_calls><|extra_0|><|extra_4|>", "hunyuan", "hunyuan"},
    {"<｜hy_User｜><｜hy_Assistant｜>", "generic", "hunyuan"},
    {"<|tools_prefix|><|inner_prefix|>", "apertus", "apertus"},
    {"◁think▷◁/think▷", "generic", "kimi_vl"},
};

}  // namespace

TEST_CASE("a template's marks tell the dialect") {
  for (const Shown& shown : kShown) {
    CAPTURE(shown.marks);
    const ChatTemplate chat_template =
        ChatTemplate::parse(std::string("{# ") + shown.marks + " #}{{ messages }}");
    const Dialects found = choose_dialects(&chat_template, "auto", "auto");
    CHECK(name_of(found.tools) == shown.tools);
    CHECK((found.reasoning == nullptr ? "none" : std::string(found.reasoning->name)) ==
          shown.reasoning);
  }
}

TEST_CASE("every dialect can be named, and none can be switched off") {
  const ChatTemplate chat_template = ChatTemplate::parse("{{ messages }}");
  for (const ToolDialect* const dialect : tool_dialects()) {
    CHECK(choose_dialects(&chat_template, dialect->name, "none").tools == dialect);
  }
  for (const ReasoningDialect* const dialect : reasoning_dialects()) {
    CHECK(choose_dialects(&chat_template, "none", dialect->name).reasoning == dialect);
  }
  CHECK(choose_dialects(&chat_template, "none", "none").tools == nullptr);
  CHECK(choose_dialects(nullptr, "hermes", "think").tools == nullptr);
  CHECK_THROWS_AS(choose_dialects(&chat_template, "hermess", "auto"), Error);
  CHECK_THROWS_AS(choose_dialects(&chat_template, "auto", "thinking"), Error);
}

TEST_CASE("templates of real models are recognised") {
  const std::string folder = "templates/llama.cpp-goldens";
  if (!has_shared_data(folder)) return;
  const std::pair<const char*, const char*> kModels[] = {
      {"Qwen-Qwen2.5-7B-Instruct", "hermes"},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes"},
      {"meta-llama-Meta-Llama-3.1-8B-Instruct", "llama3_json"},
      {"meta-llama-Llama-3.2-3B-Instruct", "llama3_json"},
      {"mistralai-Mistral-Nemo-Instruct-2407", "mistral"},
      {"meetkai-functionary-medium-v3.1", "functionary"},
      {"meetkai-functionary-medium-v3.2", "functionary_v32"},
      {"CohereForAI-c4ai-command-r-plus-tool_use", "command_r_plus"},
      {"deepseek-ai-DeepSeek-V2.5", "deepseek_v3"},
      {"google-gemma-2-2b-it", "generic"},
      {"microsoft-Phi-3.5-mini-instruct", "generic"},
      {"Qwen-Qwen2-7B-Instruct", "generic"},
  };
  size_t num_found = 0;
  for (const auto& [model, name] : kModels) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(shared_data_dir() + "/" + folder)) {
      if (entry.path().filename() != std::string(model) + ".jinja") continue;
      ++num_found;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string source{std::istreambuf_iterator<char>(file), {}};
      const ChatTemplate chat_template = ChatTemplate::parse(source);
      CAPTURE(model);
      CHECK(name_of(choose_dialects(&chat_template, "auto", "auto").tools) == name);
    }
  }
  CHECK(num_found == std::size(kModels));
}

}  // namespace tgi::dialect
