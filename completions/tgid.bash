# Completion of tgid for bash. Written by `scripts/make_docs` from the options of tgid; do not edit.

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

_tgid() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local options='' others=''
  COMPREPLY=()
  if [ "$word" = = ]; then  # bash takes --dtype=bf16 for three words
    word=''
  elif [ "$previous" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  case "$previous" in
    --model) COMPREPLY=(); return ;;
    --on-demand) COMPREPLY=(); return ;;
    --max-models) COMPREPLY=(); return ;;
    --keep-alive) COMPREPLY=(); return ;;
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
    --target-step-ms) COMPREPLY=(); return ;;
    --speculate) COMPREPLY=(); return ;;
    --speculator) COMPREPLY=(); return ;;
    --draft-model) _tgi_models; return ;;
    --max-waiting) COMPREPLY=(); return ;;
    --max-best-of) COMPREPLY=(); return ;;
    --max-stop-sequences) COMPREPLY=(); return ;;
    --max-top-n-tokens) COMPREPLY=(); return ;;
    --seed) COMPREPLY=(); return ;;
    --backend) _tgi_words 'auto cpu cuda reference'; return ;;
    --num-shard) COMPREPLY=(); return ;;
    --cuda-memory-fraction) COMPREPLY=(); return ;;
    --cpu-isa) _tgi_words 'auto amx avx512bf16 avx512vnni avx512 avxvnni avx2 generic'; return ;;
    --threads) COMPREPLY=(); return ;;
    --slow-reader-timeout) COMPREPLY=(); return ;;
    --adapter-memory-fraction) COMPREPLY=(); return ;;
    --max-active-adapters) COMPREPLY=(); return ;;
    --adapter-cycle-time) COMPREPLY=(); return ;;
    --merge-adapter) COMPREPLY=(); return ;;
    --socket) _tgi_files; return ;;
    --allow-group) COMPREPLY=(); return ;;
    --manage-group) COMPREPLY=(); return ;;
    --intake-threads) COMPREPLY=(); return ;;
    --drain-timeout) COMPREPLY=(); return ;;
    --stall-timeout) COMPREPLY=(); return ;;
    --log-level) _tgi_words 'debug info warn error off'; return ;;
  esac
  options='--model --on-demand --no-model --load-installed --max-models --keep-alive --pooling --load-format --tokenizer-config --tool-parser --reasoning-parser --dtype --quantize --quantize-group-size --kv-cache-dtype --kv-cache-memory --max-total-tokens --max-running --max-batch-tokens --target-step-ms --speculate --speculator --draft-model --max-waiting --max-best-of --max-stop-sequences --max-top-n-tokens --seed --backend --num-shard --deterministic --cuda-memory-fraction --cpu-isa --threads --pin-threads --slow-reader-timeout --adapter-memory-fraction --max-active-adapters --adapter-cycle-time --merge-adapter --lorax-merging --socket --allow-group --manage-group --intake-threads --drain-timeout --stall-timeout --log-level --print-config --probe --version --help --help-all'
  case "$word" in
    -*) _tgi_words "$options" ;;
    *) eval "$others" ;;
  esac
}
complete -F _tgid tgid
