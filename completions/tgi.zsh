#compdef tgi
# Completion of tgi for zsh. Written by `scripts/make_docs` from the options of tgi; do not edit.

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

_tgi() {
  local -a commands
  commands=(
    'run:chat with a model, or let it answer, from a name alone'
    'chat:talk with the model'
    'generate:answer a prompt, or each line of a file'
    'serve:answer HTTP\: TGI'\''s API and OpenAI'\''s'
    'ps:show what the daemon is doing'
    'logs:show what the daemon wrote to its log'
    'load:load a model into the daemon'
    'unload:free the model'\''s memory; the daemon stays'
    'stop:stop the daemon after it has finished what runs'
    'pull:the same as download-weights'
    'download-weights:bring a model to this machine'
    'ls:list the models of this machine'
    'show:show what a model is and what memory it needs'
    'rm:remove a model from this machine'
    'create:keep a named model with its prompt and settings, from a Modelfile'
    'quantize:write a quantised checkpoint of a model'
    'adapters:list, load and unload LoRA adapters'
    'embed:write the vector of a text, or of each line'
    'rerank:order lines by how well they fit a question'
    'tokenize:show the tokens of a text'
    'detokenize:write the text of tokens'
    'render:write what the chat template makes of messages'
    'bench:measure prefill and decode speed over the socket'
    'doctor:look for what is wrong with this machine, the daemon or its model'
    'config:show the settings and where they come from, and change them'
    'version:show the versions of the tool and of the daemon'
  )
  local -i at=2
  local value
  while (( at < CURRENT )); do
    case ${words[at]} in
      --socket) value='_files'; (( at += 2 )) ;;
      -*) (( at += 1 )) ;;
      *) break ;;
    esac
  done
  if (( at > CURRENT )); then
    eval $value
    return
  fi
  if (( at == CURRENT )) && [[ ${words[CURRENT]} == -* ]]; then
    _arguments \
      '--version[print the version, the commit and the backends]' \
      '-h[show the options that matter most, and examples]' \
      '--help[show the options that matter most, and examples]' \
      '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
      '--no-start[do not start a daemon when none is running]' \
      '-v[say more on stderr\: what is done, tokens per second]' \
      '--verbose[say more on stderr\: what is done, tokens per second]' \
      && return 0
  fi
  if (( at == CURRENT )); then
    _describe 'command' commands
    return
  fi
  local command=${words[at]}
  shift $(( at - 1 )) words
  (( CURRENT -= at - 1 ))
  case $command in
    run)
      _arguments \
        '--system[the system message]:TEXT: ' \
        '--raw[on a terminal write answers as they are, no markdown rendered]' \
        '--offline[download nothing]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        ':MODEL:_tgi_models' \
        '::PROMPT: ' \
        && return 0
      ;;
    chat)
      _arguments \
        '--system[the system message]:TEXT: ' \
        '--load[go on with a conversation that /save wrote]:FILE:_files' \
        '--resume[go on with the last chat of a terminal, which is kept by itself]' \
        '--no-save[do not keep this chat for --resume]' \
        '--tools[the tools that the model may call\: a JSON list in OpenAI'\''s shape, or of functions]:FILE:_files' \
        '--max-reasoning-tokens[of a model that reasons\: end its reasoning after this many tokens]:N: ' \
        '--reasoning-effort[how much a model that reasons is to reason, in words that its template knows\: none, low, medium, high]:WORD: ' \
        '--stats[after each answer say on stderr how fast it came]' \
        '--raw[on a terminal write answers as they are, no markdown rendered]' \
        '-m[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--model[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--offline[download nothing]' \
        '--adapter[answer by this LoRA adapter\: one that is loaded (`tgi adapters`), a folder, a GGUF file, or ORG/NAME\[@REVISION\] of the hub, which is downloaded when it is not here]:ADAPTER:_tgi_adapters' \
        '--max-new-tokens[generate at most this many tokens; default\: all that fit the model'\''s context]:N: ' \
        '--min-new-tokens[draw no end of the answer before this many tokens; 0 is off]:N: ' \
        '--temperature[more than 0; below 1 sharpens, above 1 flattens the distribution; turns sampling on]:X: ' \
        '--top-k[sample from the k likeliest tokens; turns sampling on]:N: ' \
        '--top-p[sample from the likeliest tokens that make up this share, above 0 and up to 1; turns sampling on]:X: ' \
        '--min-p[sample from tokens at least this share as likely as the likeliest, 0 to 1; turns sampling on]:X: ' \
        '--typical-p[sample from the most typical tokens that make up this share, above 0 and up to 1; turns sampling on]:X: ' \
        '--repetition-penalty[more than 0; above 1 makes tokens of prompt and answer less likely; 1 is off]:X: ' \
        '--frequency-penalty[-2 to 2; taken off a token'\''s logit once per time it was generated]:X: ' \
        '--presence-penalty[-2 to 2; taken off the logit of every token that was generated]:X: ' \
        '--seed[seed of the draws; the same seed gives the same text; default\: random, reported back]:N: ' \
        '*--stop[end the answer after this text; may be given several times]:TEXT: ' \
        '--exclude-stop-text[leave the stop text out of the answer]' \
        '--do-sample[draw tokens at random; default\: take the likeliest one each time]' \
        '--ignore-eos[go on after the model'\''s end token, up to --max-new-tokens]' \
        '--watermark[watermark the answer]' \
        '--no-prefix-cache[compute the whole prompt, even what the prefix cache has]' \
        '--speculate[draft at most this many tokens for a step\: the answer is the same; 0\: none; default\: as the model was loaded, which is the most]:N: ' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
    generate)
      _arguments \
        '-f[read the prompt from this file, less one newline at its end]:FILE:_files' \
        '--file[read the prompt from this file, less one newline at its end]:FILE:_files' \
        '--lines[each line of the input is a prompt; the answers come in the same order]' \
        '--parallel[with --lines\: at most this many prompts at once; default 128]:N: ' \
        '--stream[write the answer as it is generated; on a terminal that is so without it]' \
        '--json[write one JSON object per answer; with --stream one per token and one at the end]' \
        '--details[every token with its log probability\: in the JSON, else as a table on stderr]' \
        '--chat[the prompt is a user'\''s message; the model'\''s chat template is put around it]' \
        '--system[with --chat\: the system message]:TEXT: ' \
        '--raw[on a terminal write the answer to a chat as it is, no markdown rendered]' \
        '--max-reasoning-tokens[of a model that reasons\: end its reasoning after this many tokens]:N: ' \
        '--reasoning-effort[how much a model that reasons is to reason, in words that its template knows\: none, low, medium, high]:WORD: ' \
        '-m[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--model[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--offline[download nothing]' \
        '--adapter[answer by this LoRA adapter\: one that is loaded (`tgi adapters`), a folder, a GGUF file, or ORG/NAME\[@REVISION\] of the hub, which is downloaded when it is not here]:ADAPTER:_tgi_adapters' \
        '--max-new-tokens[generate at most this many tokens; default\: all that fit the model'\''s context]:N: ' \
        '--min-new-tokens[draw no end of the answer before this many tokens; 0 is off]:N: ' \
        '--temperature[more than 0; below 1 sharpens, above 1 flattens the distribution; turns sampling on]:X: ' \
        '--top-k[sample from the k likeliest tokens; turns sampling on]:N: ' \
        '--top-p[sample from the likeliest tokens that make up this share, above 0 and up to 1; turns sampling on]:X: ' \
        '--min-p[sample from tokens at least this share as likely as the likeliest, 0 to 1; turns sampling on]:X: ' \
        '--typical-p[sample from the most typical tokens that make up this share, above 0 and up to 1; turns sampling on]:X: ' \
        '--repetition-penalty[more than 0; above 1 makes tokens of prompt and answer less likely; 1 is off]:X: ' \
        '--frequency-penalty[-2 to 2; taken off a token'\''s logit once per time it was generated]:X: ' \
        '--presence-penalty[-2 to 2; taken off the logit of every token that was generated]:X: ' \
        '--seed[seed of the draws; the same seed gives the same text; default\: random, reported back]:N: ' \
        '*--stop[end the answer after this text; may be given several times]:TEXT: ' \
        '--exclude-stop-text[leave the stop text out of the answer]' \
        '--do-sample[draw tokens at random; default\: take the likeliest one each time]' \
        '--best-of[generate this many answers and keep the likeliest; needs sampling]:N: ' \
        '--top-n-tokens[report this many of the likeliest tokens at each place]:N: ' \
        '--truncate[keep only the last N tokens of the prompt]:N: ' \
        '--ignore-eos[go on after the model'\''s end token, up to --max-new-tokens]' \
        '--return-full-text[put the prompt before the answer]' \
        '--watermark[watermark the answer]' \
        '--prompt-logprobs[report the tokens of the prompt with their log probabilities; does not use the prefix cache]' \
        '--no-prefix-cache[compute the whole prompt, even what the prefix cache has]' \
        '--speculate[draft at most this many tokens for a step\: the answer is the same; 0\: none; default\: as the model was loaded, which is the most]:N: ' \
        '--schema[the answer is JSON that satisfies the JSON schema in this file; - reads it from standard input]:FILE:_files' \
        '--regex[the whole answer matches this regular expression]:PATTERN: ' \
        '--grammar[the answer is a text of the grammar in this file, written in GBNF or Lark; - reads it from standard input]:FILE:_files' \
        '*--choice[the answer is one of these texts, separated by commas (\\, is a comma of a text); may be given several times]:TEXT,...: ' \
        '--flexible-whitespace[with --schema\: blanks and line ends may stand between the parts of the JSON; default\: none]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '::PROMPT: ' \
        && return 0
      ;;
    serve)
      _arguments \
        '*--model[one more model beside MODEL, under a name by which requests ask for it; may be given more than once]:NAME=MODEL: ' \
        '*--on-demand[a model that is loaded when a request asks for it by this name; may be given more than once]:NAME=MODEL: ' \
        '--load-installed[models that tgi has downloaded or made are loaded when a request asks for them by the name that `tgi ls` shows; of a daemon that is started for this]' \
        '--max-models[models that are loaded at once; beyond it the one unused for longest gives way, once its requests have ended; default\: as many as fit]:N: ' \
        '--keep-alive[how long a model stays without a request\: 5m, 1h30m, 300 (seconds), 0 (no longer than its requests), -1 (it stays); default -1]:TIME: ' \
        '--http[where to listen, as \:8080, 127.0.0.1\:8080 or \[\:\:1\]\:8080; port 0\: a free one; default 127.0.0.1\:3000, with an API key 0.0.0.0\:3000]:ADDRESS: ' \
        '--pooling[which hidden states make the vector of a text\: of its first or last token, the mean or the highest of all; auto\: what the model'\''s own files say. With another value a model that draws tokens gives vectors; one of auto, cls, mean, max, last-token; default auto (tgid --pooling)]:MODE: ' \
        '--tool-parser[how the model writes calls of tools; auto\: as its chat template shows it; none\: tools are refused; one of auto, none, gpt_oss, deepseek_v32, deepseek_v41, deepseek_v4, deepseek_v3, deepseek_v31, kimi_k2, inkling, kimi_k3, minimax_m3, minimax_m2, minimax_m1, seed_oss, iquest_q1, k2_horizon, glm45, longcat_keys, longcat, step3, dots, olmo3, minicpm5, qwen3_coder, functionary, functionary_v32, functionary_v22, muse_glimmer, gemma4, function_gemma, mistral_v11, mistral, command_r7b, command_r_plus, lfm2, granite, phi4_mini, firefunction_v2, granite_20b_fc, nemotron_json, apriel, hunyuan, hunyuan_v3, apertus, solar_open2, solar_open, gigachat35, gigachat, internlm2, glm4, hermes, pythonic, xlam, llama3_json, generic; default auto (tgid --tool-parser)]:NAME: ' \
        '--reasoning-parser[how the model writes its reasoning; auto\: as its chat template shows it; none\: reasoning stays in the text; one of auto, none, gpt_oss, command_r7b, seed_oss, mistral, apriel, hunyuan_v3, solar_open, gemma4, kimi_k3, longcat, minimax_m3, muse_glimmer, solar_open2, inkling, k2_horizon, apertus, gigachat35, ernie45, hunyuan, granite, kimi_vl, think; default auto (tgid --reasoning-parser)]:NAME: ' \
        '--kv-cache-memory[of the KV cache of all ranks, such as 4GiB; auto\: on a GPU what the weights leave, but no more than two whole contexts of each sequence that may run, else room for 16 whole contexts, at most half of what they leave; default auto (tgid --kv-cache-memory)]:SIZE: ' \
        '--speculator[heads that were made to draft for this model, in place of what followed the same text before\: Medusa'\''s or an MLP speculator, as text-generation-inference reads them; without --speculate as many tokens are drafted as there are heads. Or an EAGLE-3 drafter; up to 5 tokens then. mtp\: the layer for the next tokens that the model'\''s own checkpoint has (DeepSeek V3, GLM 4.5, Hunyuan 3, Mellum 2); up to 3 then; default  (tgid --speculator)]:FOLDER: ' \
        '--draft-model[a smaller model of the same vocabulary that drafts, with weights and a KV cache of its own beside the model'\''s; without --speculate it drafts up to 5 tokens; default  (tgid --draft-model)]:MODEL:_tgi_models' \
        '--deterministic[bits of an answer never depend on what else is in its batch; slower on a GPU, always so on the CPU (tgid --deterministic)]' \
        '--threads[of the CPU backend, for all ranks together; auto\: one per physical core this process may use, within the quota of its cgroup; default auto (tgid --threads)]:N: ' \
        '--lorax-merging[merged_adapters by LoRAX'\''s arithmetic\: A and B each by itself, so that weights count twice and one adapter'\''s A meets another'\''s B; adapters of one rank only (tgid --lorax-merging)]' \
        '--offline[download nothing\: models come from folders and from the cache (HF_HUB_OFFLINE)]' \
        '--any-model[a `model` that is neither the model'\''s name nor an adapter'\''s means the model that is served, instead of 404]' \
        '--allow-pull[clients may have models of the hub downloaded by ollama'\''s /api/pull, and loaded by their names then\: whoever reaches this server (with its API key) fills this machine'\''s disk]' \
        '--allow-runtime-lora-updating[clients may have LoRA adapters loaded and unloaded by vLLM'\''s routes\: whoever reaches this server (with its API key) names folders that are read here]' \
        '--max-stored-responses[most answers of /v1/responses that are kept in memory, for GET and previous_response_id; default 1000, 0\: none]:N: ' \
        '--max-stored-bytes[most bytes that they have together; the one used longest ago goes; default 100000000]:N: ' \
        '--model-id[as the argument MODEL\: a Hugging Face folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, or "demo"; default\: what the daemon has]:PATH:_files' \
        '--revision[of a model of the hub\: a branch, a tag or a commit; default main]:REV: ' \
        '--validation-workers[threads of the daemon that render chats and tokenise prompts; default 2 (tgid --intake-threads)]:N: ' \
        '--sharded[true wants --num-shard of 2 or more beside it\: GPUs are not counted here. false changes nothing]:BOOL: ' \
        '--num-shard[ranks that share the model\: one GPU each, or threads of the processor, where it is no faster; default 1, where TGI takes all GPUs (tgid --num-shard)]:N: ' \
        '--quantize[int8 or int4\: round the weights to that while loading; none; the name of a format, as gptq or fp8\: the checkpoint must be so. Of an unquantised one eetq and bitsandbytes are int8, bitsandbytes-nf4 and bitsandbytes-fp4 are int4, which the daemon logs. TGI'\''s and LoRAX'\''s other kinds are refused, each with what to use (tgid --quantize)]:KIND: ' \
        '--speculate[tokens that are drafted at most for a step, from what followed the same text before\: answers stay as they are; default\: as a preset says, else none (tgid --speculate)]:N: ' \
        '--dtype[of the weights in memory\: float16, bfloat16, float32, auto; default auto, as the checkpoint says (tgid --dtype)]:TYPE: ' \
        '--kv-cache-dtype[of the KV cache\: float16, bfloat16, float32, auto; default auto, as the weights; fp8_e4m3fn, int8 on the CPU, fp8_e5m2 is refused (tgid --kv-cache-dtype)]:TYPE: ' \
        '--max-concurrent-requests[requests at once; one more gets 429 at once; default 128]:N: ' \
        '--max-best-of[largest `best_of`; default 2]:N: ' \
        '--max-stop-sequences[most `stop` texts of a request; default 4]:N: ' \
        '--max-top-n-tokens[largest `top_n_tokens`; default 5. `top_logprobs` of the OpenAI routes goes to 20]:N: ' \
        '--max-input-tokens[most tokens of a prompt; default\: all but one of --max-total-tokens]:N: ' \
        '--max-input-length[older name of --max-input-tokens; both is an error]:N: ' \
        '--max-total-tokens[most tokens of a request, prompt and output together; default\: what the model and the KV cache allow (tgid --max-total-tokens)]:N: ' \
        '--waiting-served-ratio[any value from 0 holds\: it says when running requests are paused for waiting ones, and here they never are; see tgid --target-step-ms]:X: ' \
        '--max-batch-prefill-tokens[most tokens of a step, prompts and running requests together; a longer prompt takes several steps (tgid --max-batch-tokens)]:N: ' \
        '--max-waiting-tokens[any value holds\: a waiting request joins at the next step when there is room, so none waits for so many tokens]:N: ' \
        '--max-batch-size[most sequences in a step; default 64, on a GPU 256 (tgid --max-running)]:N: ' \
        '--hostname[address to listen on; default 127.0.0.1, with an API key 0.0.0.0. The variable is read only when it is an IP address\: shells and containers put the machine'\''s name there]:HOST: ' \
        '-p[port to listen on; default 3000, 0\: a free one]:PORT: ' \
        '--port[port to listen on; default 3000, 0\: a free one]:PORT: ' \
        '--huggingface-hub-cache[where models of the hub are looked for and downloaded to; default $HF_HUB_CACHE, else $HF_HOME/hub, else ~/.cache/huggingface/hub]:PATH:_files' \
        '--cuda-memory-fraction[of the memory that is free on a GPU, for weights, KV cache and workspace; default 0.9 (tgid --cuda-memory-fraction)]:X: ' \
        '--json-output[log lines as JSON]' \
        '--otlp-endpoint[send traces there\: OTLP over HTTP, usually port 4318; TGI spoke gRPC, and its port 4317 is refused]:URL: ' \
        '--otlp-service-name[service.name of the traces; default text-generation-inference.router]:NAME: ' \
        '*--cors-allow-origin[browsers'\'' pages that may call, such as https\://example.org; may be given several times, or with commas; default\: any]:ORIGIN: ' \
        '--api-key[clients have to send `Authorization\: Bearer KEY`; others see a flag in the list of processes, so rather set API_KEY]:KEY: ' \
        '--tokenizer-config-path[a tokenizer_config.json whose chat template is used]:FILE:_files' \
        '--disable-grammar-support[answer a request with a grammar by 422 `grammar is not supported`]' \
        '--max-client-batch-size[most prompts of a /v1/completions request; default 4]:N: ' \
        '*--lora-adapters[LoRA adapters that requests may name\: ADAPTER or NAME=ADAPTER, a folder or ORG/NAME\[@REVISION\]]:LIST: ' \
        '--payload-limit[most bytes of a request'\''s body; default 2000000]:N: ' \
        '--enable-prefill-logprobs[without it `prefill` of the details is empty, whatever decoder_input_details says]' \
        '-g[seconds that running requests get to finish at the end; default 90]:N: ' \
        '--graceful-termination-timeout[seconds that running requests get to finish at the end; default 90]:N: ' \
        '--adapter-id[the LoRA adapter of requests that name none\: a folder or ORG/NAME\[@REVISION\]]:ADAPTER:_tgi_adapters' \
        '--default-adapter-source[where an adapter is whose request does not say\: hub, local (a path on this machine) or s3; default hub]:KIND: ' \
        '--speculative-tokens[as --speculate (tgid --speculate)]:N: ' \
        '*--preloaded-adapter-ids[adapters that are loaded at the start and stay on the device, as --lora-adapters writes them]:LIST: ' \
        '--merge-adapter-weights[merge the adapter of --adapter-id into the weights while they are loaded (tgid --merge-adapter)]' \
        '--max-active-adapters[adapters in use at once; default 1024 (tgid --max-active-adapters)]:N: ' \
        '--adapter-cycle-time-s[an adapter that was in use for so long takes no new requests while another one waits for its place; default 2 (tgid --adapter-cycle-time)]:SECONDS: ' \
        '--adapter-memory-fraction[of the memory that weights and workspace leave, for adapters in use; default 0.1 (tgid --adapter-memory-fraction)]:X: ' \
        '--backend[auto (cuda where there is a GPU, else cpu), cpu, cuda, reference; default auto. LoRAX'\''s kinds of attention are refused (tgid --backend)]:NAME: ' \
        '--model-gguf[as --model-id, of a GGUF file]:FILE:_files' \
        '--n-threads[as --threads (tgid --threads)]:N: ' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '::MODEL:_tgi_models' \
        && return 0
      ;;
    ps)
      _arguments \
        '--json[write the whole status as one JSON object; with --watch one a line]' \
        '--ready[write nothing, and end with 0 when requests are answered\: by a model that is loaded, or is when they ask for it; else with 8 and the reason. For health checks]' \
        '-w[go on until Ctrl-C, with a line for each model\: requests that run and wait, tokens/s generated and of prompts computed, shares of the KV cache in use and cached, and how many ms a step takes, which is the time between two tokens of an answer, and one with prompt tokens. Drawn over on a terminal]' \
        '--watch[go on until Ctrl-C, with a line for each model\: requests that run and wait, tokens/s generated and of prompts computed, shares of the KV cache in use and cached, and how many ms a step takes, which is the time between two tokens of an answer, and one with prompt tokens. Drawn over on a terminal]' \
        '--interval[of --watch; default 1]:SECONDS: ' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
    logs)
      _arguments \
        '-f[go on with what comes, until Ctrl-C]' \
        '--follow[go on with what comes, until Ctrl-C]' \
        '-n[only so many lines at the end; default all]:N: ' \
        '--lines[only so many lines at the end; default all]:N: ' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
    load)
      _arguments \
        '--name[serve it beside the models that are loaded, under this name, by which requests and -m ask for it; a model of this name gives way; default\: it takes the place of the default model]:NAME: ' \
        '--on-demand[with --name\: load it only when a request asks for it]' \
        '--pin[it neither gives way to other models nor expires]' \
        '--keep-alive[how long it stays without a request\: 5m, 1h30m, 300 (seconds), 0 (no longer than its requests), -1 (it stays); default\: as the daemon was started]:TIME: ' \
        '--revision[of the hub\: a branch, a tag or a commit]:REV: ' \
        '--offline[download nothing]' \
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
        '--speculate[tokens that are drafted at most for a step of a sequence, from what followed the same text before in its prompt or answer; the step verifies them, so that answers stay as they are and come faster where they repeat something. How many are tried follows from how many were right and what they cost; 0\: none, whatever a preset says or could draft; auto\: as the preset says, else as many as suit what drafts, or none where nothing was made to]:N: ' \
        '--speculator[heads that were made to draft for this model, in place of what followed the same text before\: Medusa'\''s or an MLP speculator, as text-generation-inference reads them; without --speculate as many tokens are drafted as there are heads. Or an EAGLE-3 drafter; up to 5 tokens then. mtp\: the layer for the next tokens that the model'\''s own checkpoint has (DeepSeek V3, GLM 4.5, Hunyuan 3, Mellum 2); up to 3 then]:FOLDER: ' \
        '--draft-model[a smaller model of the same vocabulary that drafts, with weights and a KV cache of its own beside the model'\''s; without --speculate it drafts up to 5 tokens]:MODEL:_tgi_models' \
        '--seed[the seed of requests that draw tokens and name no seed, so that the same request has the same answer each time; auto\: another seed for each]:N: ' \
        '--backend[auto\: cuda where there is a GPU, else cpu; reference\: plain double-precision loops, slow, to check against; one of auto, cpu, cuda, reference]:NAME:(auto cpu cuda reference)' \
        '--num-shard[ranks that share the model by tensor parallelism, each with its part of the weights and of the KV cache\: one GPU each, or threads of this processor, where it is no faster than one; must divide the model'\''s heads]:N: ' \
        '--deterministic[bits of an answer never depend on what else is in its batch; slower on a GPU, always so on the CPU]' \
        '--cuda-memory-fraction[of the memory that is free on a GPU, for weights, KV cache and workspace together; above 0, at most 1]:X: ' \
        '--adapter-memory-fraction[of the memory that weights and workspace leave, for adapters that are in use; others wait until there is room; 0\: no adapters]:X: ' \
        '--max-active-adapters[adapters in use at once; 0\: no adapters]:N: ' \
        '--adapter-cycle-time[an adapter that was in use for so long takes no new requests while another one waits for its place]:SECONDS: ' \
        '--merge-adapter[a LoRA adapter that is merged into the weights while they are loaded]:FOLDER: ' \
        '--lorax-merging[merged_adapters by LoRAX'\''s arithmetic\: A and B each by itself, so that weights count twice and one adapter'\''s A meets another'\''s B; adapters of one rank only]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        ':MODEL:_tgi_models' \
        && return 0
      ;;
    unload)
      _arguments \
        '--keep-name[give its memory back only\: it is loaded again when a request asks for it]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '::NAME: ' \
        && return 0
      ;;
    stop)
      _arguments \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
    pull)
      _arguments \
        '--revision[a branch, a tag or a commit; default main]:REV: ' \
        '*--include[only files that match, instead of the default choice; * matches / too; may be repeated]:GLOB: ' \
        '*--exclude[no files that match; may be repeated]:GLOB: ' \
        '--cache-dir[instead of the cache of huggingface_hub]:DIR:_files -/' \
        '--token[of the hub; HF_TOKEN is better, as a flag can be read in the list of processes]:TOKEN: ' \
        '--offline[use no network\: only say where the model is, if it is here]' \
        '--merge-lora[of a LoRA adapter, a folder or a GGUF file, bring the model that it was made for too, and write the two as one checkpoint, whose folder is the answer; the daemon does it]' \
        '-q[no progress on stderr]' \
        '--quiet[no progress on stderr]' \
        '--json[one JSON object a line on standard output\: plan, progress, file, note, done]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        ':MODEL:_tgi_models' \
        && return 0
      ;;
    download-weights)
      _arguments \
        '--revision[a branch, a tag or a commit; default main]:REV: ' \
        '*--include[only files that match, instead of the default choice; * matches / too; may be repeated]:GLOB: ' \
        '*--exclude[no files that match; may be repeated]:GLOB: ' \
        '--cache-dir[instead of the cache of huggingface_hub]:DIR:_files -/' \
        '--token[of the hub; HF_TOKEN is better, as a flag can be read in the list of processes]:TOKEN: ' \
        '--offline[use no network\: only say where the model is, if it is here]' \
        '--merge-lora[of a LoRA adapter, a folder or a GGUF file, bring the model that it was made for too, and write the two as one checkpoint, whose folder is the answer; the daemon does it]' \
        '-q[no progress on stderr]' \
        '--quiet[no progress on stderr]' \
        '--json[one JSON object a line on standard output\: plan, progress, file, note, done]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        ':MODEL:_tgi_models' \
        && return 0
      ;;
    ls)
      _arguments \
        '--json[write a JSON array with everything known]' \
        '-q[write the names only, one a line]' \
        '--quiet[write the names only, one a line]' \
        '--jobs[list downloads and quantisations instead, newest first\: those that run and those that have ended]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
    show)
      _arguments \
        '--json[write one JSON object]' \
        '--modelfile[write a Modelfile that `tgi create` reads; no daemon is needed]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        ':MODEL:_tgi_models' \
        && return 0
      ;;
    rm)
      _arguments \
        '-y[do not ask]' \
        '--yes[do not ask]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '*:MODEL:_tgi_models' \
        && return 0
      ;;
    create)
      _arguments \
        '-f[the Modelfile, or a .toml; - reads a Modelfile from standard input; default\: Modelfile in this folder]:FILE:_files' \
        '--file[the Modelfile, or a .toml; - reads a Modelfile from standard input; default\: Modelfile in this folder]:FILE:_files' \
        '--offline[download nothing]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        ':NAME: ' \
        && return 0
      ;;
    quantize)
      _arguments \
        '--format[of a folder\: int8, int4 (rounded to nearest), gptq, awq (4 bits, by how a text uses the weights) or fp8; of a GGUF file\: q4_k_m, q5_k_m, q6_k, q8_0, q4_0, iq4_xs, mxfp4, or bf16, f16, f32 to convert only]:FORMAT:(int8 int4 gptq awq fp8 f32 f16 bf16 q8_0 q6_k q5_k_m q4_k_m q4_0 iq4_xs mxfp4)' \
        '--group-size[columns that share a scale, -1\: a whole row; default a row for int8, 32 for int4, 128 for gptq and awq, or the next smaller that divides all matrices]:N: ' \
        '--calibration[text to measure on\: plain, or *.jsonl with a "text" in each line; best like what the model is used for; default a text that is built in]:FILE:_files' \
        '--calibration-sequences[sequences of the text at most, evenly spread; default 64]:N: ' \
        '--calibration-length[tokens of a sequence, at most; default 512, or the model'\''s context where that is shorter]:N: ' \
        '--act-order[gptq\: take the columns by how much they are used; groups stay contiguous]' \
        '--damping[gptq\: added to the diagonal, as a part of its mean; default 0.01]:X: ' \
        '--force[write the model even if its perplexity grew by more than 10 %]' \
        '-q[no progress on stderr]' \
        '--quiet[no progress on stderr]' \
        '--json[the result as one JSON object]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        ':MODEL:_tgi_models' \
        ':OUTPUT: ' \
        && return 0
      ;;
    adapters)
      _arguments \
        '-m[of several models that the daemon has this one, by its name (`tgi ps`); default\: its default model]:MODEL:_tgi_models' \
        '--model[of several models that the daemon has this one, by its name (`tgi ps`); default\: its default model]:MODEL:_tgi_models' \
        '--json[write the list as one JSON object]' \
        '--load[check this adapter against the model and keep it\: a folder, or ORG/NAME\[@REVISION\] of the hub, which is downloaded when it is not here]:ADAPTER:_tgi_adapters' \
        '--name[with --load\: what requests call it; default\: as --load]:NAME: ' \
        '--offline[with --load\: download nothing]' \
        '--unload[forget an adapter; waits until the requests that have it are done]:ADAPTER:_tgi_adapters' \
        '--pin[keep a loaded adapter on the device although nobody uses it]:ADAPTER:_tgi_adapters' \
        '--unpin[no longer]:ADAPTER:_tgi_adapters' \
        '-q[write names only, one a line\: of those that are loaded, and of those that are installed; starts no daemon]' \
        '--quiet[write names only, one a line\: of those that are loaded, and of those that are installed; starts no daemon]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
    embed)
      _arguments \
        '-f[read lines from this file]:FILE:_files' \
        '--file[read lines from this file]:FILE:_files' \
        '--format[json\: a line for each text; npy\: one array]:FORMAT:(json npy)' \
        '-o[write here instead of standard output]:FILE:_files' \
        '--output[write here instead of standard output]:FILE:_files' \
        '--prompt[what stands before each text]:TEXT: ' \
        '--prompt-name[one of the model'\''s own prompts, such as query; absent\: its default]:NAME: ' \
        '--dimensions[the first so many numbers of each vector]:N: ' \
        '--normalize[to the length 1, also where the model'\''s files don'\''t say so]' \
        '--truncate[cut what is too long; else it is an error]' \
        '-m[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--model[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--offline[download nothing]' \
        '--adapter[answer by this LoRA adapter\: one that is loaded (`tgi adapters`), a folder, a GGUF file, or ORG/NAME\[@REVISION\] of the hub, which is downloaded when it is not here]:ADAPTER:_tgi_adapters' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '::TEXT: ' \
        && return 0
      ;;
    rerank)
      _arguments \
        '-f[read lines from this file]:FILE:_files' \
        '--file[read lines from this file]:FILE:_files' \
        '--top[the best so many; absent\: all]:N: ' \
        '--json[a line {"index"\:N,"score"\:X,"text"\:TEXT} for each]' \
        '--raw-scores[logits, as the model gives them]' \
        '--truncate[cut what is too long; else it is an error]' \
        '-m[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--model[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--offline[download nothing]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        ':QUERY: ' \
        && return 0
      ;;
    tokenize)
      _arguments \
        '-f[read the text from this file]:FILE:_files' \
        '--file[read the text from this file]:FILE:_files' \
        '--ids[write the ids alone, on one line]' \
        '--no-special[without the tokens that the model wants around a prompt]' \
        '--json[write what the daemon says, as one JSON object]' \
        '-m[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--model[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--offline[download nothing]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '::TEXT: ' \
        && return 0
      ;;
    detokenize)
      _arguments \
        '-m[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--model[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--offline[download nothing]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '*:ID: ' \
        && return 0
      ;;
    render)
      _arguments \
        '-f[the messages instead\: a file as /save writes it, or a JSON list; - for standard input]:FILE:_files' \
        '--file[the messages instead\: a file as /save writes it, or a JSON list; - for standard input]:FILE:_files' \
        '--system[the system message]:TEXT: ' \
        '--tools[the tools, as `tgi chat` takes them]:FILE:_files' \
        '-m[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--model[a folder, a GGUF file, ORG/NAME\[@REVISION\] or ORG/NAME\:QUANTISATION of the hub, which is downloaded when it is not here, a name of `tgi ls`, "demo", or the name of one of several models that the daemon has (`tgi ps`); default\: the daemon'\''s default model]:MODEL:_tgi_models' \
        '--offline[download nothing]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '::TEXT: ' \
        && return 0
      ;;
    bench)
      _arguments \
        '--min-new-tokens[draw no end of the answer before this many tokens; 0 is off]:N: ' \
        '--temperature[more than 0; below 1 sharpens, above 1 flattens the distribution; turns sampling on]:X: ' \
        '--top-k[sample from the k likeliest tokens; turns sampling on]:N: ' \
        '--top-p[sample from the likeliest tokens that make up this share, above 0 and up to 1; turns sampling on]:X: ' \
        '--min-p[sample from tokens at least this share as likely as the likeliest, 0 to 1; turns sampling on]:X: ' \
        '--typical-p[sample from the most typical tokens that make up this share, above 0 and up to 1; turns sampling on]:X: ' \
        '--repetition-penalty[more than 0; above 1 makes tokens of prompt and answer less likely; 1 is off]:X: ' \
        '--frequency-penalty[-2 to 2; taken off a token'\''s logit once per time it was generated]:X: ' \
        '--presence-penalty[-2 to 2; taken off the logit of every token that was generated]:X: ' \
        '--do-sample[draw tokens at random; default\: take the likeliest one each time]' \
        '--top-n-tokens[report this many of the likeliest tokens at each place]:N: ' \
        '--watermark[watermark the answer]' \
        '--speculate[draft at most this many tokens for a step\: the answer is the same; 0\: none; default\: as the model was loaded, which is the most]:N: ' \
        '-s[tokens of each prompt; default 512]:N: ' \
        '--sequence-length[tokens of each prompt; default 512]:N: ' \
        '--prompt-length[tokens of each prompt; default 512]:N: ' \
        '-d[tokens of each answer; default 128]:N: ' \
        '--decode-length[tokens of each answer; default 128]:N: ' \
        '-w[runs (under load\: requests) before those that count; default 1]:N: ' \
        '--warmups[runs (under load\: requests) before those that count; default 1]:N: ' \
        '--seed[seed of prompts, arrival times and draws; default 1]:N: ' \
        '--json[write one JSON object]' \
        '-q[do not draw the progress on the terminal]' \
        '--quiet[do not draw the progress on the terminal]' \
        '--history[measure nothing\: list what was measured before, newest first; with --model, only that model]' \
        '--limit[benchmarks that --history lists; default 20]:N: ' \
        '*-b[how many requests at once, with commas between or given several times; default 1,4,16]:N,N,...: ' \
        '*--batch-size[how many requests at once, with commas between or given several times; default 1,4,16]:N,N,...: ' \
        '*--batch-sizes[how many requests at once, with commas between or given several times; default 1,4,16]:N,N,...: ' \
        '-r[measured runs of each batch size; default 5]:N: ' \
        '--runs[measured runs of each batch size; default 5]:N: ' \
        '--url[load this server\: http\://HOST\:PORT of TGI, vLLM, llama-server, `tgi serve`, ...]:URL: ' \
        '--serving[load the daemon over its socket]' \
        '--api[what the server speaks; default openai-chat]:NAME:(tgi openai-chat openai-completions)' \
        '--model[the model to ask for; default\: the first the server lists]:NAME: ' \
        '--api-key[sent as a bearer token; better in the environment, where other users can'\''t see it]:KEY: ' \
        '--insecure[do not check the server'\''s certificate]' \
        '--ignore-eos[ask the server to go on after the model'\''s end token, so that answers have the wanted length; always so over the socket]' \
        '--timeout[seconds for one request; default 600]:SECONDS: ' \
        '--tokens-per-word[how the server counts words; default\: two requests find out]:X: ' \
        '--concurrency[requests at once; default 8; with --rate or --trace\: at most, default no limit]:N: ' \
        '--requests[how many; with a trace, its first ones; default 10 times the concurrency, or all of the trace]:M: ' \
        '--rate[requests a second, with Poisson arrivals]:R: ' \
        '--duration[start requests for this many seconds]:SECONDS: ' \
        '--trace[recorded load\: CSV with TIMESTAMP,ContextTokens,GeneratedTokens, or JSON lines with timestamp, input_length, output_length, hash_ids (shared prefixes)]:FILE:_files' \
        '--trace-speed[replay this many times as fast; default 1]:X: ' \
        '--trace-scale[multiply the lengths of a trace; default 1]:X: ' \
        '--max-total-tokens[shorten requests of a trace to this many tokens, prompt and answer together; the report says how many were shortened]:N: ' \
        '--shared-prefix[this many first tokens of each prompt are the same, for prefix caches]:N: ' \
        '--goodput[count the requests that stay within these times in ms\: ttft, itl, tpot, e2e]:ttft: ' \
        '--csv[write one row per request]:FILE:_files' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
    doctor)
      _arguments \
        '--json[write one JSON object, for a report]' \
        '--quick[measure nothing and load no second copy of the model]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
    config)
      _arguments \
        '--changed[with list\: only what is not the default]' \
        '--json[with list and get\: write JSON]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        '::ACTION:(list get set unset path)' \
        '::SETTING:_tgi_settings' \
        '*:VALUE: ' \
        && return 0
      ;;
    version)
      _arguments \
        '--json[write one JSON object; daemon is null where none is running]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '-h[show the options that matter most, and examples]' \
        '--help[show the options that matter most, and examples]' \
        '--help-all[show every option, by what it is about]' \
        && return 0
      ;;
  esac
}
_tgi "$@"
