// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"os"

	"github.com/phuslu/log"
)

type phuslu struct {
	lossless
	closers
	log log.Logger
}

func openPhuslu(path string) (Local, error) {
	w, err := target(path)
	if err != nil {
		return nil, err
	}
	return &phuslu{
		closers: closers{w.Close},
		log:     log.Logger{Level: log.InfoLevel, Writer: log.IOWriter{Writer: w}},
	}, nil
}

// openPhusluAsync is the author's fastest setting for a file: writev of what the channel holds.
func openPhusluAsync(path string) (Local, error) {
	async := &log.AsyncWriter{ChannelSize: 4096}
	if path == "" {
		async.Writer = log.IOWriter{Writer: nothing{}}
	} else {
		file, err := openPhusluFile(path)
		if err != nil {
			return nil, err
		}
		async.Writer = file
	}
	return &phuslu{closers: closers{async.Close}, log: log.Logger{Level: log.InfoLevel, Writer: async}}, nil
}

// openPhusluFile opens the file now, as the others do, and not with the first line; and it waits
// for the goroutine that then links path to the file, which could otherwise come after the end of a
// short run.
func openPhusluFile(path string) (*log.FileWriter, error) {
	linked := make(chan struct{})
	file := &log.FileWriter{
		Filename: path,
		Cleaner:  func(string, int, []os.FileInfo) { close(linked) },
	}
	if err := file.Rotate(); err != nil {
		return nil, err
	}
	<-linked
	return file, nil
}

func (p *phuslu) Ten(r *Request) {
	p.log.Info().Str("method", r.Method).Str("path", r.Path).Int("status", r.Status).Int64("bytes", r.Bytes).Dur("took",
		r.Took).
		Str("remote", r.Remote).Str("agent", r.Agent).Str("id", r.ID).Int64("user", r.User).Bool("cached",
		r.Cached).Msg(TheMessage)
}

func (p *phuslu) One(n int) { p.log.Info().Int("id", n).Msg(OneMessage) }

func (p *phuslu) Line(text string) { p.log.Info().Msg(text) }
