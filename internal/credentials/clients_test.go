// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
)

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		text, want string // the rules as written by show, or the error
	}{
		{"host=web1", "host=web1"},
		{"# c\n\n \thost=web1 # c=d\nhost=#1", "host=web1|host=#1"},
		{
			"network=10.0.0.0/8  key_file=a.key\tusers=a,b\r\nnetwork=::1 key_env=K",
			"network=10.0.0.0/8 file=a.key users=a,b|network=::1/128 env=K",
		},
		{`host="a b" network=192.168.1.7 key_file="my key"`, "host=a b network=192.168.1.7/32 file=my key"},
		{"network=::ffff:10.0.0.1", "network=10.0.0.1/32"},
		{"host=\xef\xbb\xbf", "host=\ufeff"},
		{"", "there is no rule"},
		{"# only this", "there is no rule"},
		{"key_file=x", "line 1: host= or network= is missing"},
		{"host=a\nhost", "line 2: a rule is made of words"},
		{"host =a", "a rule is made of words"},
		{"=a", "a rule is made of words"},
		{"topsecret=a host=b", "a rule is made of words"},
		{`host"=a`, "a rule is made of words"},
		{"host=", "the value of host= is missing"},
		{`host=""`, "the value of host= is missing"},
		{`host="topsecret`, "a quote is not closed"},
		{`host="topsecret"x`, "a space is missing"},
		{`host=topsecret"x"`, "a quote stands around"},
		{"host=a host=b", "host= is given twice"},
		{"host=a key_file=k key_env=K", "say the same thing"},
		{"host=a key_env=top-topsecret", "no name of an environment variable"},
		{"host=a users=a,,b", "an empty place in users="},
		{"host=a users=topsecret,topsecret", "names somebody twice"},
		{"network=topsecret", "neither a network"},
		{"network=10.0.0.0/33", "neither a network"},
		{"network=10.0.0.1/8", "not zero"},
		{"network=::ffff:10.0.0.0/104", "write it as IPv4"},
		{"network=fe80::1%eth0", "a network has none"},
		{"host=\xff", "not UTF-8"},
	} {
		rules, err := parseClients([]byte(tt.text))
		if err != nil {
			if !fits(err, tt.want) {
				t.Errorf("%q: %v, want %s", tt.text, err, tt.want)
			}
			continue
		}
		if got := show(rules); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func show(rules []rule) string {
	var lines []string
	for _, r := range rules {
		var words []string
		add := func(name, value string) {
			if value != "" {
				words = append(words, name+"="+value)
			}
		}
		add("host", r.host)
		if r.network.IsValid() {
			add("network", r.network.String())
		}
		add("file", r.key.file.path)
		add("env", r.key.env)
		add("users", strings.Join(r.users, ","))
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "|")
}

func TestClientRules(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "clients")
	save(t, filepath.Join(dir, "web1.key"), "topsecret1\n")
	save(t, filepath.Join(dir, "empty.key"), "\n")
	t.Setenv("CREDENTIALS_TEST_KEY", "topsecret2")
	t.Setenv("CREDENTIALS_TEST_EMPTY", "")
	users := map[string]string{"a": "topsecret", "b": "topsecret"}
	load := func(text string, users map[string]string) ([]forward.ClientRule, error) {
		rules, err := parseClients([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return clientRules(rules, file{"clients_file", path}, users, &files{})
	}
	got, err := load("host=web1 key_file=web1.key users=a\nnetwork=10.0.0.0/8 key_env=CREDENTIALS_TEST_KEY\nhost=c key_file="+filepath.Join(dir, "web1.key"), users)
	want := []forward.ClientRule{
		{Host: "web1", SharedKey: "topsecret1", Users: []string{"a"}},
		{Network: netip.MustParsePrefix("10.0.0.0/8"), SharedKey: "topsecret2"},
		{Host: "c", SharedKey: "topsecret1"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"host=x\nhost=a users=a,topsecret":       "line 2: users= names somebody who is not in the file of users",
		"host=a key_file=none.key":               "none.key",
		"host=a key_file=empty.key":              "the key is empty",
		"host=a key_env=CREDENTIALS_TEST_EMPTY":  "the environment variable that key_env= names: the key is empty",
		"host=a key_env=CREDENTIALS_topsecret_X": "the environment variable that key_env= names is not set",
	} {
		if _, err := load(text, users); !fits(err, want) ||
			!strings.HasPrefix(err.Error(), "clients_file="+path+": line ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := load("host=a users=a", nil); !fits(err, "users= needs users_file=") {
		t.Error(err)
	}
}

func FuzzClients(f *testing.F) {
	for _, s := range []string{
		"host=web1 key_file=a users=a,b # c\n", "network=10.0.0.0/8 key_env=K\r\n", `host="a b"`, "network=::1/128",
		"host=a host=b", "x", "host=\"", "users=,",
		"network=::ffff:1.2.3.4/100\n",
	} {
		f.Add([]byte(s))
	}
	known := texts("there is no rule in it")
	for _, s := range []string{
		"a rule is made of words such as host=NAME, network=CIDR, key_file=PATH, key_env=NAME and users=A,B",
		"host= or network= is missing: it says which clients the rule fits",
		"key_file= and key_env= say the same thing: give one", "a quote is not closed",
		"a space is missing behind a closing quote",
		"a quote stands around a whole value",
		"key_env= is no name of an environment variable: those are letters, digits and underscores",
		"there is an empty place in users=", "users= names somebody twice", "network= has a zone; a network has none",
		"network= is neither a network such as .../ nor an address",
		"network= is an IPv network in IPv's clothes; write it as IPv", "it is not UTF- text",
		"network= has bits behind its length that are not zero: .../ is written .../",
	} {
		known["line : "+s] = true
	}
	for _, name := range []string{"host", "network", "key_file", "key_env", "users"} {
		known["line : "+name+"= is given twice"] = true
		known["line : the value of "+name+"= is missing"] = true
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := parseClients(data)
		if err != nil {
			if !plainError(err, known) {
				t.Fatalf("an error shows what it should not: %v", err)
			}
			return
		}
		last := 0
		for _, r := range rules {
			if r.line <= last || r.host == "" && !r.network.IsValid() || r.network.IsValid() &&
				r.network != r.network.Masked() {
				t.Fatalf("%s", show(rules))
			}
			last = r.line
		}
	})
}

func save(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
