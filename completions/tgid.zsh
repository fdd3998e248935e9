#compdef tgid
# Completion of tgid for zsh. Written by `scripts/make_docs` from the options of tgid; do not edit.

_tgi_models() {
  local -a names
  names=(${(f)"$(tgi ls --quiet 2>/dev/null)"})
  compadd -a names
  _files -/
}

_tgi_adapters() {
  local -a names
  names=(${(f)"$(tgi adapters --quiet 2>/dev/null)"})
  compadd -a names
  _files -/
}

_tgi_settings() {
  local -a names
  names=(${(f)"$(tgi config list 2>/dev/null | cut -d " " -f 1)"})
  compadd -a names
}

_tgid() {
  _arguments \
    '--model[Hugging Face folder to load at start, or "demo" for the toy model inside the executable; more than once\: several models, each but the first under a name by which requests ask for it]:[NAME=]MODEL: ' \
    '--on-demand[a model that is loaded when a request asks for it by this name, as are those that gave way to others; more than once\: several]:NAME=MODEL: ' \
    '--no-model[start without a model; `tgi load` brings one]' \
    '--load-installed[models that tgi has downloaded or made are loaded when a request asks for them by the name that `tgi ls` shows; looked up when the daemon starts]' \
    '--max-models[models that are loaded at once, 0\: as many as fit. Where one is asked for beyond that, the one unused for longest gives way, once its requests have ended; of --model those beyond it are loaded when they are asked for]:N: ' \
    '--keep-alive[how long a model stays without a request, as 5m, 1h30m or a number of seconds; 0\: no longer than its requests, -1\: until it is unloaded or gives way. The next request that asks for it loads it again]:TIME: ' \
    '--pooling[which hidden states make the vector of a text\: of its first or last token, the mean or the highest of all; auto\: what the model'\''s own files say. With another value a model that draws tokens gives vectors; one of auto, cls, mean, max, last-token]:MODE:(auto cls mean max last-token)' \
    '--load-format[dummy\: random weights in the shapes of config.json, to measure speed without a checkpoint; one of auto, dummy]:FORMAT:(auto dummy)' \
    '--tokenizer-config[a tokenizer_config.json whose chat template goes before the model'\''s own]:FILE:_files' \
    '--tool-parser[how the model writes calls of tools; auto\: as its chat template shows it; none\: tools are refused; one of auto, none, gpt_oss, deepseek_v32, deepseek_v41, deepseek_v4, deepseek_v3, deepseek_v31, kimi_k2, inkling, kimi_k3, minimax_m3, minimax_m2, minimax_m1, seed_oss, iquest_q1, k2_horizon, glm45, longcat_keys, longcat, step3, dots, olmo3, minicpm5, qwen3_coder, functionary, functionary_v32, functionary_v22, muse_glimmer, gemma4, function_gemma, mistral_v11, mistral, command_r7b, command_r_plus, lfm2, granite, phi4_mini, firefunction_v2, granite_20b_fc, nemotron_json, apriel, hunyuan, hunyuan_v3, apertus, solar_open2, solar_open, gigachat35, gigachat, internlm2, glm4, hermes, pythonic, xlam, llama3_json, generic]:NAME:(auto none gpt_oss deepseek_v32 deepseek_v41 deepseek_v4 deepseek_v3 deepseek_v31 kimi_k2 inkling kimi_k3 minimax_m3 minimax_m2 minimax_m1 seed_oss iquest_q1 k2_horizon glm45 longcat_keys longcat step3 dots olmo3 minicpm5 qwen3_coder functionary functionary_v32 functionary_v22 muse_glimmer gemma4 function_gemma mistral_v11 mistral command_r7b command_r_plus lfm2 granite phi4_mini firefunction_v2 granite_20b_fc nemotron_json apriel hunyuan hunyuan_v3 apertus solar_open2 solar_open gigachat35 gigachat internlm2 glm4 hermes pythonic xlam llama3_json generic)' \
    '--reasoning-parser[how the model writes its reasoning; auto\: as its chat template shows it; none\: reasoning stays in the text; one of auto, none, gpt_oss, command_r7b, seed_oss, mistral, apriel, hunyuan_v3, solar_open, gemma4, kimi_k3, longcat, minimax_m3, muse_glimmer, solar_open2, inkling, k2_horizon, apertus, gigachat35, ernie45, hunyuan, granite, kimi_vl, think]:NAME:(auto none gpt_oss command_r7b seed_oss mistral apriel hunyuan_v3 solar_open gemma4 kimi_k3 longcat minimax_m3 muse_glimmer solar_open2 inkling k2_horizon apertus gigachat35 ernie45 hunyuan granite kimi_vl think)' \
    '--dtype[of the weights in memory; auto\: as the checkpoint says; f32 is exact and takes twice the memory and time; one of auto, f32, bf16, f16]:TYPE:(auto f32 bf16 f16)' \
    '--quantize[int8, int4\: round the weights of the layers while loading\: less memory, faster decoding, slightly different answers; the format of a quantised checkpoint is known by itself and, where it is given, only checked; eetq and bitsandbytes, words of TGI, are int8, bitsandbytes-nf4 and -fp4 int4; one of none, int8, int4, compressed-tensors, gptq, awq, fp8, mxfp4, modelopt, bitnet, torchao, bitsandbytes, hqq, exl2, gguf, eetq, bitsandbytes-nf4, bitsandbytes-fp4]:KIND:(none int8 int4 compressed-tensors gptq awq fp8 mxfp4 modelopt bitnet torchao bitsandbytes hqq exl2 gguf eetq bitsandbytes-nf4 bitsandbytes-fp4)' \
    '--quantize-group-size[columns of a weight matrix that share a scale\: 32, 64, 96 and so on to 256; 0\: 128 for int8, 64 for int4]:N: ' \
    '--kv-cache-dtype[of the KV cache; auto\: as dtype; int8 (with a scale for each token and head) only on the CPU; one of auto, f32, bf16, f16, f8e4m3, int8]:TYPE:(auto f32 bf16 f16 f8e4m3 int8)' \
    '--kv-cache-memory[of the KV cache of all ranks, such as 4GiB; auto\: on a GPU what the weights leave, but no more than two whole contexts of each sequence that may run, else room for 16 whole contexts, at most half of what they leave]:SIZE: ' \
    '--max-total-tokens[of one request, prompt and output together; auto\: what the model and the KV cache allow]:N: ' \
    '--max-running[sequences in a step; each costs a slot of the device'\''s table; auto\: 64, on a GPU 256, fewer where states are large]:N: ' \
    '--max-batch-tokens[token rows in a step, prompts and decodes together; more prefills faster and costs workspace; auto\: 512, on a GPU 2048]:N: ' \
    '--target-step-ms[while others decode, prompts are cut so small that a step stays below this many milliseconds; 0\: never]:MS: ' \
    '--speculate[tokens that are drafted at most for a step of a sequence, from what followed the same text before in its prompt or answer; the step verifies them, so that answers stay as they are and come faster where they repeat something. How many are tried follows from how many were right and what they cost; 0\: none, whatever a preset says or could draft; auto\: as the preset says, else as many as suit what drafts, or none where nothing was made to]:N: ' \
    '--speculator[heads that were made to draft for this model, in place of what followed the same text before\: Medusa'\''s or an MLP speculator, as text-generation-inference reads them; without --speculate as many tokens are drafted as there are heads. Or an EAGLE-3 drafter; up to 5 tokens then. mtp\: the layer for the next tokens that the model'\''s own checkpoint has (DeepSeek V3, GLM 4.5, Hunyuan 3, Mellum 2); up to 3 then]:FOLDER: ' \
    '--draft-model[a smaller model of the same vocabulary that drafts, with weights and a KV cache of its own beside the model'\''s; without --speculate it drafts up to 5 tokens]:MODEL:_tgi_models' \
    '--max-waiting[requests in the queue; more are refused at once]:N: ' \
    '--max-best-of[sequences of one request]:N: ' \
    '--max-stop-sequences[of one request]:N: ' \
    '--max-top-n-tokens[alternatives reported for each token]:N: ' \
    '--seed[the seed of requests that draw tokens and name no seed, so that the same request has the same answer each time; auto\: another seed for each]:N: ' \
    '--backend[auto\: cuda where there is a GPU, else cpu; reference\: plain double-precision loops, slow, to check against; one of auto, cpu, cuda, reference]:NAME:(auto cpu cuda reference)' \
    '--num-shard[ranks that share the model by tensor parallelism, each with its part of the weights and of the KV cache\: one GPU each, or threads of this processor, where it is no faster than one; must divide the model'\''s heads]:N: ' \
    '--deterministic[bits of an answer never depend on what else is in its batch; slower on a GPU, always so on the CPU]' \
    '--cuda-memory-fraction[of the memory that is free on a GPU, for weights, KV cache and workspace together; above 0, at most 1]:X: ' \
    '--cpu-isa[instruction set of the CPU backend; auto\: the best that this processor has; all give the same bits; one of auto, amx, avx512bf16, avx512vnni, avx512, avxvnni, avx2, generic]:NAME:(auto amx avx512bf16 avx512vnni avx512 avxvnni avx2 generic)' \
    '--threads[of the CPU backend, for all ranks together; auto\: one per physical core this process may use, within the quota of its cgroup]:N: ' \
    '--pin-threads[keep each thread of the CPU backend on one processor\: for a machine that serves nothing else]' \
    '--slow-reader-timeout[a client that reads nothing for so long is cancelled]:SECONDS: ' \
    '--adapter-memory-fraction[of the memory that weights and workspace leave, for adapters that are in use; others wait until there is room; 0\: no adapters]:X: ' \
    '--max-active-adapters[adapters in use at once; 0\: no adapters]:N: ' \
    '--adapter-cycle-time[an adapter that was in use for so long takes no new requests while another one waits for its place]:SECONDS: ' \
    '--merge-adapter[a LoRA adapter that is merged into the weights while they are loaded]:FOLDER: ' \
    '--lorax-merging[merged_adapters by LoRAX'\''s arithmetic\: A and B each by itself, so that weights count twice and one adapter'\''s A meets another'\''s B; adapters of one rank only]' \
    '--socket[Unix socket to listen on]:PATH:_files' \
    '--allow-group[members of this group may use the daemon, beside its own user and root\: generate, tokenize, see its status and metrics; a socket handed over by systemd lets in whom its SocketGroup= and SocketMode= do]:GROUP: ' \
    '--manage-group[members of this group may manage the daemon too, beside its own user and root\: load, unload, stop, quantize, inspect and check; where another group has the socket they must be in both]:GROUP: ' \
    '--intake-threads[threads that render chats and tokenise prompts]:N: ' \
    '--drain-timeout[on SIGTERM or `tgi stop`, running requests get so long to finish]:SECONDS: ' \
    '--stall-timeout[when requests wait and no step has ended for so long, systemd'\''s watchdog gets no more signs of life; 0\: it always does]:SECONDS: ' \
    '--log-level[the lowest that is logged; one of debug, info, warn, error, off]:LEVEL:(debug info warn error off)' \
    '--print-config[print every setting with its value and where it comes from]' \
    '--probe[measure what this machine'\''s backends can do, print it as JSON, and exit]' \
    '--version[print the version, the commit and the backends]' \
    '--help[show the options that matter most, and examples]' \
    '--help-all[show every option]' \
    && return 0
}
_tgid "$@"
