# Completion of tgi for bash. Written by `tgi docs`; not to be edited.
_tgi() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local options='' files=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W 'generate chat ps load unload stop bench --version -h --help' -- "$word"))
    return
  fi
  case "${COMP_WORDS[1]}" in
    generate)
      case "$previous" in
        -f|--file) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        --parallel) COMPREPLY=(); return ;;
        --system) COMPREPLY=(); return ;;
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
      options='-h --help -f --file --lines --parallel --stream --json --details --chat --system --max-new-tokens --temperature --top-k --top-p --min-p --typical-p --repetition-penalty --frequency-penalty --presence-penalty --seed --stop --exclude-stop-text --do-sample --best-of --top-n-tokens --truncate --ignore-eos --return-full-text --watermark --prompt-logprobs --no-prefix-cache --socket --no-start -v --verbose'
      ;;
    chat)
      case "$previous" in
        --system) COMPREPLY=(); return ;;
        --load) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
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
      options='-h --help --system --load --stats --max-new-tokens --temperature --top-k --top-p --min-p --typical-p --repetition-penalty --frequency-penalty --presence-penalty --seed --stop --exclude-stop-text --do-sample --ignore-eos --watermark --no-prefix-cache --socket --no-start -v --verbose'
      ;;
    ps)
      case "$previous" in
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --json --socket --no-start -v --verbose'
      ;;
    load)
      case "$previous" in
        --load-format) COMPREPLY=($(compgen -W 'auto dummy' -- "$word")); return ;;
        --dtype) COMPREPLY=($(compgen -W 'auto f32 bf16 f16' -- "$word")); return ;;
        --quantize) COMPREPLY=($(compgen -W 'none int8 int4' -- "$word")); return ;;
        --quantize-group-size) COMPREPLY=(); return ;;
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --load-format --dtype --quantize --quantize-group-size --socket --no-start -v --verbose'
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
    bench)
      case "$previous" in
        --prompt-length) COMPREPLY=(); return ;;
        --decode-length) COMPREPLY=(); return ;;
        --batch-sizes) COMPREPLY=(); return ;;
        --runs) COMPREPLY=(); return ;;
        --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac
      options='-h --help --prompt-length --decode-length --batch-sizes --runs --json --socket --no-start -v --verbose'
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
