// SPDX-License-Identifier: Apache-2.0

package record

import (
	"log/slog"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// access is a record of an access log: 26 fields of mixed types.
type access struct {
	Host      string  `json:"host"`
	Ident     string  `json:"ident"`
	User      string  `json:"user"`
	Method    string  `json:"method"`
	Path      string  `json:"path"`
	Query     string  `json:"query"`
	Proto     string  `json:"proto"`
	Status    int     `json:"status"`
	Size      int64   `json:"size"`
	Referer   string  `json:"referer"`
	Agent     string  `json:"user_agent"`
	Forwarded string  `json:"forwarded_for"`
	RequestID string  `json:"request_id"`
	Upstream  string  `json:"upstream"`
	Took      float64 `json:"took"`
	UpTook    float64 `json:"upstream_took"`
	TLS       bool    `json:"tls"`
	Cipher    string  `json:"cipher"`
	Cached    bool    `json:"cached"`
	Retries   int     `json:"retries"`
	Shard     uint32  `json:"shard"`
	Region    string  `json:"region"`
	Pod       string  `json:"pod"`
	Bot       bool    `json:"bot"`
	Score     float64 `json:"score"`
	Time      int64   `json:"time"`
}

var anAccess = access{
	Host: "192.0.2.17", Ident: "-", User: "frank", Method: "GET", Path: "/api/v1/orders/1842", Query: "page=2&limit=50",
	Proto:  "HTTP/1.1",
	Status: 200, Size: 18234, Referer: "https://example.org/shop",
	Agent:     "Mozilla/5.0 (X11; Linux x86_64) Firefox/124.0",
	Forwarded: "203.0.113.5", RequestID: "7f9c2ba4e88f827d", Upstream: "10.0.3.12:8080", Took: 0.01834, UpTook: 0.0171,
	TLS:    true,
	Cipher: "TLS_AES_128_GCM_SHA256", Cached: false, Retries: 0, Shard: 1731, Region: "eu-west-1",
	Pod: "shop-7d9f8b6c4-x2x9q", Bot: false,
	Score: 0.93, Time: 1795243384123,
}

func (a *access) asMap() map[string]any {
	return map[string]any{
		"host": a.Host, "ident": a.Ident, "user": a.User, "method": a.Method, "path": a.Path, "query": a.Query,
		"proto":  a.Proto,
		"status": a.Status, "size": a.Size, "referer": a.Referer, "user_agent": a.Agent, "forwarded_for": a.Forwarded,
		"request_id": a.RequestID,
		"upstream":   a.Upstream, "took": a.Took, "upstream_took": a.UpTook, "tls": a.TLS, "cipher": a.Cipher,
		"cached":  a.Cached,
		"retries": a.Retries, "shard": a.Shard, "region": a.Region, "pod": a.Pod, "bot": a.Bot, "score": a.Score,
		"time": a.Time,
	}
}

// appendByHand is what a code generator makes of access.
func (a *access) appendByHand(b []byte) []byte {
	b = append(b, 0xde, 0x00, 0x1a)
	b = msgpack.AppendString(append(b, "\xa4host"...), a.Host)
	b = msgpack.AppendString(append(b, "\xa5ident"...), a.Ident)
	b = msgpack.AppendString(append(b, "\xa4user"...), a.User)
	b = msgpack.AppendString(append(b, "\xa6method"...), a.Method)
	b = msgpack.AppendString(append(b, "\xa4path"...), a.Path)
	b = msgpack.AppendString(append(b, "\xa5query"...), a.Query)
	b = msgpack.AppendString(append(b, "\xa5proto"...), a.Proto)
	b = msgpack.AppendInt(append(b, "\xa6status"...), int64(a.Status))
	b = msgpack.AppendInt(append(b, "\xa4size"...), a.Size)
	b = msgpack.AppendString(append(b, "\xa7referer"...), a.Referer)
	b = msgpack.AppendString(append(b, "\xaauser_agent"...), a.Agent)
	b = msgpack.AppendString(append(b, "\xadforwarded_for"...), a.Forwarded)
	b = msgpack.AppendString(append(b, "\xaarequest_id"...), a.RequestID)
	b = msgpack.AppendString(append(b, "\xa8upstream"...), a.Upstream)
	b = msgpack.AppendFloat64(append(b, "\xa4took"...), a.Took)
	b = msgpack.AppendFloat64(append(b, "\xadupstream_took"...), a.UpTook)
	b = msgpack.AppendBool(append(b, "\xa3tls"...), a.TLS)
	b = msgpack.AppendString(append(b, "\xa6cipher"...), a.Cipher)
	b = msgpack.AppendBool(append(b, "\xa6cached"...), a.Cached)
	b = msgpack.AppendInt(append(b, "\xa7retries"...), int64(a.Retries))
	b = msgpack.AppendUint(append(b, "\xa5shard"...), uint64(a.Shard))
	b = msgpack.AppendString(append(b, "\xa6region"...), a.Region)
	b = msgpack.AppendString(append(b, "\xa3pod"...), a.Pod)
	b = msgpack.AppendBool(append(b, "\xa3bot"...), a.Bot)
	b = msgpack.AppendFloat64(append(b, "\xa5score"...), a.Score)
	return msgpack.AppendInt(append(b, "\xa4time"...), a.Time)
}

// tenAttrs are ten fields: with level and message a record of about 320 bytes.
func tenAttrs() []slog.Attr {
	return []slog.Attr{
		slog.String("method", "GET"), slog.String("path", "/api/v1/orders/1842"), slog.Int("status", 200),
		slog.Int64("size", 18234),
		slog.String("user_agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/124.0"),
		slog.String("request_id", "7f9c2ba4e88f827d7f9c2ba4e88f827d"),
		slog.Float64("took", 0.01834), slog.Bool("cached", false), slog.String("upstream", "10.0.3.12:8080"),
		slog.String("referer", "https://example.org/shop/category/17"),
	}
}

var sinkBytes []byte

func BenchmarkStruct26(b *testing.B) {
	buf := make([]byte, 0, 4096)
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		var v any = &anAccess
		for b.Loop() {
			sinkBytes, _ = AppendMap(buf, v)
		}
	})
	b.Run("byhand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sinkBytes = anAccess.appendByHand(buf)
		}
	})
}

func BenchmarkMap26(b *testing.B) {
	buf := make([]byte, 0, 4096)
	m := anAccess.asMap()
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sinkBytes, _ = AppendMap(buf, m)
		}
	})
	b.Run("range", func(b *testing.B) {
		n := 0
		for b.Loop() {
			for k, v := range m {
				if v != nil {
					n += len(k)
				}
			}
		}
	})
}

func BenchmarkCount(b *testing.B) {
	buf := make([]byte, 0, 4096)
	m := map[string]any{"count": 17}
	b.ReportAllocs()
	for b.Loop() {
		sinkBytes, _ = AppendMap(buf, m)
	}
}

func BenchmarkAttrs(b *testing.B) {
	buf := make([]byte, 0, 4096)
	attrs := tenAttrs()
	b.Run("ten", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out, at := BeginMap(buf, 12)
			out = append(out, "\xa5level\xa4INFO\xa3msg"...)
			out = appendString(out, "request served")
			out, n := AppendAttrs(out, attrs)
			sinkBytes = EndMap(out, at, n+2)
		}
	})
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sinkBytes, _ = AppendAttr(buf, slog.Int("count", 17))
		}
	})
	b.Run("string", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sinkBytes, _ = AppendAttr(buf, attrs[1])
		}
	})
}

func BenchmarkTime(b *testing.B) {
	buf := make([]byte, 0, 4096)
	at := time.Unix(1795243384, 123456789)
	for _, zone := range []struct {
		name string
		at   time.Time
	}{{"utc", at.UTC()}, {"zone", at.In(time.FixedZone("x", 7200))}} {
		b.Run(zone.name, func(b *testing.B) {
			for b.Loop() {
				sinkBytes = appendTime(buf, zone.at)
			}
		})
		b.Run(zone.name+"/std", func(b *testing.B) {
			for b.Loop() {
				sinkBytes = zone.at.AppendFormat(buf, time.RFC3339Nano)
			}
		})
	}
}
