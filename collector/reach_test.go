// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
)

// TestReach: each output says whether it works now: servers with TLS and logins, files, ends of
// other packages. Nothing is sent, and nothing is left.
func TestReach(t *testing.T) {
	ca, other := testcert.New(t), testcert.New(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"key": "correct", "wrong": "another", "taken": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plain, secure, nobody := needs.Address(), needs.Address(), needs.Address()
	server := run(t, &Config{Dir: filepath.Join(dir, "data"), Outputs: Ends("discard:"), Inputs: Ends(
		"forward://"+plain+"?shared_key_file="+dir+"/key",
		"forward+tls://"+secure+"?cert="+ca.Server.Cert+"&key="+ca.Server.Key+"&client_ca="+ca.File,
	)})
	tls := "forward+tls://" + secure + "?server_name=localhost&ca=" + ca.File
	wants := []struct{ url, want string }{
		{"forward://" + plain + "?shared_key_file=" + dir + "/key", ""},
		{"forward://" + plain + "?shared_key_file=" + dir + "/wrong", "the login: "},
		{"forward://" + nobody + "," + plain + "?shared_key_file=" + dir + "/key", nobody},
		{"forward://" + plain + "?shared_key_file=" + dir + "/none", "none"},
		{tls + "&cert=" + ca.Client.Cert + "&key=" + ca.Client.Key, ""},
		{tls + "&cert=" + other.Client.Cert + "&key=" + other.Client.Key, secure},
		{"forward+tls://" + secure + "?server_name=localhost&ca=" + other.File + "&cert=" + ca.Client.Cert + "&key=" +
			ca.Client.Key, "the handshake of TLS"},
		{"forward+unix://" + dir + "/none.sock", "none.sock"},
		{"file:" + dir + "/a/b/{tag}.jsonl", ""},
		{"file:" + dir + "/taken/x.jsonl", "taken"},
		{"stdout:", ""},
		{"discard:", ""},
		{"there://x", ""},
		{"there://gone", "gone"},
		{"there://panics", "panic: slip"},
		{"plain://x", ""},
	}
	hangs := make(chan bool)
	defer close(hangs)
	open := func(*OutputEnv) (Output, error) { return nil, errors.New("it was opened") }
	o := &Config{Dir: filepath.Join(dir, "none"), OutputKinds: map[string]OutputKind{
		"plain": func(*URL, *Params) (*OutputPlan, error) { return &OutputPlan{Open: open}, nil },
		"there": func(u *URL, _ *Params) (*OutputPlan, error) {
			return &OutputPlan{Open: open, Reach: func(context.Context) error {
				switch u.Path {
				case "//gone":
					return errors.New("it is gone")
				case "//panics":
					panic("slip")
				case "//hangs":
					<-hangs
				}
				return nil
			}}, nil
		},
	}}
	for i, w := range wants {
		o.Outputs = append(o.Outputs, End{Name: fmt.Sprint("o", i), URL: w.url})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	all, err := o.Reach(ctx)
	if err != nil || len(all) != len(wants) {
		t.Fatal(all, err)
	}
	for i, w := range wants {
		// A server that is slow to refuse.
		for all[i].Err == nil && strings.HasPrefix(w.want, secure) && ctx.Err() == nil {
			one, err := (&Config{Outputs: Ends(w.url)}).Reach(ctx)
			if err != nil {
				t.Fatal(err)
			}
			all[i].Err = one[0].Err
		}
		said := ""
		if all[i].Err != nil {
			said = all[i].Err.Error()
		}
		if all[i].Output != o.Outputs[i].Name || (said == "") != (w.want == "") || !strings.Contains(said, w.want) {
			t.Errorf("%s, %s: %q, want %q", all[i].Output, w.url, said, w.want)
		}
		if strings.Contains(said, "correct") || strings.Contains(said, "another") {
			t.Errorf("%s: a secret is in %s", w.url, said)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 {
		t.Errorf("%v is left: %v", left, err)
	}
	if s := server.Stats(); s.Stored != 0 {
		t.Errorf("%+v", s)
	}
	enough, stop := context.WithCancelCause(context.Background())
	stop(errors.New("enough"))
	o.Outputs = Ends("there://hangs", "there://x")
	if all, err := o.Reach(enough); err != nil || all[0].Err == nil || all[0].Err.Error() != "no answer: enough" ||
		all[1].Err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	o.Outputs = Ends("nothing://x")
	if _, err := o.Reach(ctx); err == nil {
		t.Error("mistakes are not told")
	}
}
