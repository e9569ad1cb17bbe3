// Package admin is the HTTP server of a worker for people and monitoring. It knows what a Status says and nothing of what it
// is made from.
package admin

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed admin.html
var adminFiles embed.FS

// Server is the HTTP server for people and monitoring:
//
//	/         a page about the indexes, the queue and the rates
//	/metrics  Prometheus metrics
//	/healthz  200 while the process works: for restarts
//	/readyz   200 while queries are answered, else 503 with the reasons: for traffic
//	/swap     POST: a file takes the place of an index's; see Swap
//	/debug/pprof  only when asked for
type Server struct {
	server   *http.Server
	listener net.Listener
	done     chan struct{}
}

// Source is what a Server shows.
type Source struct {
	Metrics prometheus.Gatherer
	Status  func() Status
	// Swap puts the index in a file in the place of the one that is served under a name, and returns both versions.
	Swap  func(ctx context.Context, index, file string) (was, is string, err error)
	Pprof bool // adds /debug/pprof
	Log   *slog.Logger
}

// Start starts a server that listens at addr.
func Start(addr string, source Source) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("admin server: %w; choose another address with --admin, or --admin off", err)
	} else if err != nil {
		return nil, fmt.Errorf("admin server: %w", err)
	}
	page, err := template.ParseFS(adminFiles, "admin.html")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("admin page: %w", err), listener.Close())
	}

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(source.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(source.Log.Handler(), slog.LevelError),
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if status := source.Status(); status.Fault != "" {
			plain(w, http.StatusServiceUnavailable, status.Fault)
			return
		}
		plain(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if status := source.Status(); !status.Ready {
			plain(w, http.StatusServiceUnavailable, strings.Join(status.NotReady, "\n"))
			return
		}
		plain(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		var out bytes.Buffer
		if err := page.Execute(&out, source.Status()); err != nil {
			source.Log.Error("admin page", "error", err)
			plain(w, http.StatusInternalServerError, "the page could not be made; see the log")
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(out.Bytes()) // whoever asked may have gone
	})
	if source.Swap != nil {
		mux.HandleFunc("POST "+swapPath, source.swap)
	}
	if source.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		// Not the command line: it may hold a secret.
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}

	a := &Server{
		server:   &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute},
		listener: listener,
		done:     make(chan struct{}),
	}
	go func() {
		defer close(a.done)
		if err := a.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			source.Log.Error("admin server stopped", "error", err)
		}
	}()
	return a, nil
}

// URL is the address of the page.
func (a *Server) URL() string { return "http://" + a.listener.Addr().String() }

// Shutdown ends the server; requests still open when ctx ends are cut.
func (a *Server) Shutdown(ctx context.Context) error {
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = a.server.Close()
	}
	<-a.done
	return err
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}
