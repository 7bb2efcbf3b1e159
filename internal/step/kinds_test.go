// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/msgpack"
)

const hashKey = "0123456789abcdef"

// hashed is what hash makes of a text.
func hashed(text string) string {
	m := hmac.New(sha256.New, []byte(hashKey))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// manyPairs are n pairs of JSON.
func manyPairs(n int) string {
	pairs := make([]string, n)
	for i := range pairs {
		pairs[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	return strings.Join(pairs, ",")
}

// TestKinds has steps of more than a line change an event: nothing but what they say.
func TestKinds(t *testing.T) {
	parse := func(p Parse) []Step { return []Step{{Parse: &p}} }
	for _, tt := range []struct {
		record string
		do     []Step
		want   string
	}{
		{
			`{"a":"x","b":{"c":7,"d":"7"},"n":null,"l":[1]}`,
			[]Step{{Hash: &Hash{Fields: []string{"a", "b.c", "b.d", "n", "l", "no"}, Key: hashKey}}},
			fmt.Sprintf(`{"a":%q,"b":{"c":%q,"d":%q},"n":null,"l":%q}`, hashed("x"), hashed("7"), hashed("7"),
				hashed("[1]")),
		},

		{
			`{"a":{"b":1,"c":{"d":2,"e":{}}},"x":{"y":3},"z":4}`,
			[]Step{{Flatten: &Flatten{}}},
			`{"z":4,"a.b":1,"a.c.d":2,"a.c.e":{},"x.y":3}`,
		},
		{
			`{"a":{"b":1,"c":{"d":2}},"x":{"y":3},"a_b":0}`,
			[]Step{{Flatten: &Flatten{Fields: []string{"a", "no"}, Separator: "_"}}},
			`{"x":{"y":3},"a_b":1,"a_c_d":2}`,
		},
		{`{"a":[{"b":1}],"e":{}}`, []Step{{Flatten: &Flatten{}}}, `{"a":[{"b":1}],"e":{}}`},

		{
			`{"a":1,"b":2,"c":3}`,
			[]Step{{Nest: &Nest{Fields: []string{"c", "a", "no"}, Under: "m"}}},
			`{"b":2,"m":{"a":1,"c":3}}`,
		},
		{
			`{"http_a":1,"m":{"x":0},"http_b":2,"http":3}`,
			[]Step{{Nest: &Nest{Prefix: "http_", Under: "m"}}},
			`{"m":{"x":0,"a":1,"b":2},"http":3}`,
		},
		{`{"a":1}`, []Step{{Nest: &Nest{Fields: []string{"b"}, Under: "m"}}}, `{"a":1}`},
		{
			`{"u_id":1,"u":{"id":2,"x":3},"u_y":4,"u_y":5}`,
			[]Step{{Nest: &Nest{Prefix: "u_", Under: "u"}}},
			`{"u":{"id":1,"x":3,"y":5}}`,
		},
		{
			`{"u_id":1,"u":{` + manyPairs(20) + `,"id":2},"u_k3":4}`,
			[]Step{{Nest: &Nest{Prefix: "u_", Under: "u"}}},
			`{"u":{` + strings.Replace(manyPairs(20), `"k3":3`, `"k3":4`, 1) + `,"id":1}}`,
		},
		{`{"a":{"b.c":1,"b":{"c":2}}}`, []Step{{Flatten: &Flatten{}}}, `{"a.b.c":2}`},
		{
			`{"a":{` + manyPairs(20) + `,"k3":{"x":1},"k3.x":2,"k3":4}}`,
			[]Step{{Flatten: &Flatten{}}},
			`{` + strings.Replace(strings.ReplaceAll(manyPairs(20), `"k`, `"a.k`), `k3":3`, `k3":4`, 1) +
				`,"a.k3.x":2}`,
		},
		{
			`{"a":1,"m":2}`,
			[]Step{{Nest: &Nest{Fields: []string{"a"}, Under: "m"}}},
			`{"a":1,"m":2,"spillway_error":"nest: m: what it leads through is no map"}`,
		},

		{
			`{"m":"{\"a\":1,\"level\":{\"x\":[2.5]}} ","level":"I","z":0}`, parse(Parse{Field: "m", As: "json"}),
			`{"level":{"x":[2.5]},"z":0,"a":1}`,
		},
		{`{"m":"{\"a\":1}"}`, parse(Parse{Field: "m", As: "json", Keep: true}), `{"m":"{\"a\":1}","a":1}`},
		{`{"m":"{\"m\":1}"}`, parse(Parse{Field: "m", As: "json", Keep: true}), `{"m":1}`},
		{`{"m":"{\"m\":1}"}`, parse(Parse{Field: "m", As: "json"}), `{"m":1}`},
		{`{"o":{"m":"{\"a\":1}"}}`, parse(Parse{Field: "o.m", As: "json", Into: "p.q"}), `{"o":{},"p":{"q":{"a":1}}}`},
		{
			`{"m":"{\"a\":1,\"b\":2}","p":{"a":0,"x":3}}`, parse(Parse{Field: "m", As: "json", Into: "p"}),
			`{"p":{"a":1,"x":3,"b":2}}`,
		},
		{
			`{"m":"[1]"}`, parse(Parse{Field: "m", As: "json"}),
			`{"m":"[1]","spillway_error":"parse: m: it is no JSON object"}`,
		},
		{
			`{"m":"{} x"}`, parse(Parse{Field: "m", As: "json"}),
			`{"m":"{} x","spillway_error":"parse: m: it is no JSON object"}`,
		},
		{`{"m":5}`, parse(Parse{Field: "m", As: "json"}), `{"m":5,"spillway_error":"parse: m: it is no text"}`},
		{`{"n":5}`, parse(Parse{Field: "m", As: "json"}), `{"n":5}`},

		{
			`{"m":"level=warn took=12ms msg=\"order \\\"7\\\" placed\" debug"}`, parse(Parse{Field: "m", As: "logfmt"}),
			`{"level":"warn","took":"12ms","msg":"order \"7\" placed","debug":true}`,
		},
		{
			`{"m":"no pairs"}`, parse(Parse{Field: "m", As: "logfmt", Into: "x"}),
			`{"m":"no pairs","spillway_error":"parse: m: it is no logfmt"}`,
		},

		{
			`{"m":"GET /x 200"}`, parse(Parse{
				Field: "m", As: "regexp",
				Pattern: `^(?P<method>[A-Z]+) (?P<path>\S+) (?P<status>\d+)( (?P<bytes>\d+))?$`,
			}),
			`{"method":"GET","path":"/x","status":"200"}`,
		},
		{
			`{"m":"?"}`, parse(Parse{Field: "m", As: "regexp", Pattern: `(?P<a>x)`}),
			`{"m":"?","spillway_error":"parse: m: the expression does not match"}`,
		},

		{
			`{"m":"my card 4111 1111 1111 1111, not 4111 1111 1111 1112; from 192.0.2.7:80 and 2001:db8::1. a@example.org","t":"12:30:45","l":["x@y.z",{"k":"Bearer abcdefgh12"}],"n":4111111111111111}`,
			[]Step{{Redact: &Redact{}}},
			`{"m":"my card ***, not 4111 1111 1111 1112; from ***:80 and ***. ***","t":"12:30:45","l":["***",{"k":"Bearer ***"}],"n":4111111111111111}`,
		},
		{
			`{"m":"4111111111111111 12/26, 2026-11-25 4111-1111-1111-1111 17; 12 4111 1111 11111112, 4111111111111111111111111"}`,
			[]Step{{Redact: &Redact{Patterns: []string{"card"}}}},
			`{"m":"*** 12/26, 2026-11-25 *** 17; 12 4111 1111 11111112, 4111111111111111111111111"}`,
		},
		{
			`{"m":"client:192.0.2.7 tcp:10.0.0.1:80 src:10.0.0.2, remote:2001:db8::1 80:10.0.0.3 10.0.0.4:ssh 10.0.0.5:http .10.0.0.6 x.10.0.0.7"}`,
			[]Step{{Redact: &Redact{Patterns: []string{"ip"}}}},
			`{"m":"client:*** tcp:***:80 src:***, remote:*** 80:*** ***:ssh ***:http .*** x.***"}`,
		},
		{
			`{"m":"1.2.3.4.5 v1.2.3.4 1.2.3.4x std::dead abc::def::x 12:30:45 00:1a:2b:3c:4d:5e 0a:1b:2c:3d:4e:5f:60:71:82:93"}`,
			[]Step{{Redact: &Redact{Patterns: []string{"ip"}}}},
			`{"m":"1.2.3.4.5 v1.2.3.4 1.2.3.4x std::dead abc::def::x 12:30:45 00:1a:2b:3c:4d:5e 0a:1b:2c:3d:4e:5f:60:71:82:93"}`,
		},
		{
			`{"m":"a@example.org 192.0.2.7","x":"a@example.org","d":{"e":"a@b.c"}}`,
			[]Step{{Redact: &Redact{Fields: []string{"m", "d.e"}, Patterns: []string{"email"}}}},
			`{"m":"*** 192.0.2.7","x":"a@example.org","d":{"e":"***"}}`,
		},
		{
			`{"m":"order 17 of ab-123 a@b.c"}`,
			[]Step{{Redact: &Redact{Also: []string{`order (\d+)`, `[a-z]{2}-\d+`}}}},
			`{"m":"order *** of *** a@b.c"}`,
		},
		{
			`{"m":"password=hunter2&x=1 token: \"abc\" eyJhbGciOiJIUzI1.eyJzdWIi.sig AKIAIOSFODNN7EXAMPLE"}`,
			[]Step{{Redact: &Redact{Patterns: []string{"token"}}}},
			`{"m":"password=***&x=1 token: \"***\" *** ***"}`,
		},
		{
			`{"m":"access_token=abc DB_PASSWORD: def x-api-key='g h' password=\"a \\\" b\", client_secret = \"p;q\" tokens=5 token_count=7 secret=\"no end","j":"{\"refresh_token\":\"i j\",\"pwd\":\"\"}","b":"x BEARER abcdefgh Basic\nabcdefgh basically"}`,
			[]Step{{Redact: &Redact{Patterns: []string{"token"}}}},
			`{"m":"access_token=*** DB_PASSWORD: *** x-api-key='***' password=\"***\", client_secret = \"***\" tokens=5 token_count=7 secret=\"***","j":"{\"refresh_token\":\"***\",\"pwd\":\"\"}","b":"x BEARER *** Basic\n*** basically"}`,
		},
		{
			`{"m":"Authorization: Basic dTpw; proxy-AUTHORIZATION:bearer abc123","q":"authorization=Basic dTpw&x","j":"{\"Authorization\" : \"Bearer a\"} map[Authorization:[Basic dTpw]]","w":"basic usage, Basic auth; bearer of bad news; authorization: none, a basic rule","n":"authorization basic dTpw"}`,
			[]Step{{Redact: &Redact{Patterns: []string{"token"}}}},
			`{"m":"Authorization: Basic ***; proxy-AUTHORIZATION:bearer ***","q":"authorization=Basic ***&x","j":"{\"Authorization\" : \"Bearer ***\"} map[Authorization:[Basic ***]]","w":"basic usage, Basic auth; bearer of bad news; authorization: none, a basic rule","n":"authorization basic dTpw"}`,
		},
	} {
		for _, head := range [][]byte{plainHead, metaHead} {
			var got Sifted
			if err := sifterOf(t, "", tt.do...).Sift(&got, "t", entryOf(t, head, tt.record), 1, 0); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Join(linesOf(t, &got, head), "\n"); lines != "t "+tt.want {
				t.Errorf("%+v of %s:\n%s\nwant\n%s", tt.do, tt.record, lines, tt.want)
			}
		}
	}
}

// TestParseTime: an event has the time of a field, and what was beside the old one.
func TestParseTime(t *testing.T) {
	for _, tt := range []struct {
		record, format, want string
		bytes                []byte // of the time; nil: as it was
	}{
		{`{"t":"1970-01-01T00:00:02.000000003Z","a":1}`, "", `{"a":1}`, []byte{0, 0, 0, 2, 0, 0, 0, 3}},
		{`{"t":2.5,"a":1}`, "unix", `{"a":1}`, []byte{0, 0, 0, 2, 0x1d, 0xcd, 0x65, 0}},
		{`{"t":2500,"a":1}`, "unix_ms", `{"a":1}`, []byte{0, 0, 0, 2, 0x1d, 0xcd, 0x65, 0}},
		{`{"t":"1970-01-02 00:00:00","a":1}`, "2006-01-02 15:04:05", `{"a":1}`, []byte{0, 1, 0x51, 0x80, 0, 0, 0, 0}},
		{`{"t":"noon","a":1}`, "", `{"t":"noon","a":1,"spillway_error":"parse: t: it is no time of the format"}`, nil},
		{`{"t":[1]}`, "unix", `{"t":[1],"spillway_error":"parse: t: it is no time of the format"}`, nil},
		{`{"t":0}`, "unix", `{"t":0,"spillway_error":"parse: t: it is no time of the format"}`, nil},
		{`{"t":"2200-01-01T00:00:00Z"}`, "", `{"t":"2200-01-01T00:00:00Z","spillway_error":"parse: t: it is no time of the format"}`, nil},
	} {
		for _, head := range [][]byte{plainHead, metaHead, longHead} {
			var got Sifted
			s := sifterOf(t, "", Step{Parse: &Parse{Field: "t", As: "time", Format: tt.format}})
			if err := s.Sift(&got, "t", entryOf(t, head, tt.record), 1, 0); err != nil {
				t.Fatal(err)
			}
			if tt.bytes != nil {
				at := append([]byte{0xd7, 0}, tt.bytes...)
				switch {
				case bytes.Equal(head, longHead):
					head = append(bytes.Clone(longHead[:3]), at...)
				default:
					head = bytes.Replace(head, plainHead[1:], at, 1)
				}
			}
			if lines := strings.Join(linesOf(t, &got, head), "\n"); lines != "t "+tt.want {
				t.Errorf("%+v:\n%s\nwant\n%s", tt, lines, tt.want)
			}
		}
	}
}

// TestSample: about as many events as it says are kept, the same again and by each output, and by a
// field all with one value, or none.
func TestSample(t *testing.T) {
	var entries []byte
	const events = 10_000
	for i := range events {
		entries = append(entries, entryOf(t, plainHead, fmt.Sprintf(`{"i":%d,"k":"k%d"}`, i, i%100))...)
	}
	kept := func(s Sample) (out [][]byte, records string) {
		for range 2 {
			var got Sifted
			for _, at := range []uint64{7, 8} {
				if err := sifterOf(t, "", Step{Sample: &s}).Sift(&got, "t", entries, at, 0); err != nil {
					t.Fatal(err)
				}
				out = append(out, bytes.Clone(got.Entries))
			}
			records = strings.Join(linesOf(t, &got, plainHead), "\n")
		}
		return out, records
	}
	plain, records := kept(Sample{Share: 0.1})
	if n := strings.Count(records, "\n"); n < 850 || n > 1150 {
		t.Errorf("%d of %d events are kept", n, events)
	}
	if !bytes.Equal(plain[0], plain[2]) || bytes.Equal(plain[0], plain[1]) {
		t.Error("what is kept does not depend on the position, and on nothing else")
	}
	by, records := kept(Sample{Share: 0.5, By: "k"})
	if !bytes.Equal(by[0], by[1]) {
		t.Error("by a field it depends on the position")
	}
	for i := range 100 {
		if n := strings.Count(records, fmt.Sprintf(`"k%d"`, i)); n != 0 && n != events/100 {
			t.Errorf("%d of %d events with one value are kept", n, events/100)
		}
	}
}

// TestKindMistakes: what is wrong with a step is told with its place in it.
func TestKindMistakes(t *testing.T) {
	for want, s := range map[string]Step{
		"routes[0].do[0].hash: hash has no fields": {Hash: &Hash{Key: hashKey}},
		"routes[0].do[0].hash.key: the key of hash has at least 16": {Hash: &Hash{
			Fields: []string{"a"},
			Key:    "short",
		}},
		"routes[0].do[0].hash.fields[0]: a..b: a name is empty": {Hash: &Hash{
			Fields: []string{"a..b"},
			Key:    hashKey,
		}},
		`routes[0].do[0].redact.patterns[0]: "cards" is none of card, email`: {Redact: &Redact{Patterns: []string{"cards"}}},
		"routes[0].do[0].redact.also[0]: error parsing regexp":               {Redact: &Redact{Also: []string{"("}}},
		"routes[0].do[0].flatten.fields[0]: a.b: it is a field at the top":   {Flatten: &Flatten{Fields: []string{"a.b"}}},
		"routes[0].do[0].nest: nest has fields, or a prefix":                 {Nest: &Nest{Under: "m"}},
		"routes[0].do[0].nest.under: the name of a field is empty":           {Nest: &Nest{Fields: []string{"a"}}},
		"routes[0].do[0].parse.as: as is one of json, logfmt, regexp, time":  {Parse: &Parse{Field: "a", As: "xml"}},
		"routes[0].do[0].parse.field: the name of a field is empty":          {Parse: &Parse{As: "json"}},
		"routes[0].do[0].parse.pattern: no group of it has a name": {Parse: &Parse{
			Field: "a", As: "regexp",
			Pattern: "x",
		}},
		"routes[0].do[0].parse.pattern: only regexp has a pattern": {Parse: &Parse{
			Field: "a", As: "json",
			Pattern: "x",
		}},
		"routes[0].do[0].parse.format: only time has a format": {Parse: &Parse{
			Field: "a", As: "json",
			Format: "x",
		}},
		"routes[0].do[0].parse.format: unusable time format": {Parse: &Parse{
			Field: "a", As: "time",
			Format: "x",
		}},
		"routes[0].do[0].parse.into: a time goes into no field": {Parse: &Parse{
			Field: "a", As: "time",
			Into: "x",
		}},
		"routes[0].do[0].sample.share: the share is more than 0 and at most 1": {Sample: &Sample{By: "x"}},
		"routes[0].do[0].mask: it names no field":                              {Mask: []string{}},
		"routes[0].do[0].remove: it names no field":                            {Remove: []string{}},
		"routes[0].do[0].set: it names no field":                               {Set: Values{}},
		"routes[0].do[0].keep: the tag is a text":                              {Keep: "tag > 5"},
		"routes[0].do[0].drop: the tag is a text":                              {Drop: `tag in ["a", 1]`},
	} {
		_, err := Read([]Route{{Match: "**", Do: []Step{s}, To: []string{"x"}}}, []string{"x"}, 1<<20, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// BenchmarkParse is what a field of JSON of 300 bytes costs.
func BenchmarkParse(b *testing.B) {
	inner := `{"method":"GET","path":"/api/v1/orders/17/items","status":200,"took":0.0123,"user":{"id":"u-1234567","name":"somebody"},"agent":"Mozilla/5.0 (X11; Linux x86_64)",` +
		`"trace":"4bf92f3577b34da6a3ce929d0e0e4736","span":"00f067aa0ba902b7","cached":false,"bytes":123456,"host":"web-17.example.org","zone":"eu"}`
	record, _, err := msgpack.AppendFromJSONText(nil, fmt.Appendf(nil, `{"log":%q,"stream":"stdout"}`, inner))
	if err != nil {
		b.Fatal(err)
	}
	const events = 1000
	entries := bytes.Repeat(append(bytes.Clone(plainHead), record...), events)
	s := sifterOf(b, "", Step{Parse: &Parse{Field: "log", As: "json"}})
	var into Sifted
	b.SetBytes(int64(len(inner) * events))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Sift(&into, "t", entries, 1, 0); err != nil || into.Runs[0].Events != events ||
			bytes.Contains(into.Entries, []byte(ErrorField)) {
			b.Fatal(err)
		}
	}
}
