// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// asCommand makes this binary the command instead of a test, for shells that complete a program.
const asCommand = "SPILLWAY_TEST_COMMAND"

func TestComplete(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", "words serve check config top tail send replay merge journal bench completion help version"},
		{"se", "words serve send"},
		{"se rve", "words"},
		{"--v", "words --version"},
		{"journal ", "words ls cat verify"},
		{"help journal v", "words verify"},
		{"help s", "words serve send"},
		{"serve --ack ", "words synced journaled delivered"},
		{"serve --ack=", "words --ack=synced --ack=journaled --ack=delivered"},
		{"serve --ack=d", "words --ack=delivered"},
		{"serve --ack synced --refuse", "words --refuse-invalid"},
		{"serve --refuse-invalid --da", "words --data"},
		{"serve --nothing=x --da", "words --data"},
		{"serve --nothing=x", "words"},
		{"serve --data --ack", "files"},
		{"serve -c ", "files"},
		{"serve -c x --da", "words --data"},
		{"check --", "words --help --version --config --connect --schema"},
		{"config -c x --", "words --help --version --config"},
		{"serve --data=x", "files"},
		{"bench forward --events ", "files"},
		{"bench forward --mode packed,m", "words packed,message"},
		{"bench forward --mode=packed,m", "words --mode=packed,message"},
		{"bench forward --format table,j", "words"}, // one value, no list
		{"bench forward --connections ", "words"},
		{"journal cat ", "dirs"},
		{"re", "words replay"},
		{"replay ", "dirs"},
		{"replay some/dir --", "words --help --version --to --output --keep --dry-run --timeout"},
		{"journal cat -h x", "dirs"},
		{"journal cat some/dir --he", "words --help"},
		{"t", "words top tail"},
		{"top --", "words --help --version --admin --every --once"},
		{"tail --", "words --help --version --admin --tag --where --rate --format"},
		{"tail --format ", "words text json"},
		{"completion ", "words bash zsh fish"},
		{"version ", "words --help --version"},
	} {
		got := command(t, "", append([]string{completeName}, strings.Split(c.line, " ")...)...)
		lines := strings.Split(strings.TrimSuffix(got.out, "\n"), "\n")
		for i, line := range lines {
			lines[i], _, _ = strings.Cut(line, "\t")
		}
		if text := strings.Join(lines, " "); text != c.want || got.code != 0 || got.err != "" {
			t.Errorf("%q: %s, want %s; %+v", c.line, text, c.want, got)
		}
	}
	if got := command(t, "", completeName); got.out != "words\n" || got.code != 0 {
		t.Errorf("no word: %+v", got)
	}
	if got := command(t, "", completeName, "journal",
		"ve"); got.out != "words\nverify\tRead everything, and exit with 1 if something cannot be read\n" {
		t.Errorf("what stands beside a word: %q", got.out)
	}
}

// The harnesses complete the line $1 and print the candidates.
var harnesses = map[string]string{
	"bash": `
source <(spillway completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
while IFS= read -r word; do COMP_WORDS+=("$word"); done < <( # as readline cuts a line
  printf '%s' "$1" | sed -e 's/\([=:]\)/ \1 /g' -e 's/  */ /g' | tr ' ' '\n'; echo)
[[ $1 != *= ]] || unset 'COMP_WORDS[${#COMP_WORDS[@]}-1]' # the cursor stands right behind =
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_spillway
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"`,

	"fish": `
spillway completion fish | source
complete -C "$argv[1]"`,

	// zsh completes only on a terminal: a shell within writes what would be added into a file, and
	// ends. It gets the line when its prompt is there: what is typed earlier, a busy machine may
	// lose.
	"zsh": `
zmodload zsh/zpty
export found=$(mktemp)
zpty inner zsh -d -i
zpty -r inner screen '*ready>*'
zpty -w -n inner "$1"$'\C-t'
while zpty -r inner part; do screen+=$part; done
print -r -- $screen >&2
cat $found; rm $found`,
	"zsh, inside": `
PS1='ready> '
autoload -Uz compinit && compinit -u
source <(spillway completion zsh)
compadd() {
  local -a hits
  if [[ " ${@[1,(i)(-|--)]} " != *' -'[OAD]' '* ]]; then
    builtin compadd -O hits "$@"
    (( $#hits )) && print -rl -- $hits >>$found
  fi
  builtin compadd "$@"
}
capture() { zle list-choices; exit }
zle -N capture
bindkey '^T' capture`,
}

func TestShells(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			needs.Have(t, err == nil, "no %s: install it", shell)
			home := shellHome(t, shell)
			for _, c := range []struct{ line, want, inWord string }{ // inWord: where the shell wants the flag again
				{line: "spillway se", want: "send serve"},
				{line: "spillway journal ", want: "cat ls verify"},
				{line: "spillway help jo", want: "journal"},
				{line: "spillway check -c da", want: "data.d data.txt"},
				{line: "spillway serve --jo", want: "--journal-size"},
				{line: "spillway serve --ack ", want: "delivered journaled synced"},
				{line: "spillway serve --ack=", want: "delivered journaled synced", inWord: "--ack="},
				{line: "spillway serve --ack=s", want: "synced", inWord: "--ack="},
				{line: "spillway send --to forward://127.0.0.1:24224 --timeo", want: "--timeout"},
				{line: "spillway serve --data da", want: "data.d data.txt"},
				{line: "spillway serve --data=da", want: "data.d data.txt", inWord: "--data="},
				{line: "spillway journal cat da", want: "data.d"},
				{line: "spillway bench forward --mode packed,f", want: "packed,forward"},
				{line: "spillway bench forward --connections ", want: ""},
				{
					line: "spillway bad nothing ",
					want: "bench check completion config help journal merge replay send serve tail top version",
				},
			} {
				got, told := candidates(t, path, home, c.line)
				if shell == "fish" {
					for i := range got {
						got[i] = strings.TrimPrefix(got[i], c.inWord)
					}
				}
				slices.Sort(got)
				if text := strings.Join(slices.Compact(got), " "); text != c.want {
					t.Errorf("%q: %q, want %q; beside it:\n%s", c.line, text, c.want, told)
				}
			}
		})
	}
}

// shellHome makes a folder with the command, a harness, and data/data.d and data/data.txt.
func shellHome(t *testing.T, shell string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "data", "data.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"spillway":      "#!/bin/sh\n" + asCommand + "=1 exec '" + self + "' \"$@\"\n",
		"harness":       harnesses[shell],
		".zshrc":        harnesses["zsh, inside"],
		"data/data.txt": "",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// candidates is what a shell would show; told is what it says besides, such as that its files are
// slow.
func candidates(t *testing.T, path, home, line string) (words []string, told string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, filepath.Join(home, "harness"), line)
	cmd.Dir = filepath.Join(home, "data")
	cmd.Env = append(os.Environ(), "PATH="+home+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+home,
		"ZDOTDIR="+home, "TMPDIR="+home,
		"XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "TERM=xterm")
	cmd.WaitDelay = time.Minute
	var beside strings.Builder
	cmd.Stderr = &beside
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s%s", line, err, out, beside.String())
	}
	for text := range strings.Lines(string(out)) {
		word, _, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\t")
		words = append(words, strings.TrimSuffix(word, "/"))
	}
	return words, beside.String()
}
