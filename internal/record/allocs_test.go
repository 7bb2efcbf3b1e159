// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// info is how a logger takes attributes: the slice that the call makes must stay on its stack.
func info(buf []byte, attrs ...slog.Attr) int {
	buf, n := AppendAttrs(buf, attrs)
	return len(buf) + n
}

func infoReplaced(buf []byte, attrs ...slog.Attr) int {
	buf, n := AppendAttrsReplaced(buf, nil, attrs, func(_ []string, a slog.Attr) slog.Attr { return a })
	return len(buf) + n
}

func TestAllocs(t *testing.T) {
	if raceEnabled {
		needs.Skip(t, "the race detector makes pools forget")
	}
	buf := make([]byte, 0, 16<<10)
	at := time.Now()
	text := strings.Repeat("x", 100)
	err := errors.New("wrong")
	record := func(v any) func() {
		return func() { _, _ = AppendMap(buf, v) }
	}
	nested := map[string]any{"a": map[string]any{
		"b": []any{1, "x", map[string]string{"c": "d"}}, "e": []string{"f"},
		"g": at,
	}, "d": time.Second, "err": err}
	type inner struct {
		At   time.Time
		Tags []string
		Left *inner
	}
	type outer struct {
		inner
		Name  string `log:",omitempty"`
		Any   any
		Err   error
		Bytes []byte
		Many  map[string]int64
		Named fields
		Other map[int]string
	}
	big := &outer{
		inner{at, []string{"a", "b"}, &inner{}},
		"n", 5, err, []byte("abc"),
		map[string]int64{"a": 1},
		fields{"x": 1},
		map[int]string{1: "a", 2: "b"},
	}
	for name, f := range map[string]func(){
		"26 fields":   record(&anAccess),
		"26 by value": record(anAccess),
		"26 keys":     record(anAccess.asMap()),
		"count":       record(map[string]any{"count": 17}),
		"strings":     record(map[string]string{"a": "b"}),
		"named":       record(fields{"a": 1, "b": text}),
		"nested":      record(nested),
		"ints":        record(map[string]int{"a": 1, "b": 300}),
		"attrs": func() {
			info(buf, slog.String("a", text), slog.Int("b", 1), slog.Time("t", at), slog.Duration("d", 5),
				slog.Bool("x", true))
		},
		"one attr":   func() { AppendAttr(buf, slog.Float64("f", 1.5)) },
		"error":      func() { info(buf, slog.Any("err", err)) },
		"any":        func() { info(buf, slog.Any("m", nested), slog.Any("s", &anAccess)) },
		"log valuer": func() { info(buf, slog.Any("u", secretOne)) },
		"replaced":   func() { infoReplaced(buf, slog.String("a", text), slog.Int("b", 1), slog.Any("e", err)) },
		"pointer":    func() { AppendValue(buf, big) },
		"scalars":    func() { AppendValue(buf, someScalars) },
	} {
		f()
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

var (
	secretOne   any = secretPointer{}
	someScalars any = []any{1, 2.5, "x", nil, true}
)

type secretPointer struct{}

func (secretPointer) LogValue() slog.Value { return slog.StringValue("***") }

// The first use of a type by many at once, types that know each other among them.
func TestConcurrentPlans(t *testing.T) {
	var values []any
	for seed := range uint64(60) {
		values = append(values, newMaker(seed+1e6).value(3).Interface())
	}
	values = append(values, &node{Name: "a", Next: &node{}}, netip.Addr{}, &user{Name: "x"}, reflect.TypeFor[node]())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range values {
				v := values[(i+g*7)%len(values)]
				if len(AppendValue(nil, v)) == 0 {
					t.Error("nothing")
				}
			}
		})
	}
	wg.Wait()
	for _, v := range values {
		asJSON(t, AppendValue(nil, v))
	}
}
