# Completion of tgi for bash. Written by `tgi docs`; not to be edited.
_tgi() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local options='' files=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W 'generate chat serve ps load unload stop download-weights quantize ls show rm bench --version -h --help' -- "$word"))
    return
  fi
  case "${COMP_WORDS[1]}" in
    generate)
      case "$previous" in
        -f|--file) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --parallel) COMPREPLY=(); return ;;
        --system) COMPREPLY=(); return ;;
        -m|--model) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --max-new-tokens) COMPREPLY=(); return ;;
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
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help -f --file --lines --parallel --stream --json --details --chat --system -m --model --offline --max-new-tokens --temperature --top-k --top-p --min-p --typical-p --repetition-penalty --frequency-penalty --presence-penalty --seed --stop --exclude-stop-text --do-sample --best-of --top-n-tokens --truncate --ignore-eos --return-full-text --watermark --prompt-logprobs --no-prefix-cache --socket --no-start -v --verbose'
      ;;
    chat)
      case "$previous" in
        --system) COMPREPLY=(); return ;;
        --load) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        -m|--model) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --max-new-tokens) COMPREPLY=(); return ;;
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
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --system --load --stats -m --model --offline --max-new-tokens --temperature --top-k --top-p --min-p --typical-p --repetition-penalty --frequency-penalty --presence-penalty --seed --stop --exclude-stop-text --do-sample --ignore-eos --watermark --no-prefix-cache --socket --no-start -v --verbose'
      ;;
    serve)
      case "$previous" in
        --http) COMPREPLY=(); return ;;
        --kv-cache-memory) COMPREPLY=(); return ;;
        --threads) COMPREPLY=(); return ;;
        --model-id) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --revision) COMPREPLY=(); return ;;
        --validation-workers) COMPREPLY=(); return ;;
        --sharded) COMPREPLY=(); return ;;
        --num-shard) COMPREPLY=(); return ;;
        --quantize) COMPREPLY=(); return ;;
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
        --huggingface-hub-cache) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --cuda-memory-fraction) COMPREPLY=(); return ;;
        --otlp-endpoint) COMPREPLY=(); return ;;
        --otlp-service-name) COMPREPLY=(); return ;;
        --cors-allow-origin) COMPREPLY=(); return ;;
        --api-key) COMPREPLY=(); return ;;
        --tokenizer-config-path) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --max-client-batch-size) COMPREPLY=(); return ;;
        --payload-limit) COMPREPLY=(); return ;;
        -g|--graceful-termination-timeout) COMPREPLY=(); return ;;
        --backend) COMPREPLY=(); return ;;
        --n-threads) COMPREPLY=(); return ;;
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --http --kv-cache-memory --threads --offline --deterministic --model-id --revision --validation-workers --sharded --num-shard --quantize --dtype --kv-cache-dtype --max-concurrent-requests --max-best-of --max-stop-sequences --max-top-n-tokens --max-input-tokens --max-input-length --max-total-tokens --waiting-served-ratio --max-batch-prefill-tokens --max-waiting-tokens --max-batch-size --hostname -p --port --huggingface-hub-cache --cuda-memory-fraction --json-output --otlp-endpoint --otlp-service-name --cors-allow-origin --api-key --tokenizer-config-path --disable-grammar-support --max-client-batch-size --payload-limit --enable-prefill-logprobs -g --graceful-termination-timeout --backend --n-threads --socket --no-start -v --verbose'
      files=yes
      ;;
    ps)
      case "$previous" in
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --json --socket --no-start -v --verbose'
      ;;
    load)
      case "$previous" in
        --revision) COMPREPLY=(); return ;;
        --load-format) COMPREPLY=($(compgen -W 'auto dummy' -- "$word")); return ;;
        --dtype) COMPREPLY=($(compgen -W 'auto f32 bf16 f16' -- "$word")); return ;;
        --quantize) COMPREPLY=($(compgen -W 'none int8 int4 compressed-tensors gptq awq fp8' -- "$word")); return ;;
        --quantize-group-size) COMPREPLY=(); return ;;
        --backend) COMPREPLY=($(compgen -W 'auto cpu cuda reference' -- "$word")); return ;;
        --num-shard) COMPREPLY=(); return ;;
        --cuda-memory-fraction) COMPREPLY=(); return ;;
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --revision --offline --load-format --dtype --quantize --quantize-group-size --backend --num-shard --cuda-memory-fraction --deterministic --socket --no-start -v --verbose'
      files=yes
      ;;
    unload)
      case "$previous" in
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --socket --no-start -v --verbose'
      ;;
    stop)
      case "$previous" in
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --socket --no-start -v --verbose'
      ;;
    download-weights)
      case "$previous" in
        --revision) COMPREPLY=(); return ;;
        --include) COMPREPLY=(); return ;;
        --exclude) COMPREPLY=(); return ;;
        --cache-dir) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --token) COMPREPLY=(); return ;;
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --revision --include --exclude --cache-dir --token --offline -q --quiet --json --socket --no-start -v --verbose'
      files=yes
      ;;
    quantize)
      case "$previous" in
        --format) COMPREPLY=($(compgen -W 'int8 int4 gptq awq fp8' -- "$word")); return ;;
        --group-size) COMPREPLY=(); return ;;
        --calibration) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --calibration-sequences) COMPREPLY=(); return ;;
        --calibration-length) COMPREPLY=(); return ;;
        --damping) COMPREPLY=(); return ;;
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --format --group-size --calibration --calibration-sequences --calibration-length --act-order --damping --force -q --quiet --json --socket --no-start -v --verbose'
      files=yes
      ;;
    ls)
      case "$previous" in
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --json -q --quiet --jobs --socket --no-start -v --verbose'
      ;;
    show)
      case "$previous" in
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --json --socket --no-start -v --verbose'
      ;;
    rm)
      case "$previous" in
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help -y --yes --socket --no-start -v --verbose'
      ;;
    bench)
      case "$previous" in
        --temperature) COMPREPLY=(); return ;;
        --top-k) COMPREPLY=(); return ;;
        --top-p) COMPREPLY=(); return ;;
        --min-p) COMPREPLY=(); return ;;
        --typical-p) COMPREPLY=(); return ;;
        --repetition-penalty) COMPREPLY=(); return ;;
        --frequency-penalty) COMPREPLY=(); return ;;
        --presence-penalty) COMPREPLY=(); return ;;
        --top-n-tokens) COMPREPLY=(); return ;;
        -s|--sequence-length|--prompt-length) COMPREPLY=(); return ;;
        -d|--decode-length) COMPREPLY=(); return ;;
        -w|--warmups) COMPREPLY=(); return ;;
        --seed) COMPREPLY=(); return ;;
        --limit) COMPREPLY=(); return ;;
        -b|--batch-size|--batch-sizes) COMPREPLY=(); return ;;
        -r|--runs) COMPREPLY=(); return ;;
        --url) COMPREPLY=(); return ;;
        --api) COMPREPLY=($(compgen -W 'tgi openai-chat openai-completions' -- "$word")); return ;;
        --model) COMPREPLY=(); return ;;
        --api-key) COMPREPLY=(); return ;;
        --timeout) COMPREPLY=(); return ;;
        --tokens-per-word) COMPREPLY=(); return ;;
        --concurrency) COMPREPLY=(); return ;;
        --requests) COMPREPLY=(); return ;;
        --rate) COMPREPLY=(); return ;;
        --duration) COMPREPLY=(); return ;;
        --trace) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --trace-speed) COMPREPLY=(); return ;;
        --trace-scale) COMPREPLY=(); return ;;
        --max-total-tokens) COMPREPLY=(); return ;;
        --shared-prefix) COMPREPLY=(); return ;;
        --goodput) COMPREPLY=(); return ;;
        --csv) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --temperature --top-k --top-p --min-p --typical-p --repetition-penalty --frequency-penalty --presence-penalty --do-sample --top-n-tokens --watermark -s --sequence-length --prompt-length -d --decode-length -w --warmups --seed --json -q --quiet --history --limit -b --batch-size --batch-sizes -r --runs --url --serving --api --model --api-key --insecure --ignore-eos --timeout --tokens-per-word --concurrency --requests --rate --duration --trace --trace-speed --trace-scale --max-total-tokens --shared-prefix --goodput --csv --socket --no-start -v --verbose'
      ;;
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *)
      if [ -n "$files" ]; then
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "$word"))
      fi
      ;;
  esac
}
complete -F _tgi tgi
