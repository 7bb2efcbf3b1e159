// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// The golden directories are what processes of released or earlier code left when they were killed.
// Whatever becomes of the formats, today's code reads them. testdata/golden-*/README.md says how
// they were made.

var makeGolden = flag.String("golden", "", "folder into which the golden directories are written, with the code as it is here; empty: none are written")

// goldens are the folders of all code that wrote any.
func goldens(t testing.TB, name string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", "golden-*", name))
	rig.Must(t, err)
	if *makeGolden != "" {
		found = []string{filepath.Join(*makeGolden, name)}
	}
	if len(found) == 0 {
		t.Fatalf("there is no %s", name)
	}
	for i := range found {
		found[i], err = filepath.Abs(found[i])
		rig.Must(t, err)
	}
	return found
}

// pack writes all below dir into an archive.
func pack(t testing.TB, archive, dir string) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	rig.Must(t, err)
	w := tar.NewWriter(z)
	rig.Must(t, w.AddFS(os.DirFS(dir)))
	rig.Must(t, w.Close())
	rig.Must(t, z.Close())
	rig.Must(t, os.MkdirAll(filepath.Dir(archive), 0o755))
	rig.Must(t, os.WriteFile(archive, b.Bytes(), 0o644))
}

// unpack writes what an archive holds, shut to others as the code that wrote it left it. into says
// where each of its topmost folders and files comes.
func unpack(t testing.TB, archive string, into func(top string) string) {
	t.Helper()
	f, err := os.Open(archive)
	rig.Must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	rig.Must(t, err)
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		rig.Must(t, err)
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("%s holds %q", archive, h.Name)
		}
		top, rest, _ := strings.Cut(h.Name, "/")
		path := filepath.Join(into(top), rest)
		if h.Typeflag == tar.TypeDir {
			rig.Must(t, os.MkdirAll(path, 0o700))
			continue
		}
		rig.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		b, err := io.ReadAll(r)
		rig.Must(t, err)
		rig.Must(t, os.WriteFile(path, b, 0o600))
	}
}

// What the golden collector was sent: chunks of so many events. Up to late its outputs took all of
// them; then the file output failed, and at stalled nobody read its standard output any more.
const (
	goldenChunks  = 100
	goldenEvents  = 20
	goldenLate    = 40
	goldenStalled = 50
)

// goldenChunk is one of them. Every fifth asks for no ack, every third is compressed, some ids are
// bin, some are the sender's own.
func goldenChunk(n int) *forward.Chunk {
	when := "early"
	if n >= goldenLate {
		when = "late"
	}
	c := &forward.Chunk{Tag: fmt.Sprintf("%s.%d", when, n%2), Events: goldenEvents, IDBin: n%4 == 1, UniqueID: n%7 == 1}
	var events []rig.Event
	for k := range goldenEvents {
		e := rig.Named(goldenName(n*goldenEvents + k))
		e.Pad = strings.Repeat(fmt.Sprint(n%10), 200)
		events = append(events, e)
	}
	c.Entries = rig.AppendEntries(nil, events...)
	if n%3 == 0 {
		c.Compressed, c.Compression = rig.Gzipped(c.Entries), "gzip"
	}
	if goldenAcked(n) {
		c.ID = fmt.Appendf(nil, "golden/%017d", n)
	}
	return c
}

func goldenAcked(n int) bool { return n%5 != 3 }

func goldenName(event int) string { return fmt.Sprintf("g-%06d", event) }

// goldenNames are the names of the events of chunks.
func goldenNames(from, to int) (names []string) {
	for n := from * goldenEvents; n < to*goldenEvents; n++ {
		names = append(names, goldenName(n))
	}
	return names
}

// sendGolden sends chunks on a connection of their own. The last one is acked.
func sendGolden(l *rig.Lane, from, to int, wanted func(n int) bool) {
	for n := from; n < to; n++ {
		c := goldenChunk(n)
		switch message := slices.Concat(c.AppendHead(nil), c.Body(), c.AppendTail(nil)); {
		case !wanted(n):
		case c.ID == nil:
			l.Write(message)
		case c.IDBin:
			l.Write(message)
			l.WantAckOf(c.ID)
		default:
			l.Send(message, string(c.ID))
		}
	}
}

// goldenSetup is how the golden collector is started, in its folder: the names of its cursors
// follow from the URLs.
func goldenSetup() *rig.Setup {
	return &rig.Setup{
		To: []string{"file:out/{tag}.jsonl", "stdout:"}, Data: "data",
		Args: []string{"--journal-size", "2MiB"},
	}
}

// behindOf is how many records each cursor of the golden collector has yet to pass.
func behindOf(t testing.TB) map[string]int64 {
	t.Helper()
	in, err := journal.Inspect(filepath.Join("data", "journal"))
	rig.Must(t, err)
	for _, s := range in.Segments {
		if s.Err != nil {
			t.Errorf("%+v", s)
		}
	}
	behind := map[string]int64{}
	for _, c := range in.Cursors {
		rig.Must(t, c.Err)
		name, _, _ := strings.Cut(c.Name, "-")
		behind[name] = c.Records
	}
	return behind
}

// writeGoldenCollector leaves what it packs in a folder of its own.
func writeGoldenCollector(t *testing.T, archive string) {
	t.Chdir(t.TempDir())
	rig.Must(t, os.Mkdir("out", 0o700))
	r, w, err := os.Pipe()
	rig.Must(t, err)
	s := goldenSetup()
	s.Stdout = w
	c := rig.StartCollector(t, s)
	rig.Must(t, w.Close())
	var said bytes.Buffer
	read := func(lines int) {
		t.Helper()
		b := make([]byte, 1)
		for lines > 0 { // not a byte more: nobody reads what comes behind
			_, err := r.Read(b)
			rig.Must(t, err)
			said.Write(b)
			if b[0] == '\n' {
				lines--
			}
		}
	}
	all := func(int) bool { return true }
	sendGolden(c.Lane(), 0, goldenLate, all)
	read(goldenLate * goldenEvents)
	rig.Eventually(t, "all cursors have passed all, and the repeats are in their file", func() bool {
		b := behindOf(t)
		return b["file"]+b["stdout"]+b["repeats"] == 0
	})
	rig.Must(t, os.Rename("out", "kept"))
	rig.Must(t, os.WriteFile("out", nil, 0o600))
	sendGolden(c.Lane(), goldenLate, goldenStalled, all)
	read((goldenStalled - goldenLate) * goldenEvents)
	rig.Eventually(t, "stdout: has passed all", func() bool { return behindOf(t)["stdout"] == 0 })
	sendGolden(c.Lane(), goldenStalled, goldenChunks, all)
	c.Kill()
	rig.Must(t, os.Remove("out"))
	rig.Must(t, os.Rename("kept", "out"))
	_, err = io.Copy(&said, r)
	rig.Must(t, err)
	rig.Must(t, os.WriteFile("stdout", said.Bytes(), 0o600))
	pack(t, archive, ".")
}

// freshen makes the repeats file say that its chunks came just now: they are known for an hour. See
// collector/repeats_file.go for its form.
func freshen(t testing.TB, path string) (chunks int) {
	t.Helper()
	const header, record = 28, 32
	b, err := os.ReadFile(path)
	rig.Must(t, err)
	for at := header; at+record <= len(b); at += record {
		r := b[at : at+record]
		if crc32.Checksum(r[:28], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(r[28:]) {
			t.Fatalf("%s: the record at %d is not whole", path, at)
		}
		binary.LittleEndian.PutUint32(r[24:], uint32(time.Now().Unix()))
		binary.LittleEndian.PutUint32(r[28:], crc32.Checksum(r[:28], crc32.MakeTable(crc32.Castagnoli)))
		chunks++
	}
	rig.Must(t, os.WriteFile(path, b, 0o600))
	return chunks
}

// namesOf reads the names of the events in lines; the last line may lack its end.
func namesOf(t testing.TB, text []byte) (names []string) {
	t.Helper()
	for text := range bytes.Lines(text) {
		if l, err := rig.ParseLine(text); err == nil {
			names = append(names, l.Name())
		} else if bytes.HasSuffix(text, []byte("\n")) {
			t.Fatalf("%q: %v", text, err)
		}
	}
	return names
}

// TestGoldenCollector starts today's collector on what one of earlier code left: each output goes
// on where it stood, each event comes once, and what is sent again is known.
func TestGoldenCollector(t *testing.T) {
	if *makeGolden != "" {
		to, err := filepath.Abs(*makeGolden)
		rig.Must(t, err)
		rig.Checked.Build(t)
		t.Run("make", func(t *testing.T) { writeGoldenCollector(t, filepath.Join(to, "collector.tar.gz")) })
	}
	rig.Checked.Build(t) // from here
	for _, archive := range goldens(t, "collector.tar.gz") {
		t.Run(filepath.Base(filepath.Dir(archive)), func(t *testing.T) {
			t.Chdir(t.TempDir())
			unpack(t, archive, func(top string) string { return top })
			before, err := os.ReadFile("stdout")
			rig.Must(t, err)
			behind := behindOf(t)
			at := goldenChunks - int(behind["stdout"])
			if behind["file"] != goldenChunks-goldenLate || at < goldenStalled || at > goldenChunks/2+30 {
				t.Fatalf("the cursors of the archive stand before %v", behind)
			}
			if n := freshen(t, filepath.Join("data", "repeats")); n < goldenLate*4/5 || n == goldenChunks*4/5 {
				t.Fatalf("the archive's file knows %d chunks", n) // of the others the journal tells
			}
			s, now := goldenSetup(), new(bytes.Buffer)
			s.Stdout = now
			c := rig.StartCollector(t, s)
			rig.WaitLines(t, "out", goldenChunks*goldenEvents)
			sendGolden(c.Lane(), 0, goldenChunks, goldenAcked)
			sendGolden(c.Lane(), goldenChunks, goldenChunks+1, goldenAcked)
			c.Stop()
			byTag := map[string][]string{}
			for _, l := range rig.ReadLines(t, "out") {
				byTag[l.Tag] = append(byTag[l.Tag], l.Name())
			}
			for tag, names := range byTag {
				if !slices.IsSorted(names) {
					t.Errorf("%s is out of order", tag)
				}
			}
			written := slices.Sorted(func(yield func(string) bool) {
				for _, names := range byTag {
					for _, name := range names {
						if !yield(name) {
							return
						}
					}
				}
			})
			if want := goldenNames(0, goldenChunks+1); !slices.Equal(written, want) {
				t.Errorf("the files have %d events, want %d, each once", len(written), len(want))
			}
			if names, want := namesOf(t, now.Bytes()), goldenNames(at, goldenChunks+1); !slices.Equal(names, want) {
				t.Errorf("standard output has %d events, want %d from chunk %d on", len(names), len(want), at)
			}
			if names := namesOf(t, before); len(names) < at*goldenEvents ||
				!slices.Equal(names, goldenNames(0, goldenChunks)[:len(names)]) {
				t.Errorf("standard output had %d events, and its cursor is behind %d", len(names), at*goldenEvents)
			}
			wantNothingAside(t, "data")
		})
	}
}

// wantNothingAside wants that nothing was set aside.
func wantNothingAside(t testing.TB, dir string) {
	t.Helper()
	rig.Must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.Contains(name, "quarantine") || strings.Contains(name, "unreadable")) {
			t.Errorf("set aside: %s", name)
		}
		return err
	}))
}
