# SPDX-License-Identifier: Apache-2.0
# Completion of spillway for bash 3.2 and newer: source <(spillway completion bash)

_spillway() {
  local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} last before kind value about
  local -a words
  read -r -a words <<<"$line" # COMP_WORDS takes --flag=value for three words
  [[ $line != *[[:space:]] ]] || words+=("")
  last=${words[${#words[@]} - 1]}
  [[ $current != [=:] ]] || current=
  before=${last%"$current"} # bash replaces only what stands behind it
  COMPREPLY=()
  {
    read -r kind
    case $kind in
      files | dirs)
        compopt -o filenames 2>/dev/null
        [[ $kind == files ]] && kind=-f || kind=-d
        while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen "$kind" -- "$current")
        ;;
      *)
        while IFS=$'\t' read -r value about; do COMPREPLY+=("${value#"$before"}"); done
        ;;
    esac
  } < <("${words[0]/#~\//$HOME/}" __complete "${words[@]:1}" 2>/dev/null)
}

complete -F _spillway spillway
