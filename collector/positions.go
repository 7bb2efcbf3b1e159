// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

// How this file is organised. A position says where the source of an input stands. It comes with
// chunks and is stored in the record of the last of them, as one more key of the record's option
// map, so a crash leaves both or neither. A cursor of the journal keeps what the records before it
// said last, by input; what the records behind it say is read when the collector is opened.
//
//	journal ───[a:1]──[b:1]──[a:2]────┬───[a:3]──[ ]──[b:2]──►
//	                             the cursor: a:2 b:1
//
// The cursor may keep more than the records before it say (a:3 just then): reading on comes to
// the same in the end. So it stands where the journal was durable when the positions were
// collected, but before every record that is being appended and is not noted yet.

// positionsCursor exists while inputs store positions; it would hold the journal otherwise.
const positionsCursor = "positions"

// positions are those of all inputs.
type positions struct {
	journal *journal.Journal
	report  func(error)
	every   time.Duration // between two commits

	mu      sync.Mutex
	marks   map[string]*bookmark // by the key of the input
	reader  *journal.Reader      // nil until there is a position
	changed bool                 // since the last commit
	at      journal.Position     // of the last commit
}

// A bookmark is where the source of one input stands. All but found is guarded by all.mu.
type bookmark struct {
	all   *positions
	key   string
	found []byte        // when the input was opened
	turn  chan struct{} // full: a group with a position is being stored

	position  []byte           // noted last
	end       journal.Position // of its record
	appending bool             // a record with a position
	floor     journal.Position // the record that is being appended will lie behind it
}

// openPositions reads what was stored by the inputs with these keys. given up are those of inputs
// that there are no more.
func openPositions(j *journal.Journal, keys []string, report func(error)) (p *positions, givenUp []string, err error) {
	p = &positions{journal: j, report: report, every: positionsEvery, marks: map[string]*bookmark{}}
	for _, key := range keys {
		p.marks[key] = &bookmark{all: p, key: key, turn: make(chan struct{}, 1)}
	}
	if !slices.Contains(j.Cursors(), positionsCursor) {
		return p, nil, nil
	}
	if err := p.open(); err != nil {
		return nil, nil, err
	}
	stored, err := p.read()
	if err != nil {
		return nil, nil, errors.Join(err, p.close())
	}
	used := false
	for key, position := range stored {
		if b := p.marks[key]; b != nil {
			b.position, b.found, used = position, slices.Clone(position), true
		} else {
			givenUp = append(givenUp, key)
		}
	}
	slices.Sort(givenUp)
	if !used { // until an input stores one
		err = p.close()
	}
	return p, givenUp, err
}

// settle forgets the positions of inputs that there are no more, now that nothing can fail any
// more: a start that comes to nothing costs no input its position. A cursor without positions would
// hold the journal until that is full.
func (p *positions) settle() error {
	if p.reader != nil {
		p.changed = true
		return p.save(context.Background())
	}
	if !slices.Contains(p.journal.Cursors(), positionsCursor) {
		return nil
	}
	return p.journal.RemoveCursor(positionsCursor)
}

// of is the bookmark of an input that is opened; nil for one that has no key. One that was there
// before goes on where it stood.
func (p *positions) of(key string) *bookmark {
	if key == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.marks[key]
	if b == nil {
		b = &bookmark{all: p, key: key, turn: make(chan struct{}, 1)}
		p.marks[key] = b
	}
	b.found = slices.Clone(b.position)
	return b
}

func (p *positions) open() (err error) {
	p.reader, err = p.journal.Reader(positionsCursor)
	return err
}

// read returns what cursor and records say. A state that cannot be read is told; the records that
// there are have to do then.
func (p *positions) read() (map[string][]byte, error) {
	_, state := p.reader.Committed()
	stored, err := parsePositions(state)
	if err != nil {
		p.report(fmt.Errorf("where inputs stand: %w; what the journal still holds says it", err))
		if err := errors.Join(p.reader.Close(), p.journal.PlaceCursor(positionsCursor, 0, nil), p.open()); err != nil {
			return nil, err
		}
	}
	return stored, replay(p.reader.TryNext, func(rec journal.Record) {
		if key, position, ok := positionIn(rec.Data); ok {
			stored[key] = slices.Clone(position)
		}
	})
}

// hold makes the cursor, before the first record with a position is appended.
func (p *positions) hold() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader != nil {
		return nil
	}
	at := p.journal.Synced()
	if err := p.journal.PlaceCursor(positionsCursor, at, appendPositions(nil, p.marks)); err != nil {
		return err
	}
	if err := p.open(); err != nil {
		return err
	}
	p.at = at
	return nil
}

// begin notes that a record with a position is about to be appended, or still is.
func (b *bookmark) begin() {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.appending, b.floor = true, b.all.journal.Synced()
}

// note notes a position; end is where its record ends, if it has one.
func (b *bookmark) note(position []byte, end journal.Position) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.appending = false
	if b.position == nil {
		b.position = []byte{} // which is a position
	}
	b.position, b.end = append(b.position[:0], position...), max(b.end, end)
	b.all.changed = true
}

// giveUp notes that the record was not appended.
func (b *bookmark) giveUp() {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.appending = false
}

// save commits what is new, and moves the cursor on from a segment that it would hold.
func (p *positions) save(ctx context.Context) error {
	reader, at, last, state := p.collect()
	if reader == nil {
		return nil
	}
	err := p.journal.Sync(ctx, last) // or a power cut could take what the state says is stored
	if err == nil {
		err = reader.SkipTo(at)
	}
	if err == nil {
		err = reader.Commit(at, state)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.changed = true
		return err
	}
	p.at = at
	return nil
}

// committed is from where on positions need the journal.
func (p *positions) committed() journal.Position {
	p.mu.Lock()
	reader := p.reader
	p.mu.Unlock()
	if reader == nil {
		return p.journal.Synced()
	}
	at, _ := reader.Committed()
	return at
}

// collect returns what is to be committed, and where: state is right once the journal is durable up
// to last. There is no reader if nothing is to be committed.
func (p *positions) collect() (reader *journal.Reader, at, last journal.Position, state []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.journal.Synced()
	for _, b := range p.marks {
		if b.appending {
			at = min(at, b.floor)
		}
		last = max(last, b.end)
	}
	if p.reader == nil || !p.changed && at>>32 == p.at>>32 {
		return nil, 0, 0, nil
	}
	p.changed = false
	return p.reader, at, last, appendPositions(nil, p.marks)
}

const (
	positionsEvery = time.Second
	positionsWait  = 5 * time.Second // for the journal to be synced
)

// run saves once a second until ctx is done, and once more then.
func (p *positions) run(ctx context.Context) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		wait, cancel := context.WithTimeout(context.Background(), positionsWait)
		if err := p.save(wait); err != nil {
			p.report(fmt.Errorf("where inputs stand: %w; the journal has it", err))
		}
		cancel()
	}
}

func (p *positions) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader == nil {
		return nil
	}
	err := p.reader.Close()
	p.reader = nil
	return err
}

// The state of the cursor and the value of the key, in MessagePack:
//
//	state   [1, {key of an input: position as bin, …}]
//	value   [key of an input, position as bin]
const positionsVersion = 1

func appendPositions(dst []byte, marks map[string]*bookmark) []byte {
	dst = msgpack.AppendArrayHeader(dst, 2)
	dst = msgpack.AppendInt(dst, positionsVersion)
	n := 0
	for _, b := range marks {
		if b.position != nil {
			n++
		}
	}
	dst = msgpack.AppendMapHeader(dst, n)
	for key, b := range marks {
		if b.position != nil {
			dst = msgpack.AppendString(dst, key)
			dst = msgpack.AppendBin(dst, b.position)
		}
	}
	return dst
}

var errPositions = errors.New("this is no state of the cursor of positions")

// parsePositions reads a state; the map is never nil.
func parsePositions(state []byte) (map[string][]byte, error) {
	stored := map[string][]byte{}
	if len(state) == 0 { // before the first commit
		return stored, nil
	}
	none := func() (map[string][]byte, error) { return map[string][]byte{}, errPositions }
	n, ok := header(state, msgpack.KindArray, 2)
	if !ok {
		return none()
	}
	version, k, err := msgpack.ReadToken(state[n:])
	if v, ok := version.Int(); err != nil || !ok || v != positionsVersion {
		return none()
	}
	n += k
	t, k, err := msgpack.ReadToken(state[n:])
	if err != nil || t.Kind != msgpack.KindMap {
		return none()
	}
	n += k
	for range t.Len {
		key, position, k, ok := pair(state[n:])
		if !ok {
			return none()
		}
		stored[string(key)] = slices.Clone(position)
		n += k
	}
	if n != len(state) {
		return none()
	}
	return stored, nil
}
