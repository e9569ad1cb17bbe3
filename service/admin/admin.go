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
	"mime"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
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
		server:   &http.Server{Handler: source.guarded(mux), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute},
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
// is open in a browser of this machine may: it must be JSON, which no form of another site can send, come from no other site, and
// name a host that no other site's name can stand for.
func (s *Source) swap(w http.ResponseWriter, r *http.Request) {
	answer := func(code int, a Swapped) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(&a) // who does not listen is not told
	}
	refuse := func(code int, format string, args ...any) { answer(code, Swapped{Error: fmt.Sprintf(format, args...)}) }
	if code, err := local(r); err != nil {
		refuse(code, "%v", err)
		return
	}
	var asked Swap
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSwap))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil || asked.Index == "" || asked.File == "" {
		refuse(http.StatusBadRequest, `the body must be like {"index":"people","file":"/srv/people.gmq"}`)
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

// local says why a request is none that a program on this machine has sent.
func local(r *http.Request) (code int, err error) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return http.StatusForbidden, errors.New("indexes are swapped from the worker's own machine only, by a loopback address")
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		return http.StatusForbidden, fmt.Errorf("indexes are swapped by address, or as localhost, not as %q", host)
	}
	if err := new(http.CrossOriginProtection).Check(r); err != nil || r.Header.Get("Origin") != "" {
		return http.StatusForbidden, errors.New("indexes are not swapped from a browser")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, errors.New("the body must be JSON, with the content type application/json")
	}
	return 0, nil
}

// Ask sends a Swap to the worker whose admin server listens at addr, host:port, and asks for a token, "" for none; it returns when it is done. The error says why
// nothing was swapped.
func (s Swap) Ask(ctx context.Context, addr, token string) (Swapped, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return Swapped{}, fmt.Errorf("the admin address: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // where a server that listens everywhere is found on this machine
	}
	body, err := json.Marshal(s)
	if err != nil {
		return Swapped{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+net.JoinHostPort(host, port)+swapPath, bytes.NewReader(body))
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
