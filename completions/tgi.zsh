#compdef tgi
# Completion of tgi for zsh. Written by `tgi docs`; not to be edited.
_tgi() {
  local -a commands
  commands=(
    'generate:answer a prompt, or each line of a file'
    'chat:talk with the model'
    'ps:show what the daemon is doing'
    'load:load a model into the daemon'
    'unload:free the model'\''s memory; the daemon stays'
    'stop:stop the daemon after it has finished what runs'
    'bench:measure prefill and decode speed over the socket'
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command=${words[2]}
  shift words
  (( CURRENT-- ))
  case $command in
    generate)
      _arguments \
        '-h[print help]' \
        '--help[print help]' \
        '-f[read the prompt from this file, less one newline at its end]:FILE:_files' \
        '--file[read the prompt from this file, less one newline at its end]:FILE:_files' \
        '--lines[each line of the input is a prompt; the answers come in the same order]' \
        '--parallel[with --lines\: at most this many prompts at once; default 128]:N: ' \
        '--stream[write the answer as it is generated]' \
        '--json[write one JSON object per answer; with --stream one per token and one at the end]' \
        '--details[every token with its log probability\: in the JSON, else as a table on stderr]' \
        '--chat[the prompt is a user'\''s message; the model'\''s chat template is put around it]' \
        '--system[with --chat\: the system message]:TEXT: ' \
        '--max-new-tokens[generate at most this many tokens; default\: all that fit the model'\''s context]:N: ' \
        '--temperature[more than 0; below 1 sharpens, above 1 flattens the distribution; turns sampling on]:X: ' \
        '--top-k[sample from the k likeliest tokens; turns sampling on]:N: ' \
        '--top-p[sample from the likeliest tokens that make up this share, 0 to 1; turns sampling on]:X: ' \
        '--min-p[sample from tokens at least this share as likely as the likeliest, 0 to 1; turns sampling on]:X: ' \
        '--typical-p[sample from the most typical tokens that make up this share, 0 to 1; turns sampling on]:X: ' \
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
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        '::PROMPT: ' \
        && return 0
      ;;
    chat)
      _arguments \
        '-h[print help]' \
        '--help[print help]' \
        '--system[the system message]:TEXT: ' \
        '--load[go on with a conversation that /save wrote]:FILE:_files' \
        '--stats[after each answer say on stderr how fast it came]' \
        '--max-new-tokens[generate at most this many tokens; default\: all that fit the model'\''s context]:N: ' \
        '--temperature[more than 0; below 1 sharpens, above 1 flattens the distribution; turns sampling on]:X: ' \
        '--top-k[sample from the k likeliest tokens; turns sampling on]:N: ' \
        '--top-p[sample from the likeliest tokens that make up this share, 0 to 1; turns sampling on]:X: ' \
        '--min-p[sample from tokens at least this share as likely as the likeliest, 0 to 1; turns sampling on]:X: ' \
        '--typical-p[sample from the most typical tokens that make up this share, 0 to 1; turns sampling on]:X: ' \
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
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        && return 0
      ;;
    ps)
      _arguments \
        '-h[print help]' \
        '--help[print help]' \
        '--json[write the whole status as one JSON object]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        && return 0
      ;;
    load)
      _arguments \
        '-h[print help]' \
        '--help[print help]' \
        '--load-format[auto, or dummy\: random weights in the shapes of config.json, for measuring]:FORMAT:(auto dummy)' \
        '--dtype[of the weights in memory\: auto, f32, bf16 or f16; auto keeps the checkpoint'\''s]:DTYPE:(auto f32 bf16 f16)' \
        '--quantize[none, or round the layers'\'' weights to int8 or int4 while loading]:KIND:(none int8 int4)' \
        '--quantize-group-size[columns that share a scale\: 32, 64 and so on to 256; default 64 for int8, 32 for int4]:N: ' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        ':PATH:_files' \
        && return 0
      ;;
    unload)
      _arguments \
        '-h[print help]' \
        '--help[print help]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        && return 0
      ;;
    stop)
      _arguments \
        '-h[print help]' \
        '--help[print help]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        && return 0
      ;;
    bench)
      _arguments \
        '-h[print help]' \
        '--help[print help]' \
        '--prompt-length[tokens of each prompt; default 512]:N: ' \
        '--decode-length[tokens of each answer; default 128]:N: ' \
        '*--batch-sizes[how many requests at once, with commas between; default 1,4,16]:N,N,...: ' \
        '--runs[measured runs after one warm-up; default 5]:N: ' \
        '--json[write one JSON object]' \
        '--socket[the daemon'\''s socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-UID/tgid.sock]:PATH:_files' \
        '--no-start[do not start a daemon when none is running]' \
        '-v[say more on stderr\: what is done, tokens per second]' \
        '--verbose[say more on stderr\: what is done, tokens per second]' \
        && return 0
      ;;
  esac
}
_tgi "$@"
