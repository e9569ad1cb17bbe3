package admin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/live"
)

// An Event is what a worker is and does, as /events tells it every second.
type Event struct {
	Version    string       `json:"version"`
	Ready      bool         `json:"ready"`
	NotReady   []string     `json:"not_ready,omitempty"`
	Uptime     float64      `json:"uptime"` // seconds
	NATS       string       `json:"nats"`
	Engine     string       `json:"engine"`
	EngineNote string       `json:"engine_note,omitempty"`
	Indexes    []EventIndex `json:"indexes"`
	Memory     []EventHeld  `json:"memory"`
	// Figures are those of the last ten seconds, with the first event those since the start.
	Figures live.Figures `json:"figures"`
}

// EventIndex is an index that is served.
type EventIndex struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Version  string `json:"version"`
	Retiring string `json:"retiring,omitempty"`
	Objects  uint32 `json:"objects"`
	Size     string `json:"size"`
	Waiting  int64  `json:"waiting"`
	Queries  int64  `json:"queries"` // since the start, as all that follows
	Errors   int64  `json:"errors"`
	Example  string `json:"example"`
}

// EventHeld is memory that the engine has taken.
type EventHeld struct {
	Where  string `json:"where"`
	Owner  string `json:"owner"`
	Form   string `json:"form"`
	Bytes  int64  `json:"bytes"`
	Size   string `json:"size"`
	Needed bool   `json:"needed"`
}

const (
	eventsPath = "/events"
	// EventInterval is how often there is an event.
	EventInterval = time.Second
	// mostStreams is how many may listen at a time: each has the metrics gathered every second.
	mostStreams = 32
	// writeTimeout is for how long a listener may take nothing.
	writeTimeout = 10 * time.Second
)

// streams are the listeners to /events.
type streams struct {
	source *Source
	open   atomic.Int32
	ended  chan struct{} // the server shuts down, which does not wait for them
}

// serve sends events until the listener is gone or the server ends.
func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	defer s.open.Add(-1)
	if s.open.Add(1) > mostStreams {
		plain(w, http.StatusServiceUnavailable, fmt.Sprintf("%d listen already", mostStreams))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	var window live.Window
	tick := time.NewTicker(EventInterval)
	defer tick.Stop()
	for {
		text, err := json.Marshal(s.source.event(&window))
		if err != nil {
			s.source.Log.Error("admin events", "error", err)
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // where there is none, the connection's own end has to do
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}

func (s *Source) event(window *live.Window) Event {
	now, status := time.Now(), s.Status()
	e := Event{
		Version: status.Version, Ready: status.Ready, NotReady: status.NotReady, Uptime: status.Uptime.Seconds(), NATS: status.NATS,
		Engine: status.Engine, EngineNote: status.EngineNote, Indexes: []EventIndex{}, Memory: []EventHeld{},
	}
	for _, x := range status.Indexes {
		e.Indexes = append(e.Indexes, EventIndex{Name: x.Name, Kind: x.Kind, Version: x.Version, Retiring: x.Retiring, Objects: x.Objects, Size: x.Size,
			Waiting: x.Pending, Queries: x.Queries, Errors: x.Errors, Example: x.Example})
	}
	for _, h := range status.Memory {
		e.Memory = append(e.Memory, EventHeld{Where: h.Where(), Owner: h.Owner, Form: h.Form, Bytes: h.Bytes, Size: human.Bytes(h.Bytes), Needed: h.Needed})
	}
	families, err := s.Metrics.Gather()
	if err != nil {
		s.Log.Warn("not all metrics could be gathered", "error", err) // the rest is shown
	}
	e.Figures = window.Look(families, now, now.Add(-max(status.Uptime, time.Second)))
	return e
}

// maxEvent bounds an event that is read.
const maxEvent = 16 << 20

// Listen calls do with each event of the worker whose admin server listens at addr, host:port, and asks for a token, "" for none, until do returns an error, which is Listen's, or ctx ends.
func Listen(ctx context.Context, addr, token string, do func(*Event) error) error {
	return exchange(ctx, http.MethodGet, addr, token, eventsPath, nil, func(response *http.Response) error {
		return listen(addr, response, do)
	})
}

// listen calls do with each event of a response.
func listen(addr string, response *http.Response, do func(*Event) error) error {
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		return fmt.Errorf("what listens at %s does not tell what it does: it answers %s, and may be an earlier version", addr, response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	for lines.Scan() {
		text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("an event of the worker at %s: %w", addr, err)
		}
		if err := do(&e); err != nil {
			return err
		}
	}
	return fmt.Errorf("the worker at %s is gone: %w", addr, cmp.Or(lines.Err(), io.EOF))
}

// exchange sends a request to the worker at addr and lets read have the response, unless it asks for a token.
func exchange(ctx context.Context, method, addr, token, path string, body io.Reader, read func(*http.Response) error) error {
	url, err := urlOf(addr)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, url+path, body)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{} // no proxy: the worker is on this machine
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return unanswered(addr, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("the worker at %s asks for a token: give its file with --admin-token-file", addr)
	}
	return read(response)
}

// unanswered says that a worker could not be asked.
func unanswered(addr string, err error) error {
	hint := ""
	if about, ok := errors.AsType[*net.OpError](err); ok && about.Op == "dial" {
		err, hint = about.Err, "; is geniemq serve running there, with its admin page? --admin names another address"
	}
	return fmt.Errorf("asking the worker at %s: %w%s", addr, err, hint)
}
