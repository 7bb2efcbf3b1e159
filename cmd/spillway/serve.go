// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/alecthomas/kong"

	"github.com/spillwaylog/spillway/cmd/internal/admin"
	"github.com/spillwaylog/spillway/cmd/internal/config"
	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/urls"
)

const (
	minJournal  = 256 << 10 // the least that package journal works with
	minMaxEvent = 64 << 10  // a server of package forward has no less
)

type serveCmd struct {
	Config        string        `short:"c" config:"-" help:"File of YAML that says all of this, and more; flags override it (docs/config.md)." placeholder:"FILE" type:"existingfile"`
	Listen        []string      `config:"-" help:"Input to listen on, such as forward://0.0.0.0:24224, forward+unix:///run/spillway.sock, or forward+tls://0.0.0.0:24224?cert=PEM&key=PEM; or of lines: lines://0.0.0.0:5170, lines+unix:///run/lines.sock, stdin:; or rings of dead processes: ring:///dev/shm; or of syslog: syslog+udp://0.0.0.0:514, syslog+tcp://, syslog+tls://, syslog+unix:///path; NAME= may stand before it. May be repeated. Default: forward://127.0.0.1:24224" placeholder:"URL" sep:"none"`
	To            []string      `config:"-" help:"Output to write to: stdout:, discard:, forward://host:port, kafka://broker/topic, or file:///var/log/{tag}.{date}.jsonl with {tag}, {date}, {hour}, {host}, {pid}; NAME= may stand before it. May be repeated. Default: stdout:" placeholder:"URL" sep:"none"`
	Admin         string        `config:"end" help:"Address that tells of all this over HTTP, such as 127.0.0.1:24220: /metrics, /healthz, /readyz, /status, /config, /tail, and POST /reload; top and tail ask there. Or a URL with cert=, key=, client_ca=, token_file= and others; see docs/operate.md." placeholder:"ADDRESS"`
	Data          string        `help:"Data directory, used by one process at a time." default:"spillway-data" type:"path"`
	Ack           string        `help:"What an ack promises: synced (on the disk), journaled (survives this process), delivered (all outputs have it)." enum:"synced,journaled,delivered" default:"synced"`
	JournalSize   size          `help:"Disk space for the journal; when it is full, senders wait." default:"4GiB"`
	LettersSize   size          `help:"Disk space for dead letters, which are what an output refuses for good." default:"256MiB"`
	LettersFull   string        `help:"What an output does that refuses more: wait, or drop_oldest, which counts the oldest dead letters as lost." enum:"wait,drop_oldest" default:"wait"`
	MaxChunk      size          `help:"Largest message accepted, as it travels." default:"64MiB"`
	MaxUnpacked   size          `help:"Largest chunk accepted, after decompression." default:"256MiB"`
	MaxEvent      size          `help:"Largest event, as MessagePack; a larger one is set aside as a dead letter, and the rest of its chunk stored; at least 64KiB." default:"8MiB"`
	Memory        size          `help:"What all connections together may buffer." default:"64MiB"`
	StatusEvery   time.Duration `help:"How often a line says what goes on; 0 for never. On a terminal one line stays up to date instead." default:"1m"`
	RemovedDrain  time.Duration `help:"How long an output that a reload removes delivers what waits for it, before its place is kept, and an input finishes what has come; 0: the default." default:"10s"`
	RefuseInvalid bool          `help:"Refuse a chunk that has an invalid entry, instead of leaving the entry out."`
	logFlags
}

// Help tells what does not fit behind a flag.
func (c *serveCmd) Help() string { return inputHelp }

// inputHelp is about the settings of inputs and outputs; docs/security.md and docs/lines.md have
// the whole of it.
const inputHelp = `Settings of an input or output are parameters of its URL, put in quotes for the shell: 'forward+tls://0.0.0.0:24224?cert=server.pem&key=server.key'

TLS (forward+tls://, syslog+tls://): cert=, key= name the server's certificate and key; client_ca= those who vouch for clients, client_auth=none, request or require.

Lines (lines://, lines+unix://, stdin:): an event a line. parse=text, json or logfmt; tag= is the tag; time_key=, time_format= and tag_key= say where a line has time and tag; max_line= (64KiB) is where a longer line is cut, and marked; address_key= adds the sender's address. When every input has ended, as stdin: does, all of it is delivered and serve exits.

Rings (ring:///dev/shm): what killed processes of the logger left in shared memory, and in their spill folders. after= (5s) is for how long they must have been dead, any=true takes what is for files and streams as well, max_ring= (64MiB) is the largest that is taken.

Syslog (syslog+udp://, syslog+tcp://, syslog+tls://, syslog+unix://): tag= is a template with {facility}, {severity}, {host} and {app}; zone= is that of times that say none; max_message= (64KiB), receive_buffer=, type=dgram or stream, and others; see docs/syslog.md.

Shared keys and users (inputs of Forward): shared_key_file= or shared_key_env= say where the key stands; users_file= has a line name:password for each user; clients_file= has rules such as "host=web1 key_file=web1.key users=web", the first that fits decides, and anonymous=false refuses clients that none fits; hostname= is the name of this server; keepalive=false asks for a connection a message; empty_key=true is a handshake with an empty key.

Tags and sources (inputs of Forward): tag= replaces the tag, tag_prefix= stands before it; address_key=, host_key=, subject_key=, user_key= name the keys under which a record gets its sender's address, host name, certificate's subject and user.

Outputs to other collectors (forward://, forward+tls://, forward+unix://) take what a logger's destination takes: several hosts, compress=, window=, ack=, TLS and keys; see docs/logger.md and docs/security.md.

Kafka (kafka://b1:9092,b2/topic): key={user.id} is a template of the record's key, header=app:{app|none} of a header, and the topic may be one, as in logs.{tag[0]}, with topics=logs.* for those that there may be; value=json or msgpack, timestamp=now or event, acks=, partitioner=, compress=, linger=, batch_bytes=, create=, exactly_once=true for transactions, tls=, sasl= and others; see docs/kafka.md.

Outputs (file:, stdout:): format=text with flags= is for people; file: has max_size=, every=, keep=, max_age=, max_total= and compress=gzip or zstd for rotation, and for files of ended processes ({pid}) and days past ({date}). time_key= and tag_key= are the keys of time and tag in a line, - leaves them out; time_format= is rfc3339, unix, unix_ms, unix_us, unix_ns or a layout of Go. A key of the record that is one of them gets underscores: time_.

Files are read again when they change, and at once on SIGHUP. Connections whose key, user or certificate is good no more are ended; a new file that is broken leaves the old one in force. SIGHUP reads the file of -c again, too: inputs and outputs come, go and change, and the others go on; see docs/operate.md.`

// Run serves until ctx ends, which a signal does. SIGHUP reads file and credentials again.
func (c *serveCmd) Run(ctx context.Context, s *streams, k *kong.Context) error {
	set, err := c.setUp(flagsOf(k))
	if err != nil {
		return err
	}
	c = &set.serve
	defer surviveBrokenPipes()() // until the last message is written
	screen := openTerminal(s.err)
	out, stderr := screen.through(s.out), newOutbox(screen.through(s.err), screen, func(w io.Writer, leftOut int) {
		codes.MessagesUnread.Warn(c.logger(w), "nobody read standard error", "left_out", leftOut)
	})
	defer stderr.close()
	reload := &reloader{}
	reload.set.Store(set)
	log := c.hiding(stderr, reload.hideFiles)
	if c.JournalSize < c.MaxChunk {
		codes.JournalSmall.Warn(log, "the journal is smaller than the largest message: what does not fit can never be stored, and its sender gets no ack",
			"journal_size", int64(c.JournalSize), "max_chunk", int64(c.MaxChunk))
	}
	// Before the collector is opened, which takes its time after a crash: whatever comes meanwhile
	// must not end the process.
	signals, stopSignals := hangups()
	defer stopSignals()
	asked, stopAsking := asking()
	defer stopAsking()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	o := &set.collector
	o.Log, o.Stdin, o.Stdout = log, s.in, &pipe{w: out, gone: end}
	tells, err := set.admin.Listen(log) // first: it is soon known whether the address is free
	if err != nil {
		return err
	}
	defer tells.Close()
	o.Synced = tells.Synced
	col, err := collector.Open(o)
	if err != nil {
		return err
	}
	defer keepMemory(o.Memory)()
	reload.collector, reload.tells, reload.log = col, tells, log
	defer reload.on(signals)()
	c.introduce(col, log)
	tells.Serve(&admin.Hooks{
		Version: version(), Stats: col.Stats, Status: reload.status(time.Now()), Config: reload.inForce,
		Reload: reload.reload, Tail: col.Tail,
	})
	text := screen != nil && c.LogFormat == "text"
	w := &watch{collector: col, log: log, show: reload.hideFiles, stderr: stderr, table: text, live: text &&
		c.StatusEvery > 0 && screen.draws(), every: c.StatusEvery}
	err = w.run(ctx, asked)
	if cause := context.Cause(ctx); errors.Is(cause, errNobodyReads) {
		err = errors.Join(cause, err)
	}
	return err
}

// acks says what an ack promises.
var acks = map[string]string{
	"journaled": "the events outlive this process, not a power cut",
	"synced":    "the events are on the disk",
	"delivered": "every output has confirmed the events",
}

// introduce says what is being served. The collector itself says where it listens.
func (c *serveCmd) introduce(col *collector.Collector, log *slog.Logger) {
	stats := col.Stats()
	codes.Starting.Info(log, "spillway", "version", version(), "go", runtime.Version(), "platform",
		runtime.GOOS+"/"+runtime.GOARCH, "pid", os.Getpid())
	codes.Keeping.Info(log, "keeping", "data", c.Data, "journal_used", stats.Journal.Used, "journal_limit",
		stats.Journal.MaxBytes)
	for i := range stats.Outputs {
		if o := &stats.Outputs[i]; o.Name != o.URL {
			codes.Writing.Info(log, "writing", "output", o.Name, "url", o.URL)
		} else {
			codes.Writing.Info(log, "writing", "url", o.URL)
		}
	}
	codes.Acking.Info(log, "acking", "ack", c.Ack, "means", acks[c.Ack])
	codes.Hints.Info(log, "to see more", "connections", "--log-level debug", "account", askFor(), "journal",
		"spillway journal ls "+c.Data)
}

// Validate is called with the flags set.
func (c *serveCmd) Validate() error {
	if wrong := c.limits(); len(wrong) > 0 {
		return wrong[0]
	}
	return nil
}

// limits says which settings are too little, or nothing.
func (c *serveCmd) limits() (wrong []*config.KeyError) {
	least := func(key string, given bool, format string, args ...any) {
		if given {
			wrong = append(wrong, &config.KeyError{Key: key, Err: fmt.Errorf(format, args...)})
		}
	}
	least("data", c.Data == "", "it is empty; it names the data directory")
	least("removed_drain", c.RemovedDrain < 0, "%v lies in the past", c.RemovedDrain)
	least("status_every", c.StatusEvery < 0, "%v lies in the past", c.StatusEvery)
	least("memory", c.Memory != 0 && c.Memory < minMemory,
		"%d bytes are too few, half-sent messages of some clients would hold up others; at least %d MiB", c.Memory,
		minMemory>>20)
	least("max_event", c.MaxEvent != 0 && c.MaxEvent < minMaxEvent, "%d bytes are too few; at least %d KiB",
		c.MaxEvent, minMaxEvent>>10)
	least("letters_size", c.LettersSize != 0 && c.LettersSize < minJournal, "%d bytes are too few; at least %d KiB",
		c.LettersSize, minJournal>>10)
	least("journal_size", c.JournalSize != 0 && c.JournalSize < minJournal, "%d bytes are too few; at least %d KiB",
		c.JournalSize, minJournal>>10)
	return wrong
}

// minMemory is the least with which small messages do not wait for half-sent large ones.
const minMemory = 16 << 20

// size is a flag such as 64MiB.
type size int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *size) UnmarshalText(text []byte) error {
	n, err := urls.ParseSize(string(text))
	*v = size(n)
	return err
}
