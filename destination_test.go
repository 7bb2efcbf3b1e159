// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/mover"
)

func TestDestinations(t *testing.T) {
	for _, tt := range []struct{ url, want string }{ // what the error has in it, or nothing
		{"forward://127.0.0.1:24224,h2?ack=false&compress=zstd&window=4&ack_timeout=1s&dial_timeout=1s&failover_after=1s&min_backoff=1s&max_backoff=2s&breaker=5", ""},
		{"forward://[::1]:24224", ""},
		{"forward+unix:///run/a.sock?compress=gzip", ""},
		{"file:///var/log/app.{pid}.jsonl?format=text&flags=date,time,micros,utc,source,level&max_size=100MiB&every=24h&keep=7&max_age=720h&max_total=5GiB&compress=gzip", ""},
		{"file:log/app.jsonl", ""},
		{"stdout:?format=text&color=never", ""},
		{"stderr:?format=json&breaker=1", ""},
		{"discard:", ""},
		{"forward://", "the host is missing"},
		{"forward://h?acks=false", `unknown parameter "acks"; forward takes ack, compress, window, ack_timeout, dial_timeout, failover_after, min_backoff, max_backoff, breaker`},
		{"forward://h?compress=lz4", `"lz4" is not one of none, gzip, zstd`},
		{"forward://h?window=0", `is not a number from 1`},
		{"forward://h?breaker=0", `is not a number from 1`},
		{"file:///x?min_backoff=2s&max_backoff=1s", `"max_backoff": 1s is less than min_backoff, which is 2s`},
		{"forward://me:secret@h", "a user and password cannot stand in a URL"},
		{"forward://h?password=secret", `unknown parameter "password"`},
		{"forward+tls://h", ""},
		{"forward+tls://h?ca=ca.pem&cert=c.pem&key=c.key&server_name=logs&shared_key_file=k&username=u&password_env=P&hostname=me&keepalive=false", ""},
		{"forward+tls://h?insecure=true&shared_key_env=K", ""},
		{"forward+unix:///run/a.sock?empty_key=true", ""},
		{"forward://h?ca=ca.pem", `"ca" belongs to TLS`},
		{"forward+tls://h?insecure=true&ca=ca.pem", "give one"},
		{"forward+tls://h?cert=ca.pem", "one is missing"},
		{"forward+tls://h?tls=dial", "Options.Dial makes the connections TLS, and there is none"},
		{"forward+tls://h?tls=none", `"none" is not dial`},
		{"forward://h?shared_key_file=k&shared_key_env=K", "shared_key_file and shared_key_env say the same thing"},
		{"forward://h?shared_key_env=hidden-secret", "no name of an environment variable"},
		{"forward://h?username=u&shared_key_file=k", "one is missing"},
		{"forward://h?username=u&password_file=p", "the handshake, which has a shared key"},
		{"forward://h?hostname=me", "the handshake, which has a shared key"},
		{"forward://h?empty_key=true&shared_key_file=k", "empty_key=true says that the shared key is empty"},
		{"file:///x?shared_key_file=k", "unknown parameter"},
		{"kafka://h", `no scheme "kafka"; known are forward, forward+tls, forward+unix, file, stdout, stderr, discard; for example`},
		{"file:///x?max_size=5", ""},
		{"file:///x?every=10ms", "rotation every 10ms, which is less than a second"},
		{"file:///x/{user.id}.jsonl", "no placeholder {user.id}; there are {tag}, {date}"},
		{"file:///x/{tag.jsonl", "an opening brace without a closing one"},
		{"file:///x/" + strings.Repeat("x", 208) + "{tag}", "a name in it is too long"},
		{"file:///x/" + strings.Repeat("x", 207) + "{tag}", ""},
		{"file:///x/" + strings.Repeat("x", 207) + "{tag}?max_size=5", "a name in it is too long"},
		{"file:///x?flags=date", "flags belong to format=text"},
		{"file:///x?format=text&flags=date,dates", `"dates" is none of`},
		{"file:///x?format=text&flags=none,date", "none stands alone"},
		{"file:///x?time_key=ts&time_format=unix_ms&tag_key=-", ""},
		{"stdout:?time_format=Jan%20_2%202006%2015:04:05.000", ""},
		{"stderr:?time_format=Jan", `"Jan" is none of rfc3339, unix, unix_ms`},
		{"stderr:?tag_key=time", `"time" stands for two things`},
		{"stderr:?format=text&time_key=ts", "belong to format=json"},
		{"forward://h?time_key=ts", `unknown parameter "time_key"`},
		{"file:///x.{pid}?keep=5&max_age=720h&max_total=5GiB&compress=gzip", ""},
		{"file:///x.{date}?max_total=5GiB", ""},
		{"file:///x.{date}?max_total=5GiB&shared=lock", "without max_size or every there are none"},
		{"file:///x.{tag}{pid}?max_total=5GiB", "without max_size or every there are none"},
		{"file:///x?max_total=5GiB", "without max_size or every there are none"},
		{"file:///x?keep=5", "without max_size or every there are none"},
		{"file:///x.{tag}.jsonl?shared=append", ""},
		{"file:///x?shared=yes", "none, append, lock"},
		{"file:///x.{pid}?shared=append", "with {pid} in its path each has its own"},
		{"file:///x?max_age=5h&compress=gzip", "without max_size or every there are none"},
		{"stdout:?max_size=5", "unknown parameter"},
		{"discard:?format=text", "takes none"},
		{"/var/log/x", "this is a path"},
	} {
		o := Options{}
		p, err := planDestination(tt.url, &o)
		switch {
		case tt.want == "" && (err != nil || p == nil):
			t.Errorf("%s: %v", tt.url, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %s", tt.url, err, tt.want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: %v", tt.url, err)
		case err == nil && p.Ordered == (strings.HasPrefix(tt.url, "forward") || strings.HasPrefix(tt.url, "discard")):
			t.Errorf("%s: lines in order is %t", tt.url, p.Ordered)
		case err == nil && strings.Contains(p.Place, "?"):
			t.Errorf("%s: %s", tt.url, p.Place)
		}
	}
}

// TestEnvelope: a file's lines look as its URL says.
func TestEnvelope(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	l, err := Open("file://"+filepath.ToSlash(path)+"?time_key=ts&time_format=unix_ns&tag_key=logger",
		&Options{Tag: "shop", Shm: noShm})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.PostWithTime("t", time.Unix(1795226584, 5), struct {
		Time int `log:"time"`
		TS   int `log:"ts"`
	}{2, 1}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if want := `{"ts":1795226584000000005,"logger":"t","time":2,"ts_":1}`; err != nil ||
		strings.TrimSpace(string(b)) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
}

func TestSourceByFlags(t *testing.T) {
	for flags, want := range map[string]Source{
		"level": NoSource, "source": LongSource,
		"shortsource,level": ShortSource,
	} {
		o := Options{}
		if _, err := planDestination("stdout:?format=text&flags="+flags, &o); err != nil || o.Source != want {
			t.Error(flags, o.Source, err)
		}
		o.Source = ShortSource
		if _, err := planDestination("stdout:?format=text&flags="+flags, &o); err != nil || o.Source != ShortSource {
			t.Error(flags, o.Source, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"name":     {Options{Name: "a/b"}, "not the name of a file"},
		"dots":     {Options{Name: ".."}, "not the name of a file"},
		"tag":      {Options{Tag: strings.Repeat("x", 1025)}, "tag too long"},
		"long":     {Options{Name: strings.Repeat("x", 129)}, "Options.Name has 129 bytes, more than 128"},
		"size":     {Options{RingSize: -1}, "Options.RingSize is -1, not 262144 to"},
		"event":    {Options{MaxEvent: -1}, "Options.MaxEvent, at most a quarter of the ring, is -1, not 0 to 4194304"},
		"small":    {Options{RingSize: minRing - 1}, "Options.RingSize is 262143, not 262144 to"},
		"large":    {Options{RingSize: 1 << 40}, "Options.RingSize is 1099511627776, not"},
		"disk":     {Options{MaxDisk: mover.MinMaxDisk - 1}, "Options.MaxDisk is 1048575, less than 1048576"},
		"negative": {Options{MaxDisk: -5}, "Options.MaxDisk is -5, less than 1048576"},
		"events":   {Options{MaxEvent: 4<<20 + 1}, "is 4194305, not 0 to 4194304"},
		"quarter":  {Options{MaxEvent: 1 << 20, RingSize: 1 << 20}, "is 1048576, not 0 to 262144"},
		"wait":     {Options{MaxWait: -time.Second}, "Options.MaxWait is -1s, less than 0s"},
		"flush":    {Options{FlushInterval: -1}, "Options.FlushInterval is -1ns, less than 0s"},
		"overflow": {Options{Overflow: 9}, "Options.Overflow is 9, not 0 to 2"},
		"source":   {Options{Source: 9}, "Options.Source is 9, not 0 to 2"},
		"keep":     {Options{Keep: slog.LevelError, Overflow: OverflowDropOldest}, "Keep cannot be kept"},
		"sample": {
			Options{Sample: map[slog.Level]Sampling{slog.LevelInfo: {First: -1}}},
			"Options.Sample[INFO].First is -1, less than 0",
		},
		"every": {
			Options{Sample: map[slog.Level]Sampling{slog.LevelWarn: {Every: -1}}},
			"Options.Sample[WARN].Every is -1ns, less than 0s",
		},
	} {
		if _, err := Open("discard:", &tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open("forward://h?window=41", nil); err == nil ||
		!strings.Contains(err.Error(), `"window": 41 is not a number from 1 to 40`) {
		t.Error("window:", err)
	}
	least := Options{Shm: noShm, RingSize: minRing, MaxDisk: mover.MinMaxDisk, MaxEvent: minRing / 4}
	if err := closed(t, opened(t, "discard:", &least)); err != nil {
		t.Error("the least sizes:", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("NewTest takes wrong options")
		}
	}()
	NewTest(&Options{MaxEvent: -1})
}

func TestEnvironment(t *testing.T) {
	t.Setenv(urlVariable, "")
	if _, err := Open("", nil); err == nil || !strings.Contains(err.Error(), urlVariable) {
		t.Error(err)
	}
	t.Setenv(urlVariable, "discard:?x=1")
	if _, err := Open("", nil); err == nil || !strings.Contains(err.Error(), "discard") {
		t.Error(err)
	}
	t.Setenv(urlVariable, "discard:")
	l := opened(t, "", &Options{Shm: noShm})
	l.Info("m")
}

func TestDefaults(t *testing.T) {
	r, err := (*Options)(nil).resolved()
	if err != nil {
		t.Fatal(err)
	}
	if r.Name == "" || strings.ContainsAny(r.Name, `/\`) || r.Tag != r.Name || r.MaxEvent != 1<<20 {
		t.Errorf("%+v", r)
	}
	if r, err := (&Options{Name: "app"}).resolved(); err != nil || r.Tag != "app" {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := (&Options{Dir: "log", Shm: "ring"}).resolved(); err != nil || !filepath.IsAbs(r.Dir) ||
		!filepath.IsAbs(r.Shm) {
		t.Errorf("%+v %v", r, err)
	}
	var o Options
	o.Shm = noShm
	if o.rings() != "" {
		t.Error(o.rings())
	}
	if !errors.Is(tagError("x"), ErrTag) {
		t.Error("tagError")
	}
}
