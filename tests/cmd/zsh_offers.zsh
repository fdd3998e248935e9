#!/usr/bin/env zsh
# What zsh offers for the last word of a command line, one a line: zsh_offers.zsh FOLDER LINE, where FOLDER has _tgi.
# Completion runs in zsh's line editor only, so another zsh gets a terminal, the line and a Tab; its compadd writes what
# it was given into a file.
zmodload zsh/zpty
hits=$(mktemp)
done_mark=$hits.done
trap 'rm -f $hits $done_mark' EXIT
zpty inner env ZDOTDIR=/nonexistent TERM=dumb PS1= zsh -f -i
zpty -w inner "
  fpath=($1 \$fpath)
  autoload -Uz compinit; compinit -D -u
  compadd() {
    local -a found
    if (( \${@[(I)-[OAD]]} )); then builtin compadd \"\$@\"; return; fi
    builtin compadd -A found \"\$@\"
    print -rl -- \$found >>$hits
    builtin compadd \"\$@\"
  }
  finish() { zle complete-word; touch $done_mark }
  zle -N finish; bindkey '^I' finish; print ready"
while zpty -r inner line; do [[ $line == *ready* && $line != *print* ]] && break; done
zpty -n -w inner "$2"$'\t'
for ((i = 0; i < 100; ++i)); do
  [[ -e $done_mark ]] && break
  zpty -r -t inner line
  sleep 0.1
done
grep -v '^$' $hits
zpty -d inner
