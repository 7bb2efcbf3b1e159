// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/urls"
)

type serveCmd struct {
	Listen        []string `help:"Input to listen on, such as forward://0.0.0.0:24224 or forward+unix:///run/spillway.sock. May be repeated. Default: forward://127.0.0.1:24224" placeholder:"URL" sep:"none"`
	To            []string `help:"Output to write to: stdout:, discard:, or file:///var/log/{tag}.{date}.jsonl with {tag}, {date}, {hour}, {host}, {pid}. May be repeated. Default: stdout:" placeholder:"URL" sep:"none"`
	Data          string   `help:"Data directory, used by one process at a time." default:"spillway-data" type:"path"`
	Ack           string   `help:"What an ack promises: synced (on the disk), journaled (survives this process), delivered (all outputs have it)." enum:"synced,journaled,delivered" default:"synced"`
	JournalSize   size     `help:"Disk space for the journal; when it is full, senders wait." default:"4GiB"`
	MaxChunk      size     `help:"Largest message accepted, as it travels." default:"64MiB"`
	MaxUnpacked   size     `help:"Largest chunk accepted, after decompression." default:"256MiB"`
	Memory        size     `help:"What all connections together may buffer." default:"512MiB"`
	RefuseInvalid bool     `help:"Refuse a chunk that has an invalid entry, instead of leaving the entry out."`
}

// Run serves until ctx ends, which a signal does.
func (c *serveCmd) Run(ctx context.Context, s *streams) error {
	log := slog.New(slog.NewTextHandler(s.err, nil))
	o := &collector.Options{
		Listen:        c.Listen,
		To:            c.To,
		Dir:           c.Data,
		Ack:           collector.Ack(c.Ack),
		JournalBytes:  int64(c.JournalSize),
		MaxChunk:      int64(c.MaxChunk),
		MaxUnpacked:   int64(c.MaxUnpacked),
		Memory:        int64(c.Memory),
		RefuseInvalid: c.RefuseInvalid,
		Log:           log,
		Stdout:        s.out,
	}
	col, err := collector.Open(o)
	if err != nil {
		return err
	}
	return col.Run(ctx)
}

// size is a flag such as 64MiB.
type size int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *size) UnmarshalText(text []byte) error {
	n, err := urls.ParseSize(string(text))
	*v = size(n)
	return err
}
