// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/credentials"
)

// A Server listens, and serves once it has its hooks.
type Server struct {
	plan     *Plan
	listener net.Listener
	log      *slog.Logger
	server   http.Server
	syncs    prometheus.Histogram
	served   chan struct{}      // closed when it serves no more
	end      context.CancelFunc // of answers that have no end of their own
}

// Bounds of what clients cost.
const (
	maxConnections  = 64
	maxScrapes      = 4
	maxHeader       = 16 << 10
	maxRequestTime  = 10 * time.Second
	maxAnswerTime   = 30 * time.Second
	maxIdleTime     = 2 * time.Minute
	maxShutdownTime = 2 * time.Second
)

// Listen opens the address, and the files that its URL names. A nil plan gives a nil server, which
// does nothing.
func (p *Plan) Listen(log *slog.Logger) (*Server, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	err := p.security.Open(&credentials.Reports{
		Warn: func(err error) { codes.Credentials.Warn(log, "credentials", "url", p.shown, "error", err) },
		Renewed: func(files []string) {
			codes.Renewed.Info(log, "credentials renewed", "url", p.shown, "files", strings.Join(files, ", "))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("admin %s: %w", p.shown, err)
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return nil, fmt.Errorf("admin %s: %w", p.shown, err)
	}
	s := &Server{
		plan: p, log: log, served: make(chan struct{}), syncs: newSyncs(),
		listener: &limited{Listener: l, open: map[*placed]struct{}{}},
	}
	if c := p.security.TLS(); c != nil {
		c.NextProtos = []string{"http/1.1"}
		s.listener = tls.NewListener(s.listener, c)
	}
	return s, nil
}

// Addr is where it listens; nil without a server.
func (s *Server) Addr() net.Addr {
	if s == nil {
		return nil
	}
	return s.listener.Addr()
}

// Synced is told of each sync of the journal, also before Serve.
func (s *Server) Synced(took time.Duration) {
	if s != nil {
		s.syncs.Observe(took.Seconds())
	}
}

// Serve answers requests until Close.
func (s *Server) Serve(from *Hooks) {
	if s == nil {
		return
	}
	var ctx context.Context
	ctx, s.end = context.WithCancel(context.Background())
	s.server = http.Server{
		Handler:           s.handler(from),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: maxRequestTime, ReadTimeout: maxRequestTime, WriteTimeout: maxAnswerTime,
		IdleTimeout:    maxIdleTime,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	codes.AdminListening.Info(s.log, "telling", "admin", s.plan.shown, "address", s.Addr().String())
	go func() {
		defer close(s.served)
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			codes.AdminBroken.Error(s.log, "admin", "url", s.plan.shown, "error", err)
		}
	}()
}

// Close ends all; requests that are being answered have a moment. What was never served is closed,
// too.
func (s *Server) Close() {
	if s == nil {
		return
	}
	if s.server.Handler == nil {
		_ = s.listener.Close()
		return
	}
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), maxShutdownTime)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close()
	}
	<-s.served
}

// Reload reads the files that the URL names again.
func (s *Server) Reload() error {
	if s == nil {
		return nil
	}
	if err := s.plan.security.Reload(); err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

// handler has all paths.
func (s *Server) handler(from *Hooks) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.syncs, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	own := &figures{from.Stats, from.Version}
	all := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return own.picture().beside(registry) })
	guarded := http.NewServeMux()
	guarded.Handle("GET /metrics", promhttp.HandlerFor(all,
		promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, DisableCompression: true}))
	guarded.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		stats := from.Stats()
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(from.Status(&stats)) // it fails where the client has hung up
	})
	guarded.HandleFunc("GET /config", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = io.WriteString(w, from.Config())
	})
	guarded.HandleFunc("GET /tail", func(w http.ResponseWriter, r *http.Request) {
		if !s.plan.tail {
			http.Error(w, "events are not shown here: the address needs a token or asks for certificates, or says tail=true", http.StatusForbidden)
			return
		}
		from.tail(w, r)
	})
	guarded.HandleFunc("POST /reload", func(w http.ResponseWriter, _ *http.Request) {
		// It waits for ends that it changes, for as long as the configuration says.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		if err := from.Reload(); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		_, _ = io.WriteString(w, "reloaded\n")
	})
	open := http.NewServeMux()
	open.Handle("/", s.guard(guarded))
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	watch := &watchdog{stall: s.plan.stall}
	open.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		stats := from.Stats()
		if wrong := watch.look(&stats, time.Now()); len(wrong) > 0 {
			http.Error(w, strings.Join(wrong, "\n"), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return http.NewCrossOriginProtection().Handler(open)
}

// guard lets those pass that may ask.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bearer {
			token = ""
		}
		switch {
		case !s.plan.security.Allows(token):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token is needed: Authorization: Bearer …", http.StatusUnauthorized)
		case s.plan.loopback && !s.plan.security.Guarded() && !local(r.Host):
			http.Error(w, "this is not the host that was asked for", http.StatusMisdirectedRequest)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// local reports whether a request names this machine as its host. A name that leads here is another
// site's, whose pages must not read what is here.
func local(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	return loopback(strings.Trim(host, "[]"))
}

// limited is a listener with so many connections at a time. For a further one the one that has been
// silent for the longest time is closed: else some that say nothing would keep a probe waiting.
type limited struct {
	net.Listener
	mu   sync.Mutex
	open map[*placed]struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxConnections {
		silent := slices.MinFunc(slices.Collect(maps.Keys(l.open)), func(a, b *placed) int {
			return cmp.Compare(a.silent.Load(), b.silent.Load())
		})
		delete(l.open, silent)
		_ = silent.Conn.Close() // the server sees it, and forgets it
	}
	p := &placed{Conn: c, from: l}
	p.silent.Store(time.Now().UnixNano())
	l.open[p] = struct{}{}
	return p, nil
}

// placed is a connection that has one of the places.
type placed struct {
	net.Conn
	from   *limited
	silent atomic.Int64 // since when, in nanoseconds since 1970
}

func (c *placed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.silent.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *placed) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.silent.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *placed) Close() error {
	c.from.mu.Lock()
	delete(c.from.open, c)
	c.from.mu.Unlock()
	return c.Conn.Close()
}
