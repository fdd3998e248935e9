# Completion of tgi for bash. Written by `scripts/make_docs` from the options of tgi; do not edit.

_tgi_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }
_tgi_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
_tgi_folders() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$word")
}
# How many arguments stand between the command, the word $1, and the one that is completed; $2:
# options that have a value.
_tgi_place() {
  local i count=0
  for ((i = $1 + 1; i < COMP_CWORD; ++i)); do
    case "${COMP_WORDS[i]}" in
      -*|=) continue ;;
    esac
    [ "${COMP_WORDS[i-1]}" != = ] || continue
    case "$2" in
      *" ${COMP_WORDS[i-1]} "*) ;;
      *) count=$((count + 1)) ;;
    esac
  done
  echo "$count"
}
_tgi_models() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$word"; compgen -W "$(tgi ls --quiet 2>/dev/null)" -- "$word")
}
_tgi_adapters() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$word"; compgen -W "$(tgi adapters --quiet 2>/dev/null)" -- "$word")
}
_tgi_settings() { _tgi_words "$(tgi config list 2>/dev/null | cut -d " " -f 1)"; }

_tgi() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local options='' others=''
  COMPREPLY=()
  if [ "$word" = = ]; then  # bash takes --dtype=bf16 for three words
    word=''
  elif [ "$previous" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  local at=1
  while [ "$at" -lt "$COMP_CWORD" ]; do
    case "${COMP_WORDS[at]}" in
      --socket) others="_tgi_files"; at=$((at + 2)); [ "${COMP_WORDS[at-1]}" != = ] || at=$((at + 1)) ;;
      -*) at=$((at + 1)) ;;
      *) break ;;
    esac
  done
  if [ "$at" -gt "$COMP_CWORD" ]; then
    eval "$others"
    return
  fi
  others=''
  if [ "$at" -eq "$COMP_CWORD" ]; then
    _tgi_words 'run chat generate serve ps logs load unload stop pull download-weights ls show rm create quantize adapters embed rerank tokenize detokenize render bench doctor config version --version -h --help'
    return
  fi
  case "${COMP_WORDS[at]}" in
    run)
      case "$previous" in
        --system) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--system --raw --offline --socket --no-start -v --verbose -h --help --help-all'
      case "$(_tgi_place "$at" ' --system --socket ')" in
        0) others="_tgi_models" ;;
      esac
      ;;
    chat)
      case "$previous" in
        --system) COMPREPLY=(); return ;;
        --load) _tgi_files; return ;;
        --tools) _tgi_files; return ;;
        --max-reasoning-tokens) COMPREPLY=(); return ;;
        --reasoning-effort) COMPREPLY=(); return ;;
        -m|--model) _tgi_models; return ;;
        --adapter) _tgi_adapters; return ;;
        --max-new-tokens) COMPREPLY=(); return ;;
        --min-new-tokens) COMPREPLY=(); return ;;
        --temperature) COMPREPLY=(); return ;;
        --top-k) COMPREPLY=(); return ;;
        --top-p) COMPREPLY=(); return ;;
        --min-p) COMPREPLY=(); return ;;
        --typical-p) COMPREPLY=(); return ;;
        --repetition-penalty) COMPREPLY=(); return ;;
        --frequency-penalty) COMPREPLY=(); return ;;
        --presence-penalty) COMPREPLY=(); return ;;
        --seed) COMPREPLY=(); return ;;
        --stop) COMPREPLY=(); return ;;
        --speculate) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--system --load --resume --no-save --tools --max-reasoning-tokens --reasoning-effort --stats --raw -m --model --offline --adapter --max-new-tokens --min-new-tokens --temperature --top-k --top-p --min-p --typical-p --repetition-penalty --frequency-penalty --presence-penalty --seed --stop --exclude-stop-text --do-sample --ignore-eos --watermark --no-prefix-cache --speculate --socket --no-start -v --verbose -h --help --help-all'
      ;;
    generate)
      case "$previous" in
        -f|--file) _tgi_files; return ;;
        --parallel) COMPREPLY=(); return ;;
        --system) COMPREPLY=(); return ;;
        --max-reasoning-tokens) COMPREPLY=(); return ;;
        --reasoning-effort) COMPREPLY=(); return ;;
        -m|--model) _tgi_models; return ;;
        --adapter) _tgi_adapters; return ;;
        --max-new-tokens) COMPREPLY=(); return ;;
        --min-new-tokens) COMPREPLY=(); return ;;
        --temperature) COMPREPLY=(); return ;;
        --top-k) COMPREPLY=(); return ;;
        --top-p) COMPREPLY=(); return ;;
        --min-p) COMPREPLY=(); return ;;
        --typical-p) COMPREPLY=(); return ;;
        --repetition-penalty) COMPREPLY=(); return ;;
        --frequency-penalty) COMPREPLY=(); return ;;
        --presence-penalty) COMPREPLY=(); return ;;
        --seed) COMPREPLY=(); return ;;
        --stop) COMPREPLY=(); return ;;
        --best-of) COMPREPLY=(); return ;;
        --top-n-tokens) COMPREPLY=(); return ;;
        --truncate) COMPREPLY=(); return ;;
        --speculate) COMPREPLY=(); return ;;
        --schema) _tgi_files; return ;;
        --regex) COMPREPLY=(); return ;;
        --grammar) _tgi_files; return ;;
        --choice) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-f --file --lines --parallel --stream --json --details --chat --system --raw --max-reasoning-tokens --reasoning-effort -m --model --offline --adapter --max-new-tokens --min-new-tokens --temperature --top-k --top-p --min-p --typical-p --repetition-penalty --frequency-penalty --presence-penalty --seed --stop --exclude-stop-text --do-sample --best-of --top-n-tokens --truncate --ignore-eos --return-full-text --watermark --prompt-logprobs --no-prefix-cache --speculate --schema --regex --grammar --choice --flexible-whitespace --socket --no-start -v --verbose -h --help --help-all'
      ;;
    serve)
      case "$previous" in
        --model) COMPREPLY=(); return ;;
        --on-demand) COMPREPLY=(); return ;;
        --max-models) COMPREPLY=(); return ;;
        --keep-alive) COMPREPLY=(); return ;;
        --http) COMPREPLY=(); return ;;
        --pooling) COMPREPLY=(); return ;;
        --tool-parser) COMPREPLY=(); return ;;
        --reasoning-parser) COMPREPLY=(); return ;;
        --kv-cache-memory) COMPREPLY=(); return ;;
        --speculator) COMPREPLY=(); return ;;
        --draft-model) _tgi_models; return ;;
        --threads) COMPREPLY=(); return ;;
        --max-stored-responses) COMPREPLY=(); return ;;
        --max-stored-bytes) COMPREPLY=(); return ;;
        --model-id) _tgi_files; return ;;
        --revision) COMPREPLY=(); return ;;
        --validation-workers) COMPREPLY=(); return ;;
        --sharded) COMPREPLY=(); return ;;
        --num-shard) COMPREPLY=(); return ;;
        --quantize) COMPREPLY=(); return ;;
        --speculate) COMPREPLY=(); return ;;
        --dtype) COMPREPLY=(); return ;;
        --kv-cache-dtype) COMPREPLY=(); return ;;
        --max-concurrent-requests) COMPREPLY=(); return ;;
        --max-best-of) COMPREPLY=(); return ;;
        --max-stop-sequences) COMPREPLY=(); return ;;
        --max-top-n-tokens) COMPREPLY=(); return ;;
        --max-input-tokens) COMPREPLY=(); return ;;
        --max-input-length) COMPREPLY=(); return ;;
        --max-total-tokens) COMPREPLY=(); return ;;
        --waiting-served-ratio) COMPREPLY=(); return ;;
        --max-batch-prefill-tokens) COMPREPLY=(); return ;;
        --max-waiting-tokens) COMPREPLY=(); return ;;
        --max-batch-size) COMPREPLY=(); return ;;
        --hostname) COMPREPLY=(); return ;;
        -p|--port) COMPREPLY=(); return ;;
        --huggingface-hub-cache) _tgi_files; return ;;
        --cuda-memory-fraction) COMPREPLY=(); return ;;
        --otlp-endpoint) COMPREPLY=(); return ;;
        --otlp-service-name) COMPREPLY=(); return ;;
        --cors-allow-origin) COMPREPLY=(); return ;;
        --api-key) COMPREPLY=(); return ;;
        --tokenizer-config-path) _tgi_files; return ;;
        --max-client-batch-size) COMPREPLY=(); return ;;
        --lora-adapters) COMPREPLY=(); return ;;
        --payload-limit) COMPREPLY=(); return ;;
        -g|--graceful-termination-timeout) COMPREPLY=(); return ;;
        --adapter-id) _tgi_adapters; return ;;
        --default-adapter-source) COMPREPLY=(); return ;;
        --speculative-tokens) COMPREPLY=(); return ;;
        --preloaded-adapter-ids) COMPREPLY=(); return ;;
        --max-active-adapters) COMPREPLY=(); return ;;
        --adapter-cycle-time-s) COMPREPLY=(); return ;;
        --adapter-memory-fraction) COMPREPLY=(); return ;;
        --backend) COMPREPLY=(); return ;;
        --model-gguf) _tgi_files; return ;;
        --n-threads) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--model --on-demand --load-installed --max-models --keep-alive --http --pooling --tool-parser --reasoning-parser --kv-cache-memory --speculator --draft-model --deterministic --threads --lorax-merging --offline --any-model --allow-pull --allow-runtime-lora-updating --max-stored-responses --max-stored-bytes --model-id --revision --validation-workers --sharded --num-shard --quantize --speculate --dtype --kv-cache-dtype --max-concurrent-requests --max-best-of --max-stop-sequences --max-top-n-tokens --max-input-tokens --max-input-length --max-total-tokens --waiting-served-ratio --max-batch-prefill-tokens --max-waiting-tokens --max-batch-size --hostname -p --port --huggingface-hub-cache --cuda-memory-fraction --json-output --otlp-endpoint --otlp-service-name --cors-allow-origin --api-key --tokenizer-config-path --disable-grammar-support --max-client-batch-size --lora-adapters --payload-limit --enable-prefill-logprobs -g --graceful-termination-timeout --adapter-id --default-adapter-source --speculative-tokens --preloaded-adapter-ids --merge-adapter-weights --max-active-adapters --adapter-cycle-time-s --adapter-memory-fraction --backend --model-gguf --n-threads --socket --no-start -v --verbose -h --help --help-all'
      others="_tgi_models"
      ;;
    ps)
      case "$previous" in
        --interval) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--json --ready -w --watch --interval --socket --no-start -v --verbose -h --help --help-all'
      ;;
    logs)
      case "$previous" in
        -n|--lines) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-f --follow -n --lines --socket --no-start -v --verbose -h --help --help-all'
      ;;
    load)
      case "$previous" in
        --name) COMPREPLY=(); return ;;
        --keep-alive) COMPREPLY=(); return ;;
        --revision) COMPREPLY=(); return ;;
        --pooling) _tgi_words 'auto cls mean max last-token'; return ;;
        --load-format) _tgi_words 'auto dummy'; return ;;
        --tokenizer-config) _tgi_files; return ;;
        --tool-parser) _tgi_words 'auto none gpt_oss deepseek_v32 deepseek_v41 deepseek_v4 deepseek_v3 deepseek_v31 kimi_k2 inkling kimi_k3 minimax_m3 minimax_m2 minimax_m1 seed_oss iquest_q1 k2_horizon glm45 longcat_keys longcat step3 dots olmo3 minicpm5 qwen3_coder functionary functionary_v32 functionary_v22 muse_glimmer gemma4 function_gemma mistral_v11 mistral command_r7b command_r_plus lfm2 granite phi4_mini firefunction_v2 granite_20b_fc nemotron_json apriel hunyuan hunyuan_v3 apertus solar_open2 solar_open gigachat35 gigachat internlm2 glm4 hermes pythonic xlam llama3_json generic'; return ;;
        --reasoning-parser) _tgi_words 'auto none gpt_oss command_r7b seed_oss mistral apriel hunyuan_v3 solar_open gemma4 kimi_k3 longcat minimax_m3 muse_glimmer solar_open2 inkling k2_horizon apertus gigachat35 ernie45 hunyuan granite kimi_vl think'; return ;;
        --dtype) _tgi_words 'auto f32 bf16 f16'; return ;;
        --quantize) _tgi_words 'none int8 int4 compressed-tensors gptq awq fp8 mxfp4 modelopt bitnet torchao bitsandbytes hqq exl2 gguf eetq bitsandbytes-nf4 bitsandbytes-fp4'; return ;;
        --quantize-group-size) COMPREPLY=(); return ;;
        --kv-cache-dtype) _tgi_words 'auto f32 bf16 f16 f8e4m3 int8'; return ;;
        --kv-cache-memory) COMPREPLY=(); return ;;
        --max-total-tokens) COMPREPLY=(); return ;;
        --max-running) COMPREPLY=(); return ;;
        --max-batch-tokens) COMPREPLY=(); return ;;
        --speculate) COMPREPLY=(); return ;;
        --speculator) COMPREPLY=(); return ;;
        --draft-model) _tgi_models; return ;;
        --seed) COMPREPLY=(); return ;;
        --backend) _tgi_words 'auto cpu cuda reference'; return ;;
        --num-shard) COMPREPLY=(); return ;;
        --cuda-memory-fraction) COMPREPLY=(); return ;;
        --adapter-memory-fraction) COMPREPLY=(); return ;;
        --max-active-adapters) COMPREPLY=(); return ;;
        --adapter-cycle-time) COMPREPLY=(); return ;;
        --merge-adapter) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--name --on-demand --pin --keep-alive --revision --offline --pooling --load-format --tokenizer-config --tool-parser --reasoning-parser --dtype --quantize --quantize-group-size --kv-cache-dtype --kv-cache-memory --max-total-tokens --max-running --max-batch-tokens --speculate --speculator --draft-model --seed --backend --num-shard --deterministic --cuda-memory-fraction --adapter-memory-fraction --max-active-adapters --adapter-cycle-time --merge-adapter --lorax-merging --socket --no-start -v --verbose -h --help --help-all'
      others="_tgi_models"
      ;;
    unload)
      case "$previous" in
        --socket) _tgi_files; return ;;
      esac
      options='--keep-name --socket --no-start -v --verbose -h --help --help-all'
      ;;
    stop)
      case "$previous" in
        --socket) _tgi_files; return ;;
      esac
      options='--socket --no-start -v --verbose -h --help --help-all'
      ;;
    pull)
      case "$previous" in
        --revision) COMPREPLY=(); return ;;
        --include) COMPREPLY=(); return ;;
        --exclude) COMPREPLY=(); return ;;
        --cache-dir) _tgi_folders; return ;;
        --token) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--revision --include --exclude --cache-dir --token --offline --merge-lora -q --quiet --json --socket --no-start -v --verbose -h --help --help-all'
      others="_tgi_models"
      ;;
    download-weights)
      case "$previous" in
        --revision) COMPREPLY=(); return ;;
        --include) COMPREPLY=(); return ;;
        --exclude) COMPREPLY=(); return ;;
        --cache-dir) _tgi_folders; return ;;
        --token) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--revision --include --exclude --cache-dir --token --offline --merge-lora -q --quiet --json --socket --no-start -v --verbose -h --help --help-all'
      others="_tgi_models"
      ;;
    ls)
      case "$previous" in
        --socket) _tgi_files; return ;;
      esac
      options='--json -q --quiet --jobs --socket --no-start -v --verbose -h --help --help-all'
      ;;
    show)
      case "$previous" in
        --socket) _tgi_files; return ;;
      esac
      options='--json --modelfile --socket --no-start -v --verbose -h --help --help-all'
      others="_tgi_models"
      ;;
    rm)
      case "$previous" in
        --socket) _tgi_files; return ;;
      esac
      options='-y --yes --socket --no-start -v --verbose -h --help --help-all'
      others="_tgi_models"
      ;;
    create)
      case "$previous" in
        -f|--file) _tgi_files; return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-f --file --offline --socket --no-start -v --verbose -h --help --help-all'
      ;;
    quantize)
      case "$previous" in
        --format) _tgi_words 'int8 int4 gptq awq fp8 f32 f16 bf16 q8_0 q6_k q5_k_m q4_k_m q4_0 iq4_xs mxfp4'; return ;;
        --group-size) COMPREPLY=(); return ;;
        --calibration) _tgi_files; return ;;
        --calibration-sequences) COMPREPLY=(); return ;;
        --calibration-length) COMPREPLY=(); return ;;
        --damping) COMPREPLY=(); return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--format --group-size --calibration --calibration-sequences --calibration-length --act-order --damping --force -q --quiet --json --socket --no-start -v --verbose -h --help --help-all'
      case "$(_tgi_place "$at" ' --format --group-size --calibration --calibration-sequences --calibration-length --damping --socket ')" in
        0) others="_tgi_models" ;;
      esac
      ;;
    adapters)
      case "$previous" in
        -m|--model) _tgi_models; return ;;
        --load) _tgi_adapters; return ;;
        --name) COMPREPLY=(); return ;;
        --unload) _tgi_adapters; return ;;
        --pin) _tgi_adapters; return ;;
        --unpin) _tgi_adapters; return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-m --model --json --load --name --offline --unload --pin --unpin -q --quiet --socket --no-start -v --verbose -h --help --help-all'
      ;;
    embed)
      case "$previous" in
        -f|--file) _tgi_files; return ;;
        --format) _tgi_words 'json npy'; return ;;
        -o|--output) _tgi_files; return ;;
        --prompt) COMPREPLY=(); return ;;
        --prompt-name) COMPREPLY=(); return ;;
        --dimensions) COMPREPLY=(); return ;;
        -m|--model) _tgi_models; return ;;
        --adapter) _tgi_adapters; return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-f --file --format -o --output --prompt --prompt-name --dimensions --normalize --truncate -m --model --offline --adapter --socket --no-start -v --verbose -h --help --help-all'
      ;;
    rerank)
      case "$previous" in
        -f|--file) _tgi_files; return ;;
        --top) COMPREPLY=(); return ;;
        -m|--model) _tgi_models; return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-f --file --top --json --raw-scores --truncate -m --model --offline --socket --no-start -v --verbose -h --help --help-all'
      ;;
    tokenize)
      case "$previous" in
        -f|--file) _tgi_files; return ;;
        -m|--model) _tgi_models; return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-f --file --ids --no-special --json -m --model --offline --socket --no-start -v --verbose -h --help --help-all'
      ;;
    detokenize)
      case "$previous" in
        -m|--model) _tgi_models; return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-m --model --offline --socket --no-start -v --verbose -h --help --help-all'
      ;;
    render)
      case "$previous" in
        -f|--file) _tgi_files; return ;;
        --system) COMPREPLY=(); return ;;
        --tools) _tgi_files; return ;;
        -m|--model) _tgi_models; return ;;
        --socket) _tgi_files; return ;;
      esac
      options='-f --file --system --tools -m --model --offline --socket --no-start -v --verbose -h --help --help-all'
      ;;
    bench)
      case "$previous" in
        --min-new-tokens) COMPREPLY=(); return ;;
        --temperature) COMPREPLY=(); return ;;
        --top-k) COMPREPLY=(); return ;;
        --top-p) COMPREPLY=(); return ;;
        --min-p) COMPREPLY=(); return ;;
        --typical-p) COMPREPLY=(); return ;;
        --repetition-penalty) COMPREPLY=(); return ;;
        --frequency-penalty) COMPREPLY=(); return ;;
        --presence-penalty) COMPREPLY=(); return ;;
        --top-n-tokens) COMPREPLY=(); return ;;
        --speculate) COMPREPLY=(); return ;;
        -s|--sequence-length|--prompt-length) COMPREPLY=(); return ;;
        -d|--decode-length) COMPREPLY=(); return ;;
        -w|--warmups) COMPREPLY=(); return ;;
        --seed) COMPREPLY=(); return ;;
        --limit) COMPREPLY=(); return ;;
        -b|--batch-size|--batch-sizes) COMPREPLY=(); return ;;
        -r|--runs) COMPREPLY=(); return ;;
        --url) COMPREPLY=(); return ;;
        --api) _tgi_words 'tgi openai-chat openai-completions'; return ;;
        --model) COMPREPLY=(); return ;;
        --api-key) COMPREPLY=(); return ;;
        --timeout) COMPREPLY=(); return ;;
        --tokens-per-word) COMPREPLY=(); return ;;
        --concurrency) COMPREPLY=(); return ;;
        --requests) COMPREPLY=(); return ;;
        --rate) COMPREPLY=(); return ;;
        --duration) COMPREPLY=(); return ;;
        --trace) _tgi_files; return ;;
        --trace-speed) COMPREPLY=(); return ;;
        --trace-scale) COMPREPLY=(); return ;;
        --max-total-tokens) COMPREPLY=(); return ;;
        --shared-prefix) COMPREPLY=(); return ;;
        --goodput) COMPREPLY=(); return ;;
        --csv) _tgi_files; return ;;
        --socket) _tgi_files; return ;;
      esac
      options='--min-new-tokens --temperature --top-k --top-p --min-p --typical-p --repetition-penalty --frequency-penalty --presence-penalty --do-sample --top-n-tokens --watermark --speculate -s --sequence-length --prompt-length -d --decode-length -w --warmups --seed --json -q --quiet --history --limit -b --batch-size --batch-sizes -r --runs --url --serving --api --model --api-key --insecure --ignore-eos --timeout --tokens-per-word --concurrency --requests --rate --duration --trace --trace-speed --trace-scale --max-total-tokens --shared-prefix --goodput --csv --socket --no-start -v --verbose -h --help --help-all'
      ;;
    doctor)
      case "$previous" in
        --socket) _tgi_files; return ;;
      esac
      options='--json --quick --socket --no-start -v --verbose -h --help --help-all'
      ;;
    config)
      case "$previous" in
        --socket) _tgi_files; return ;;
      esac
      options='--changed --json --socket --no-start -v --verbose -h --help --help-all'
      case "$(_tgi_place "$at" ' --socket ')" in
        0) others="_tgi_words 'list get set unset path'" ;;
        1) others="_tgi_settings" ;;
      esac
      ;;
    version)
      case "$previous" in
        --socket) _tgi_files; return ;;
      esac
      options='--json --socket --no-start -v --verbose -h --help --help-all'
      ;;
  esac
  case "$word" in
    -*) _tgi_words "$options" ;;
    *) eval "$others" ;;
  esac
}
complete -F _tgi tgi
