// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// What the golden logger was given, while nobody listened at its destination: more than its ring
// holds, so that most of it lies in the spill.
const (
	goldenStreams = 4
	goldenPosts   = 1500
	goldenServer  = "127.0.0.1:1"
)

func goldenStream(g int) string { return fmt.Sprintf("golden.%d", g) }

// writeGoldenLogger packs the ring and the spill of a process that was killed.
func writeGoldenLogger(t *testing.T, archive string) {
	h := rig.NewHome(t)
	c := rig.StartChild(t, rig.Order{
		Destination: "forward://" + goldenServer, Prefix: "golden", Goroutines: goldenStreams, Count: goldenPosts,
		Pad:     60,
		Options: rig.ChildOptions{Shm: h.Shm, Dir: h.Dir, RingSize: 256 << 10},
	})
	rig.Eventually(t, "all is posted", func() bool {
		_, ok := c.Find("posted")
		return ok || c.Over()
	})
	c.Kill()
	all := t.TempDir()
	rings := h.Rings()
	if len(rings) != 1 {
		t.Fatalf("rings %v", rings)
	}
	rig.Must(t, os.CopyFS(filepath.Join(all, "ring"), os.DirFS(filepath.Dir(rings[0]))))
	rig.Must(t, os.CopyFS(filepath.Join(all, "spill"), os.DirFS(h.Dir)))
	// Where this was is nobody's business.
	own(t, filepath.Join(all, "ring"), filepath.Join(all, "spill"),
		map[string]string{"machine": strings.Repeat("0", 32), "boot": "none"}, goldenServer, "/golden")
	pack(t, archive, all)
}

// own changes whose a ring and its spill are: lines of the ring's owner, the server in the
// destination, and the folder of spills.
func own(t testing.TB, rings, spills string, lines map[string]string, server, dir string) {
	t.Helper()
	identity := func(was string) string {
		place, _, ok := strings.Cut(was, "\x00")
		if !ok || !strings.Contains(place, goldenServer) {
			t.Fatalf("the owner is %q", was)
		}
		return strings.Replace(place, goldenServer, server, 1) + "\x00" + dir
	}
	theirs, err := filepath.Glob(filepath.Join(rings, "*", "owner"))
	rig.Must(t, err)
	ours, err := filepath.Glob(filepath.Join(spills, "*", "owner.json"))
	rig.Must(t, err)
	if len(theirs) != 1 || len(ours) != 1 {
		t.Fatalf("there are the rings of %v and the spills of %v", theirs, ours)
	}
	b, err := os.ReadFile(theirs[0])
	rig.Must(t, err)
	var text strings.Builder
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if other, ok := lines[key]; ok {
			line = key + " " + other + "\n"
		}
		switch key {
		case "identity":
			was, err := strconv.Unquote(value)
			rig.Must(t, err)
			line = fmt.Sprintf("identity %q\n", identity(was))
		case "check":
			line = fmt.Sprintf("check %08x\n", crc32.Checksum([]byte(text.String()), crc32.MakeTable(crc32.Castagnoli)))
		}
		text.WriteString(line)
	}
	rig.Must(t, os.WriteFile(theirs[0], []byte(text.String()), 0o600))
	b, err = os.ReadFile(ours[0])
	rig.Must(t, err)
	var o map[string]json.RawMessage
	rig.Must(t, json.Unmarshal(b, &o))
	var was []byte
	rig.Must(t, json.Unmarshal(o["identity"], &was))
	o["identity"], err = json.Marshal([]byte(identity(string(was))))
	rig.Must(t, err)
	b, err = json.Marshal(o)
	rig.Must(t, err)
	rig.Must(t, os.WriteFile(ours[0], b, 0o600))
}

// TestGoldenLogger opens a logger where one of earlier code was killed: it delivers what that one
// had accepted, once and in order.
func TestGoldenLogger(t *testing.T) {
	if *makeGolden != "" {
		writeGoldenLogger(t, filepath.Join(*makeGolden, "logger.tar.gz"))
	}
	for _, archive := range goldens(t, "logger.tar.gz") {
		t.Run(filepath.Base(filepath.Dir(archive)), func(t *testing.T) {
			h := rig.NewHome(t)
			s := rig.NewFake(t)
			url := s.URL("")
			folders := map[string]string{
				"ring":  filepath.Join(h.Shm, fmt.Sprintf("spillway-%d", os.Getuid())),
				"spill": h.Dir,
			}
			unpack(t, archive, func(top string) string { return folders[top] })
			boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
			rig.Must(t, err)
			// As if it had run here since the machine was started, for this server.
			own(t, folders["ring"], folders["spill"], map[string]string{"boot": strings.TrimSpace(string(boot))},
				s.Addr, h.Dir)
			l := h.Open(url, spillway.Options{Dir: h.Dir})
			stats := rig.Closing(t, l)
			rig.WantLaw(t, stats)
			s.Ledger.Check(t)
			for g := range goldenStreams {
				s.Ledger.WantStream(t, goldenStream(g), goldenPosts, goldenPosts)
			}
			h.WantEmpty()
			if t.Failed() {
				h.Tell()
			}
		})
	}
}
