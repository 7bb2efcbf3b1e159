// SPDX-License-Identifier: Apache-2.0

//go:build unix

package collector

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/internal/await"
)

// listenUnix listens on a unix socket. A socket that a dead process left is
// replaced, a live one is not, and nothing but a socket is ever removed. The
// folder is locked meanwhile, for two processes that start at once would
// otherwise both find the old socket dead, and one remove the other's new one.
func listenUnix(path string) (net.Listener, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := lockFolder(dir); err != nil {
		return nil, fmt.Errorf("locking the folder: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

// lockFolder waits a moment for the lock, which others hold as briefly as we do.
func lockFolder(dir *os.File) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || await.Pause(ctx, 10*time.Millisecond) != nil {
			return err
		}
	}
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return errors.New("there is a file at this path, and no socket")
	case mode.IsDir():
		return errors.New("this is a directory; the name of the socket is missing")
	case mode.Type() != fs.ModeSocket:
		return fmt.Errorf("there is something else than a socket at this path (%s)", mode.Type())
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return errLive
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// besides is how many files outputs and journal may have open besides connections.
const besides = 1024

// maxConnections is how many connections there may be, so that outputs and journal can always open
// theirs: what the limit of the process leaves beyond these, and half of it at least. 0: any
// number.
func maxConnections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > 1<<30 {
		return 0
	}
	count := int(limit.Cur)
	return max(count-besides, count/2, 1)
}
