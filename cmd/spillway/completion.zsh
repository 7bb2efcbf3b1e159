#compdef spillway
# SPDX-License-Identifier: Apache-2.0
# Completion of spillway for zsh: source <(spillway completion zsh) after compinit, or a file _spillway in $fpath.

_spillway() {
  local kind line value flag
  local -a lines described
  lines=("${(@f)$("${words[1]/#\~\//$HOME/}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  kind=$lines[1]
  shift lines
  if [[ $PREFIX == --*=* ]]; then
    flag=${PREFIX%%=*}=
    compset -P '*='
  fi
  case $kind in
    files) _files ;;
    dirs) _files -/ ;;
    *)
      for line in $lines; do
        value=${${line%%$'\t'*}#$flag}
        described+=("${value//:/\\:}:${line#*$'\t'}")
      done
      _describe spillway described
      ;;
  esac
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _spillway "$@"
else
  compdef _spillway spillway
fi
