// Package admin is the HTTP server of a worker for people and monitoring. It knows what a Status says and nothing of what it
// is made from.
package admin

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/geniemq/geniemq/consumer/letters"
)

//go:embed admin.html
var adminFiles embed.FS

// Server is the HTTP server for people and monitoring:
//
//	/         a page about the indexes, the queue and the rates
//	/metrics  Prometheus metrics
//	/healthz  200 while the process works: for restarts
//	/readyz   200 while queries are answered, else 503 with the reasons: for traffic
//	/events   what the worker does, once a second, as server-sent events; see Event
//	/swap     POST: a file takes the place of an index's; see Swap
//	/query    POST: a query is answered, for the page
//	/dead     dead letters: list, show, replay, drop
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
	Swap func(ctx context.Context, index, file string) (was, is string, err error)
	// Ask answers a query, both in JSON. Nil: the page has no box for queries.
	Ask func(ctx context.Context, index string, query []byte) ([]byte, error)
	// Letters are the dead letters; it returns nil while there is no connection. Nil: the page does not show them.
	Letters func() *letters.Box
	Pprof   bool // adds /debug/pprof
	// Token is what who asks must show, for all but /healthz and /readyz; nil: nothing.
	Token func() string
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
		EnableOpenMetrics: true, // for those who ask for it: exemplars have no other way out
		ErrorLog:          slog.NewLogLogger(source.Log.Handler(), slog.LevelError),
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
	streams := &streams{source: &source, ended: make(chan struct{})}
	mux.HandleFunc("GET /{$}", source.page(page))
	mux.HandleFunc("GET "+eventsPath, streams.serve)
	if source.Swap != nil {
		mux.HandleFunc("POST "+swapPath, source.swap)
	}
	if source.Ask != nil {
		mux.HandleFunc("POST /query", source.query)
	}
	if source.Letters != nil {
		mux.HandleFunc("GET /dead", source.deadList)
		mux.HandleFunc("GET /dead/{sequence}", source.deadShow)
		mux.HandleFunc("POST /dead/replay", source.deadReplay)
		mux.HandleFunc("POST /dead/drop", source.deadDrop)
	}
	if source.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		// Not the command line: it may hold a secret.
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}

	a := &Server{
		server:   &http.Server{Handler: source.guarded(mux), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute},
		listener: listener,
		done:     make(chan struct{}),
	}
	a.server.RegisterOnShutdown(func() { close(streams.ended) })
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

// A Swap asks a worker to put the index in a file in the place of the one that it serves under a name.
type Swap struct {
	Index string `json:"index"`
	File  string `json:"file"` // as the worker finds it
}

// Swapped is what came of a Swap.
type Swapped struct {
	Was     string `json:"was,omitempty"`     // the version that answered before
	Version string `json:"version,omitempty"` // the version that answers now
	Error   string `json:"error,omitempty"`   // why nothing was swapped
}

// ErrNoSuchIndex is what Source.Swap's error wraps when the worker serves no index of that name, ErrRefused when the file cannot take the
// place of the one that is served, or not now.
var (
	ErrNoSuchIndex = errors.New("no such index")
	ErrRefused     = errors.New("refused")
)

// maxSwap bounds the body of a request: an index's name and a path.
const maxSwap = 64 << 10

const swapPath = "/swap"

// swap takes POST /swap. It names a file that the worker opens, so whoever may send it must be on this machine, and no web page that
// is open in a browser of this machine may but the admin page itself; see read.
func (s *Source) swap(w http.ResponseWriter, r *http.Request) {
	answer := func(code int, a Swapped) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(&a) // who does not listen is not told
	}
	refuse := func(code int, format string, args ...any) { answer(code, Swapped{Error: fmt.Sprintf(format, args...)}) }
	var asked Swap
	if code, err := read(w, r, maxSwap, &asked); code == http.StatusBadRequest || err == nil && (asked.Index == "" || asked.File == "") {
		refuse(http.StatusBadRequest, `the body must be like {"index":"people","file":"/srv/people.gmq"}`)
		return
	} else if err != nil {
		refuse(code, "%v", err)
		return
	}
	was, is, err := s.Swap(r.Context(), asked.Index, asked.File)
	switch {
	case err == nil:
		answer(http.StatusOK, Swapped{Was: was, Version: is})
	case errors.Is(err, ErrNoSuchIndex):
		answer(http.StatusNotFound, Swapped{Error: err.Error()})
	case errors.Is(err, ErrRefused):
		answer(http.StatusConflict, Swapped{Was: was, Error: err.Error()})
	default:
		answer(http.StatusUnprocessableEntity, Swapped{Was: was, Error: err.Error()})
	}
}

// urlOf is where the admin server is found that listens at addr, host:port.
func urlOf(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("the admin address: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // where a server that listens everywhere is found on this machine
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// Ask sends a Swap to the worker whose admin server listens at addr, host:port, and asks for a token, "" for none; it returns when it is done. The error says why
// nothing was swapped.
func (s Swap) Ask(ctx context.Context, addr, token string) (Swapped, error) {
	url, err := urlOf(addr)
	if err != nil {
		return Swapped{}, err
	}
	body, err := json.Marshal(s)
	if err != nil {
		return Swapped{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+swapPath, bytes.NewReader(body))
	if err != nil {
		return Swapped{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{} // no proxy: the worker is on this machine
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Swapped{}, fmt.Errorf("asking the worker at %s: %w", addr, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return Swapped{}, fmt.Errorf("the worker at %s was cut off: %w", addr, err)
	}
	var answer Swapped
	if response.StatusCode == http.StatusUnauthorized {
		return Swapped{}, fmt.Errorf("the worker at %s asks for a token: give its file with --admin-token-file", addr)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return Swapped{}, fmt.Errorf("what listens at %s does not swap indexes: it answers %s", addr, response.Status)
	}
	if response.StatusCode != http.StatusOK {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}
