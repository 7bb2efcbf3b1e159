// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// What nobody may ever see.
const (
	sharedKey = "hush-shared-key"
	newKey    = "hush-new-key"
	webKey    = "hush-web-key"
	password  = "hush-password"
	wrong     = "hush-wrong"
	hush      = "hush"
)

// A vault is a folder of credentials, and a collector that uses them.
type vault struct {
	t   *testing.T
	dir string
	ca  *testcert.CA
}

func newVault(t *testing.T) *vault {
	v := &vault{t: t, dir: t.TempDir(), ca: testcert.New(t)}
	v.put("shared.key", sharedKey+"\n")
	v.put("web.key", webKey+"\n")
	v.put("wrong.key", wrong+"\n")
	v.put("users", "# who may log in\nweb:"+password+"\n")
	v.put("password", password+"\n")
	v.copy("server.pem", v.ca.Server.Cert)
	v.copy("server.key", v.ca.Server.Key)
	v.copy("ca.pem", v.ca.File)
	return v
}

// path is that of a file in the vault.
func (v *vault) path(name string) string { return filepath.Join(v.dir, name) }

func (v *vault) put(name, text string) {
	v.t.Helper()
	rig.Must(v.t, os.WriteFile(v.path(name), []byte(text), 0o600))
}

func (v *vault) copy(name, from string) {
	v.t.Helper()
	b, err := os.ReadFile(from)
	rig.Must(v.t, err)
	v.put(name, string(b))
}

// url fills in paths: a word that begins with @ is a file in the vault.
func (v *vault) url(text string) string { return strings.ReplaceAll(text, "@", v.dir+"/") }

const secureInput = "?cert=@server.pem&key=@server.key&client_ca=@ca.pem&client_auth=request&shared_key_file=@shared.key&users_file=@users&hostname=collector.test"

// send runs "spillway send" with one line, which gives up after a while.
func (v *vault) send(while time.Duration, to, line string, env ...string) (stdout, stderr string, err error) {
	v.t.Helper()
	cmd := exec.Command(rig.Checked.Build(v.t), "send", "--to", v.url(to), "--tag", "t", "--timeout", while.String())
	cmd.Stdin = strings.NewReader(line + "\n")
	cmd.Env = append(os.Environ(), env...)
	var out, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &e
	err = cmd.Run()
	return out.String(), e.String(), err
}

// keepsQuiet checks that no text shows a secret.
func keepsQuiet(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for l := range strings.Lines(text) {
			if strings.Contains(l, hush) {
				t.Errorf("a secret is shown: %s", l)
			}
		}
	}
}

// TestSecureSend sends over TLS with a certificate, a shared key and a user, over a unix socket
// with a key of its own, and sees who sent.
func TestSecureSend(t *testing.T) { // alone: it sets the environment
	v := newVault(t)
	s, out := rig.NewSetup(t)
	socket := rig.SocketPath(t)
	v.put("clients", "# rules\nhost=web.test key_env=HUSH_WEB_KEY\nnetwork=127.0.0.0/8\n")
	t.Setenv("HUSH_WEB_KEY", webKey)
	s.Listen = []string{
		v.url("forward+tls://127.0.0.1:0" + secureInput +
			"&tag_prefix=tls&address_key=address&host_key=host&subject_key=subject&user_key=user"),
		v.url("forward+unix://" + socket + "?clients_file=@clients&anonymous=false&shared_key_file=@shared.key&tag=unix&host_key=host"),
	}
	c := rig.StartCollector(t, s)
	defer c.Stop()
	login := "&shared_key_file=@shared.key&username=web&password_file=@password"
	said := ""
	for _, to := range []string{
		"forward+tls://" + c.Addr + "?ca=@ca.pem&cert=" + v.ca.Client.Cert + "&key=" + v.ca.Client.Key +
			"&hostname=sender.test" + login,
		"forward+tls://localhost:" + c.Addr[strings.LastIndex(c.Addr, ":")+1:] + "?ca=@ca.pem&hostname=sender.test" +
			login,
		"forward+tls://" + c.Addr + "?insecure=true&keepalive=false&hostname=sender.test&shared_key_env=HUSH_KEY&username=web&password_env=HUSH_PASSWORD",
		"forward+unix://" + socket + "?hostname=web.test&shared_key_env=HUSH_WEB_KEY",
	} {
		stdout, stderr, err := v.send(rig.Patience, to, `{"name":"x"}`,
			"HUSH_KEY="+sharedKey, "HUSH_PASSWORD="+password)
		if err != nil || stdout != "1 acked\n" {
			t.Errorf("%s: %v, %q, %q", to, err, stdout, stderr)
		}
		if warned := strings.Contains(stderr, "any server's certificate passes"); warned != strings.Contains(to,
			"insecure") {
			t.Errorf("%s: %q", to, stderr)
		}
		said += stdout + stderr
	}
	rig.WaitLines(t, out, 4)
	keepsQuiet(t, said, c.Log.String())
	tls, withCert := 0, 0
	for _, l := range rig.ReadLines(t, out) {
		switch l.Tag {
		case "tls.t":
			tls++
			if l.Record["address"] != "127.0.0.1" || l.Record["host"] != "sender.test" || l.Record["user"] != "web" {
				t.Errorf("%v", l.Record)
			}
			if subject, _ := l.Record["subject"].(string); strings.Contains(subject, "CN=client") {
				withCert++
			}
		case "unix":
			if l.Record["host"] != "web.test" {
				t.Errorf("%v", l.Record)
			}
		default:
			t.Errorf("tag %q", l.Tag)
		}
	}
	if tls != 3 || withCert != 1 {
		t.Errorf("%d events over TLS, %d with a certificate", tls, withCert)
	}
}

// TestSecureRefused: a client without the right key, password or certificate is refused; both ends
// say why, which peer it is about, and no secret.
func TestSecureRefused(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	stranger := testcert.New(t)
	s, out := rig.NewSetup(t)
	s.Listen = []string{v.url("forward+tls://127.0.0.1:0" + secureInput)}
	c := rig.StartCollector(t, s)
	login := "&shared_key_file=@shared.key&username=web&password_file=@password"
	for _, tt := range []struct{ name, to, client, server string }{
		{
			"wrong key", "forward+tls://ADDR?ca=@ca.pem&shared_key_file=@wrong.key&username=web&password_file=@password",
			"shared key", "denied",
		},
		{"wrong password", "forward+tls://ADDR?ca=@ca.pem&shared_key_file=@shared.key&username=web&password_file=@wrong.key", "password", "denied"},
		{
			"wrong user", "forward+tls://ADDR?ca=@ca.pem&shared_key_file=@shared.key&username=wab&password_file=@password",
			"user", "denied",
		},
		{"no user", "forward+tls://ADDR?ca=@ca.pem&shared_key_file=@shared.key", "user", ""},
		{"no login", "forward+tls://ADDR?ca=@ca.pem", "", "handshake failed"},
		{"no TLS", "forward://ADDR", "", "handshake failed"},
		{
			"unknown authority", "forward+tls://ADDR?ca=" + stranger.File + login, "unknown authority",
			"handshake failed",
		},
		{
			"other name", "forward+tls://ADDR?ca=@ca.pem&server_name=other.test" + login, "other.test",
			"handshake failed",
		},
		{"strange certificate", "forward+tls://ADDR?ca=@ca.pem&cert=" + stranger.Client.Cert + "&key=" +
			stranger.Client.Key + login, "certificate", "handshake failed"},
	} {
		before := len(c.Log.String())
		for while := time.Second; ; while *= 5 { // a busy machine may take longer than that to be refused even once
			stdout, stderr, err := v.send(while, strings.ReplaceAll(tt.to, "ADDR", c.Addr), "x")
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || stdout != "0 acked\n" {
				t.Errorf("%s: %v, %q", tt.name, err, stdout)
			}
			keepsQuiet(t, stdout, stderr)
			if strings.Contains(stderr, c.Addr) && strings.Contains(stderr, tt.client) {
				break
			}
			if while > 20*time.Second {
				t.Errorf("%s: the client says %q, want %s and %q in it", tt.name, stderr, c.Addr, tt.client)
				break
			}
		}
		if tt.server == "" {
			continue
		}
		rig.Eventually(t, tt.name+": the server says so", func() bool {
			for l := range strings.Lines(c.Log.String()[before:]) {
				if strings.Contains(l, tt.server) && strings.Contains(l, "peer=127.0.0.1") {
					return true
				}
			}
			return false
		})
	}
	c.Stop()
	keepsQuiet(t, c.Log.String())
	if lines := rig.ReadLines(t, out); len(lines) != 0 {
		t.Errorf("%d events of unknown clients were stored", len(lines))
	}
}

// A courier sends chunks with acks over one connection until it is stopped, and counts.
type courier struct {
	client *forward.Client
	acked  int
	err    error
}

// courier returns one with a login of its own; the certificate that the server showed is told to
// seen.
func (v *vault) courier(addr, key string, seen func(*tls.ConnectionState)) *courier {
	return &courier{client: &forward.Client{
		Address: addr,
		TLS: &tls.Config{
			RootCAs: v.ca.Pool, MinVersion: tls.VersionTLS12,
			VerifyConnection: func(s tls.ConnectionState) error {
				seen(&s)
				return nil
			},
		},
		Login: &forward.Login{SharedKey: key, Username: "web", Password: password},
	}}
}

func (c *courier) run(ctx context.Context, name string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		var chunk forward.Chunk
		chunk.Tag = "t"
		chunk.Entries = rig.AppendEntries(nil, rig.Named(fmt.Sprintf("%s-%d", name, c.acked)))
		chunk.Events = 1
		if c.err = c.client.Send(ctx, &chunk); c.err != nil {
			return
		}
		c.acked++
	}
}

// TestSecureReload exchanges certificate, key and shared key under traffic, by their files and by
// SIGHUP, with broken ones in between: no connection is dropped whose login stays good, no event is
// lost, and who comes new meets what is new. Where a key, a user or an authority is withdrawn, the
// connections end that have logged in with it.
func TestSecureReload(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	s, out := rig.NewSetup(t)
	s.Listen = []string{v.url("forward+tls://127.0.0.1:0" + secureInput + "&clients_file=@clients")}
	v.put("clients", "host=courier key_file=web.key\n") // not exchanged below
	v.put("users", "web:"+password+"\ntemp:"+password+"\n")
	c := rig.StartCollector(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()

	stop := make(chan struct{})
	var running sync.WaitGroup
	var couriers []*courier
	for i := range 4 {
		d := v.courier(c.Addr, webKey, func(*tls.ConnectionState) {})
		d.client.Login.Hostname = "courier"
		couriers = append(couriers, d)
		running.Go(func() { d.run(ctx, fmt.Sprint("courier-", i), stop) })
	}
	// visit sends one event on a connection of its own, and returns the serial number of the
	// server's certificate. Who has the right key gets all the time there is: an event whose ack
	// was not waited for would come as one too many.
	visits := 0
	visit := func(key string, most time.Duration) (serial string, err error) {
		d := v.courier(c.Addr, key,
			func(s *tls.ConnectionState) { serial = s.PeerCertificates[0].SerialNumber.String() })
		d.client.MinBackoff, d.client.MaxBackoff = time.Millisecond, time.Millisecond
		defer d.client.Close()
		short, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		var chunk forward.Chunk
		chunk.Tag, chunk.Events = "t", 1
		chunk.Entries = rig.AppendEntries(nil, rig.Named(fmt.Sprint("visit-", visits)))
		if err := d.client.Send(short, &chunk); err != nil {
			return serial, err
		}
		visits++
		return serial, nil
	}
	meet := func(what, key string, pair *testcert.Pair) {
		t.Helper()
		rig.Eventually(t, what, func() bool {
			serial, err := visit(key, rig.Patience)
			return err == nil && serial == pair.TLS.Leaf.SerialNumber.String()
		})
	}
	hangup := func(says ...string) {
		t.Helper()
		before := strings.Count(c.Log.String(), says[0])
		rig.Must(t, c.Cmd.Process.Signal(syscall.SIGHUP))
		rig.Eventually(t, "SIGHUP is heard", func() bool { return strings.Count(c.Log.String(), says[0]) > before })
		c.Says(says...)
	}

	guests := 0
	// guest has a connection to the collector that nothing more is sent on. It ends only with a
	// message of the collector, see withdrawn.
	guest := func(change func(*forward.Client)) (port string) {
		t.Helper()
		d := v.courier(c.Addr, webKey, func(*tls.ConnectionState) {})
		d.client.Login.Hostname = "courier"
		d.client.Dial = func(ctx context.Context) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, "tcp", c.Addr)
			if err == nil {
				port = nc.LocalAddr().String()
			}
			return nc, err
		}
		change(d.client)
		t.Cleanup(func() { _ = d.client.Close() }) // it was cut
		var chunk forward.Chunk
		chunk.Tag, chunk.Events = "t", 1
		chunk.Entries = rig.AppendEntries(nil, rig.Named(fmt.Sprint("guest-", guests)))
		rig.Must(t, d.client.Send(ctx, &chunk))
		guests++
		return port
	}
	withdrawn := func(peer, why string) bool {
		for l := range strings.Lines(c.Log.String()) {
			if strings.Contains(l, `kind="login withdrawn"`) && strings.Contains(l, "peer="+peer) &&
				strings.Contains(l, why) {
				return true
			}
		}
		return false
	}
	byKey := guest(func(f *forward.Client) {
		*f.Login = forward.Login{SharedKey: sharedKey, Username: "web", Password: password}
	})
	byUser := guest(func(f *forward.Client) { f.Login.Username = "temp" })
	byCertificate := guest(func(f *forward.Client) { f.TLS.Certificates = []tls.Certificate{v.ca.Client.TLS} })

	meet("the first certificate", sharedKey, v.ca.Server)
	renewed := v.ca.Issue(t, &testcert.Options{Hosts: []string{"127.0.0.1"}})
	v.copy("server.pem", renewed.Cert) // without its key
	for range 3 {
		if serial, err := visit(sharedKey, rig.Patience); err != nil ||
			serial != v.ca.Server.TLS.Leaf.SerialNumber.String() {
			t.Errorf("with half of a new pair: certificate %s, %v", serial, err)
		}
	}
	hangup("credentials not reloaded", "private key does not match", v.path("server.key"))
	v.copy("server.key", renewed.Key)
	meet("the second certificate, by its file", sharedKey, renewed)
	c.Says("credentials renewed", v.path("server.key"))

	v.put("shared.key", newKey+"\n")
	hangup("credentials reloaded")
	if !withdrawn(byKey, "its shared key is good no more") { // before SIGHUP is answered
		t.Errorf("the connection from %s goes on:\n%s", byKey, c.Log)
	}
	meet("the new key, by SIGHUP", newKey, renewed)
	rig.Eventually(t, "the old key is denied", func() bool {
		_, err := visit(sharedKey, 2*time.Second)
		if err == nil {
			t.Error("the old key is good")
		}
		return err == nil || errors.Is(err, forward.ErrDenied)
	})

	v.put("users", "web:"+password+"\n"+hush+" without a colon\n")
	hangup("credentials not reloaded", v.path("users"), "line 2: there is no colon")
	meet("the users as they were", newKey, renewed)
	v.put("users", "web:"+password+"\napp:"+password+"\n")
	hangup("credentials reloaded")
	if !withdrawn(byUser, "its user or password is good no more") {
		t.Errorf("the connection from %s goes on:\n%s", byUser, c.Log)
	}

	v.copy("ca.pem", testcert.New(t).File)
	rig.Eventually(t, "the connection from "+byCertificate+" is ended without SIGHUP", func() bool {
		_, err := visit(newKey, rig.Patience) // a client that comes makes the collector look
		return err == nil && withdrawn(byCertificate, "its certificate is good no more")
	})

	third := v.ca.Issue(t, &testcert.Options{Hosts: []string{"127.0.0.1"}})
	v.copy("server.key", third.Key)
	v.copy("server.pem", third.Cert)
	hangup("credentials reloaded")
	meet("the third certificate", newKey, third)

	close(stop)
	running.Wait()
	var want []string
	for i, d := range couriers {
		if st := d.client.Stats(); d.err != nil || st.Connects != 1 || st.Failures != 0 || d.acked == 0 {
			t.Errorf("courier %d: %d acked, %+v, %v", i, d.acked, st, d.err)
		}
		rig.Must(t, d.client.Close())
		for n := range d.acked {
			want = append(want, fmt.Sprintf("courier-%d-%d", i, n))
		}
	}
	for n := range visits {
		want = append(want, fmt.Sprint("visit-", n))
	}
	for n := range guests {
		want = append(want, fmt.Sprint("guest-", n))
	}
	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
	keepsQuiet(t, c.Log.String())
}

// TestSecureLogger logs over TLS with a shared key and a user while the collector is killed and
// comes back, once with other secrets.
func TestSecureLogger(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	s, out := rig.NewSetup(t)
	addr := fmt.Sprintf("127.0.0.1:%d", needs.Port("127.0.0.1"))
	s.Listen = []string{v.url("forward+tls://" + addr + secureInput)}
	c := rig.StartCollector(t, s)
	h := rig.NewHome(t)
	root := &tls.Config{RootCAs: v.ca.Pool, MinVersion: tls.VersionTLS12}
	byFiles := h.Open(v.url("forward+tls://"+addr+
		"?ca=@ca.pem&shared_key_file=@shared.key&username=web&password_file=@password&max_backoff=100ms"),
		spillway.Options{Tag: "files"})
	byValues := h.Open("forward+tls://"+addr+"?max_backoff=100ms&compress=zstd", spillway.Options{
		Tag: "values", TLS: root, Login: &forward.Login{SharedKey: sharedKey, Username: "web", Password: password},
	})
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	var want []string
	burst := func(loggers ...*spillway.Logger) {
		for range 500 {
			name := fmt.Sprint("event-", len(want))
			want = append(want, name)
			loggers[len(want)%len(loggers)].Info("m", slog.String("name", name))
		}
	}
	burst(byFiles, byValues)
	rig.Must(t, errors.Join(byFiles.Flush(ctx), byValues.Flush(ctx)))
	for range 2 {
		burst(byFiles, byValues)
		c.Kill()
		keepsQuiet(t, c.Log.String())
		burst(byFiles, byValues)
		c = rig.StartCollector(t, s)
		burst(byFiles, byValues)
	}
	rig.Must(t, errors.Join(byFiles.Flush(ctx), byValues.Flush(ctx)))
	rig.Closing(t, byValues)

	c.Kill()
	v.put("shared.key", newKey+"\n")
	burst(byFiles)
	c = rig.StartCollector(t, s)
	rig.Must(t, byFiles.Flush(ctx))

	// Who has the old key is refused, keeps what it has, and its successor with the new one ships
	// it: secrets are no part of what a ring is found by.
	late := h.Open("forward+tls://"+addr, spillway.Options{
		Tag: "late", TLS: root,
		Login: &forward.Login{SharedKey: sharedKey, Username: "web", Password: password},
	})
	burst(late)
	rig.Eventually(t, "the logger says that it is denied", func() bool { return h.Said(addr, "shared key") })
	short, cancelShort := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancelShort()
	var left *spillway.UndeliveredError
	if err := late.Close(short); !errors.As(err, &left) {
		t.Errorf("closing a logger that is denied: %v", err)
	}
	keepsQuiet(t, fmt.Sprintf("%v %+v", left, late.Stats()))
	successor := h.Open("forward+tls://"+addr, spillway.Options{
		Tag: "late", TLS: root,
		Login: &forward.Login{SharedKey: newKey, Username: "web", Password: password},
	})
	rig.Must(t, successor.Flush(ctx))
	rig.Closing(t, successor)
	rig.Closing(t, byFiles)

	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
	keepsQuiet(t, c.Log.String(), strings.Join(h.Diagnoses, "\n"))
	for _, dir := range []string{h.Shm, s.Data} { // nor do they lie about
		for _, file := range rig.LineFiles(t, dir) {
			b, err := os.ReadFile(file)
			rig.Must(t, err)
			if bytes.Contains(b, []byte(hush)) {
				t.Errorf("%s holds a secret", file)
			}
		}
	}
}

// TestSecureHeartbeat: an input with TLS answers UDP heartbeats as a plain one does.
func TestSecureHeartbeat(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	s, _ := rig.NewSetup(t)
	s.Listen = []string{v.url("forward+tls://127.0.0.1:0" + secureInput)}
	c := rig.StartCollector(t, s)
	defer c.Stop()
	conn, err := net.Dial("udp", c.Addr)
	rig.Must(t, err)
	defer conn.Close()
	rig.Eventually(t, "a heartbeat is answered", func() bool {
		_, err := conn.Write([]byte{0})
		rig.Must(t, err)
		rig.Must(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
		n, err := conn.Read(make([]byte, 8))
		return err == nil && n == 1
	})
}

// TestSecureStart: what is wrong with credentials is said at the start, as an exit code too.
func TestSecureStart(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.put("empty", "\n")
	v.put("nouser", hush+"\n")
	s, _ := rig.NewSetup(t)
	for _, tt := range []struct {
		url  string
		code int
		want string
	}{
		{"forward+tls://127.0.0.1:0", 2, "cert= and key="},
		{"forward://127.0.0.1:0?shared_key=" + hush, 2, "unknown parameter"},
		{
			"forward://127.0.0.1:0?shared_key_env=" + hush, 1,
			"the environment variable that shared_key_env= names is not set",
		},
		{"forward://127.0.0.1:0?shared_key_file=@none", 1, v.path("none")},
		{"forward://127.0.0.1:0?shared_key_file=@empty", 1, "the shared key is empty"},
		{"forward://127.0.0.1:0?shared_key_file=@shared.key&users_file=@nouser", 1, v.path("nouser") + ": line 1"},
		{"forward+tls://127.0.0.1:0?cert=@server.pem&key=" + v.ca.Client.Key, 1, "does not match"},
	} {
		s.Listen = []string{v.url(tt.url)}
		c := rig.Launch(t, s)
		if code := c.Wait(); code != tt.code || !strings.Contains(c.Log.String(), tt.want) {
			t.Errorf("%s: exit code %d, want %d: %s", tt.url, code, tt.code, c.Log)
		}
		keepsQuiet(t, c.Log.String())
	}
}
