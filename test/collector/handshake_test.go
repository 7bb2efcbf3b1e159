// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bufio"
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/test/internal/rig"
	"github.com/tinylib/msgp/msgp"
)

// greet goes through the Forward handshake as a client does (docs/forward.md rules 31 to 34), with
// its bytes made here.
func greet(t testing.TB, conn net.Conn, host, key string) *bufio.Reader {
	t.Helper()
	rig.Must(t, conn.SetDeadline(time.Now().Add(rig.Patience)))
	in := bufio.NewReader(conn)
	r := msgp.NewReader(in)
	helo, err := r.ReadIntf()
	rig.Must(t, err)
	list, ok := helo.([]any)
	if !ok || len(list) != 2 || text(list[0]) != "HELO" {
		t.Fatalf("no HELO: %v", helo)
	}
	nonce := text(list[1].(map[string]any)["nonce"])
	if nonce == "" {
		t.Fatalf("no nonce: %v", helo)
	}
	const salt = "00112233445566778899aabbccddeeff"
	digest := func(name string) string {
		sum := sha512.Sum512([]byte(salt + name + nonce + key))
		return hex.EncodeToString(sum[:])
	}
	ping := rig.AppendStr([]byte{0x96}, "PING")
	for _, s := range []string{host, salt, digest(host), "", ""} {
		ping = rig.AppendStr(ping, s)
	}
	_, err = conn.Write(ping)
	rig.Must(t, err)
	pong, err := r.ReadIntf()
	rig.Must(t, err)
	list, ok = pong.([]any)
	if !ok || len(list) != 5 || text(list[0]) != "PONG" || list[1] != true || text(list[4]) != digest(text(list[3])) {
		t.Fatalf("no PONG that says yes: %v", pong)
	}
	rig.Must(t, conn.SetDeadline(time.Time{}))
	rest, err := r.R.Peek(r.R.Buffered())
	rig.Must(t, err)
	return bufio.NewReader(&joined{bytes.NewReader(rest), in})
}

// text is a str or a bin.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

// joined reads one after the other.
type joined struct {
	first *bytes.Reader
	then  *bufio.Reader
}

func (j *joined) Read(p []byte) (int, error) {
	if j.first.Len() > 0 {
		return j.first.Read(p)
	}
	return j.then.Read(p)
}
