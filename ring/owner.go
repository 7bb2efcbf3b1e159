// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Owner is what a ring's owner file says of the process that made it.
type Owner struct {
	Path      string // the ring's folder
	Name      string // Options.Name
	PID       int    // where it ran; in its own container, perhaps
	BootID    string // changes when the machine starts
	MachineID string // may be empty
	RingID    string // hexadecimal
	Identity  []byte // Options.Identity
	Made      time.Time
}

const ownerTitle = "spillway ring 1\n"

// text is the content of the owner file.
func (o *Owner) text() []byte {
	var b bytes.Buffer
	b.WriteString(ownerTitle)
	fmt.Fprintf(&b, "name %s\npid %d\nboot %s\nmachine %s\nring %s\nmade %s\nidentity %q\n",
		o.Name, o.PID, o.BootID, o.MachineID, o.RingID, o.Made.UTC().Format(time.RFC3339Nano), o.Identity)
	fmt.Fprintf(&b, "check %08x\n", crc32.Checksum(b.Bytes(), castagnoli))
	return b.Bytes()
}

// parse reads what text wrote.
func (o *Owner) parse(b []byte) error {
	text, check, _ := strings.Cut(string(b), "\ncheck ")
	text += "\n"
	if !strings.HasPrefix(text, ownerTitle) ||
		check != fmt.Sprintf("%08x\n", crc32.Checksum([]byte(text), castagnoli)) {
		return fmt.Errorf("%w: the owner file cannot be read", ErrCorrupt)
	}
	for line := range strings.Lines(text[len(ownerTitle):]) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var err error
		switch key {
		case "name":
			o.Name = value
		case "pid":
			o.PID, err = strconv.Atoi(value)
		case "boot":
			o.BootID = value
		case "machine":
			o.MachineID = value
		case "ring":
			o.RingID = value
		case "made":
			o.Made, err = time.Parse(time.RFC3339Nano, value)
		case "identity":
			var s string
			s, err = strconv.Unquote(value)
			o.Identity = []byte(s)
		}
		if err != nil {
			return fmt.Errorf("%w: the owner file cannot be read: %w", ErrCorrupt, err)
		}
	}
	return nil
}

// folderName is <name>.<pid>.<16 hexadecimal digits of the ring's id>.
func folderName(name string, pid int, id [16]byte) string {
	return fmt.Sprintf("%s.%d.%s", name, pid, hex.EncodeToString(id[:8]))
}

// NameOf is Options.Name of the ring whose folder has that name, empty if it is none of a ring.
func NameOf(folder string) string {
	name, _, _ := parseFolderName(folder)
	return name
}

// parseFolderName takes a folder's name apart.
func parseFolderName(s string) (name string, temporary, ok bool) {
	s, temporary = strings.CutSuffix(s, temporarySuffix)
	rest, id, ok1 := cutLast(s)
	name, pid, ok2 := cutLast(rest)
	if !ok1 || !ok2 || name == "" || len(id) != 16 || pid == "" || strings.Trim(pid, "0123456789") != "" ||
		strings.Trim(id, "0123456789abcdef") != "" {
		return "", false, false
	}
	return name, temporary, true
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

const (
	temporarySuffix = ".tmp"
	ownerFile       = "owner"
	ringFile        = "ring"
)

// readRegular reads at most limit bytes of a file, and of nothing else: to read from a pipe would
// be to wait for ever.
func readRegular(name string, limit int64) ([]byte, error) {
	if err := checkRegular(name); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func checkRegular(name string) error {
	fi, err := os.Lstat(name)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is no file", ErrCorrupt, name)
	}
	return err
}
