// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

func zstandard(t testing.TB, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf)
	rig.Must(t, err)
	_, err = w.Write(b)
	rig.Must(t, err)
	rig.Must(t, w.Close())
	return buf.Bytes()
}

// TestCompressed sends gzip and zstd, one member and one a event (docs/forward.md rule 17). The
// same chunk resent plain is a resend: what is compared is what was compressed.
func TestCompressed(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	var want []string
	for name, compress := range map[string]func([]byte) []byte{
		"gzip": rig.Gzipped,
		"zstd": func(b []byte) []byte { return zstandard(t, b) },
	} {
		one := rig.Named(name + " 1").Append(nil)
		two := rig.Named(name + " 2").Append(nil)
		three := rig.Named(name + " 3").Append(nil)
		want = append(want, name+" 1", name+" 2", name+" 3", name+" 1", name+" 2", name+" 3")

		id := rig.NewID()
		c.Lane().Send(rig.PackedOptions("a", compress(bytes.Join([][]byte{one, two, three}, nil)), "compressed", name,
			"chunk", id), id)
		c.Lane().Send(rig.Packed("a", id, bytes.Join([][]byte{one, two, three}, nil)), id)

		id = rig.NewID()
		members := bytes.Join([][]byte{compress(one), compress(two), compress(three)}, nil)
		c.Lane().Send(rig.PackedOptions("a", members, "compressed", name, "chunk", id), id)
		c.Lane().Send(rig.PackedOptions("a", members, "compressed", name, "chunk", id), id)
	}
	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}
