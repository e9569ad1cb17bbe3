// Package door lets programs ask that do not speak NATS: HTTP with the same JSON.
package door

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/wire"
	"github.com/geniemq/geniemq/wire/fields"
	"github.com/geniemq/geniemq/wire/schema"
)

// Door is the HTTP server for those who ask:
//
//	GET  /v1/openapi.json              what follows, for programs; without a token
//	GET  /v1/indexes                   what this worker serves
//	POST /v1/indexes/{index}/search    asks directly
//	POST /v1/indexes/{index}/queries   stores a query and waits for its answer
//
// It passes messages on to the subjects of queries and so promises, limits and refuses what these do: the bodies are the same, an
// error is the same result, and its code says the status. It decodes none but answers in several messages. A query is stored under the
// header Idempotency-Key, so that it may be posted again, to any worker: it is asked once, and its answer is found while the stream has it.
//
// Nobody gets in without the token. The Door owns its listener and the requests in it; Shutdown ends both.
type Door struct {
	source   Source
	token    [sha256.Size]byte
	server   *http.Server
	listener net.Listener
	done     chan struct{}
	open     chan struct{} // a place for each request
}

// Source is what a Door leads to.
type Source struct {
	Token    string // that askers have to show
	Conn     *nats.Conn
	JS       jetstream.JetStream
	Subjects wire.Subjects
	MaxBody  int              // bytes of a body that goes in a message
	MaxLarge int              // bytes of one that is stored, wherever
	Bodies   *bodystore.Store // for what does not fit a message
	Indexes  func() []Index
	Log      *slog.Logger
}

// Index is what GET /v1/indexes tells of each.
type Index struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Objects int    `json:"objects"`
}

const (
	// directWait is how long direct search is waited for that has no timeout of its own.
	directWait = time.Minute
	// maxOpen is how many requests are worked on at a time: each may have a body and an answer in memory.
	maxOpen = 128
)

// Start starts a server that listens at addr.
func Start(addr string, source Source) (*Door, error) {
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("HTTP door: %w; choose another address with --http, or --http off", err)
	} else if err != nil {
		return nil, fmt.Errorf("HTTP door: %w", err)
	}
	d := &Door{source: source, token: sha256.Sum256([]byte(source.Token)), listener: listener, done: make(chan struct{}), open: make(chan struct{}, maxOpen)}
	openAPI := schema.OpenAPI()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) { send(w, http.StatusOK, jsonType, openAPI) })
	mux.HandleFunc("GET /v1/indexes", d.let(func(w http.ResponseWriter, _ *http.Request) {
		encoded(w, http.StatusOK, map[string]any{"indexes": source.Indexes()})
	}))
	mux.HandleFunc("POST /v1/indexes/{index}/search", d.let(d.search))
	mux.HandleFunc("POST /v1/indexes/{index}/queries", d.let(d.store))
	d.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(source.Log.Handler(), slog.LevelDebug)}
	go func() {
		defer close(d.done)
		if err := d.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			source.Log.Error("the HTTP door stopped", "error", err)
		}
	}()
	return d, nil
}

// URL is the address of the door.
func (d *Door) URL() string { return "http://" + d.listener.Addr().String() }

// Shutdown ends the server; requests still open when ctx ends are cut.
func (d *Door) Shutdown(ctx context.Context) error {
	err := d.server.Shutdown(ctx)
	if err != nil {
		err = d.server.Close()
	}
	<-d.done
	return err
}

// let lets in who has the token, while there is room.
func (d *Door) let(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		hash := sha256.Sum256([]byte(shown))
		if subtle.ConstantTimeCompare(hash[:], d.token[:]) != 1 || !bearer {
			w.Header().Set("WWW-Authenticate", "Bearer")
			encoded(w, http.StatusUnauthorized, body(wire.Errorf(wire.BadRequest, "the token is missing or wrong: send the header Authorization: Bearer TOKEN")))
			return
		}
		select {
		case d.open <- struct{}{}:
			defer func() { <-d.open }()
			handle(w, r)
		default:
			refuse(w, wire.Errorf(wire.Overloaded, "%d requests are being answered, and no more are at a time: try again later", maxOpen))
		}
	}
}

// message is the message that a request is, without a subject, with a body of at most so many bytes.
func (d *Door) message(w http.ResponseWriter, r *http.Request, most int) (*nats.Msg, error) {
	if err := wire.CheckIndexName(r.PathValue("index")); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(most)))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, wire.Errorf(wire.TooLarge, "the body has more than %d bytes: send fewer queries per message", most)
	} else if err != nil {
		return nil, wire.Errorf(wire.BadRequest, "the body could not be read: %v", err)
	}
	m := &nats.Msg{Header: nats.Header{}, Data: data}
	for _, name := range []string{wire.HeaderContentType, wire.HeaderTraceParent} {
		if value := r.Header.Get(name); value != "" {
			m.Header.Set(name, value)
		}
	}
	if media := m.Header.Get(wire.HeaderContentType); strings.HasPrefix(media, "application/x-www-form-urlencoded") {
		m.Header.Del(wire.HeaderContentType) // what curl says that is not told
	}
	return m, nil
}

func (d *Door) search(w http.ResponseWriter, r *http.Request) {
	m, err := d.message(w, r, d.source.MaxBody)
	if err != nil {
		refuse(w, err)
		return
	}
	index := r.PathValue("index")
	m.Subject = d.source.Subjects.Search(index)
	ctx, cancel := context.WithTimeout(r.Context(), directWait)
	defer cancel()
	answer, err := d.source.Conn.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		refuse(w, wire.Errorf(wire.UnknownIndex, "no worker serves %s", index))
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, wire.Errorf(wire.DeadlineExceeded, "there was no answer in %v", directWait))
	case err != nil:
		refuse(w, wire.Errorf(wire.Internal, "asking the worker: %v", err))
	default:
		send(w, status(wire.Code(answer.Header.Get(wire.HeaderServiceErrorCode))), answer.Header.Get(wire.HeaderContentType), answer.Data)
	}
}

const jsonType = "application/json"

// status is that of an error's code, which may be none.
func status(code wire.Code) int {
	for _, c := range fields.Codes {
		if c.Name == string(code) {
			return c.HTTP
		}
	}
	if code != "" {
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// body is an error as a result.
func body(err error) map[string]any {
	e := wire.AsError(err)
	return map[string]any{"error": map[string]string{"code": string(e.Code), "message": e.Message}}
}

func refuse(w http.ResponseWriter, err error) {
	encoded(w, status(wire.AsError(err).Code), body(err))
}

func encoded(w http.ResponseWriter, code int, doc any) {
	text, err := json.Marshal(doc)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer could not be written"}}`)
	}
	send(w, code, jsonType, text)
}

func send(w http.ResponseWriter, code int, contentType string, text []byte) {
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(text) // whoever asked may have gone
}
