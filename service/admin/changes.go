package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
)

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

// An Add asks a worker to serve the index in a file beside those that it serves.
type Add struct {
	Index string `json:"index,omitempty"` // "": the name in the file
	File  string `json:"file"`            // as the worker finds it
}

// Added is what came of an Add.
type Added struct {
	Index   string `json:"index,omitempty"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"` // why nothing was added
}

// A Remove asks a worker to serve an index no longer.
type Remove struct {
	Index string `json:"index"`
}

// Removed is what came of a Remove.
type Removed struct {
	Version string `json:"version,omitempty"` // the one that was served
	Note    string `json:"note,omitempty"`    // what was not orderly, though the index is gone
	Error   string `json:"error,omitempty"`   // why nothing was removed
}

// ErrNoSuchIndex is what errors of a Source wrap when the worker serves no index of that name, ErrRefused when a file cannot take the
// place of the one that is served, or a name is taken, or not now.
var (
	ErrNoSuchIndex = errors.New("no such index")
	ErrRefused     = errors.New("refused")
)

// maxChange bounds the body of a request: an index's name and a path.
const maxChange = 64 << 10

const (
	swapPath   = "/swap"
	addPath    = "/add"
	removePath = "/remove"
)

// changes lets indexes be changed, by what there is for it.
func (s *Source) changes(mux *http.ServeMux) {
	if s.Swap != nil {
		mux.HandleFunc("POST "+swapPath, s.swap)
	}
	if s.Add != nil {
		mux.HandleFunc("POST "+addPath, s.add)
	}
	if s.Remove != nil {
		mux.HandleFunc("POST "+removePath, s.remove)
	}
}

// statusOf is the status of an answer that an error is, or nil.
func statusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, ErrNoSuchIndex):
		return http.StatusNotFound
	case errors.Is(err, ErrRefused):
		return http.StatusConflict
	}
	return http.StatusUnprocessableEntity
}

// textOf is an error's text, "" for none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// asked reads what a change is asked for with, and is false when that was wrong and is answered. like is what it should be like. Changes name files that the
// worker opens, so whoever may send them must be on this machine, and no web page that is open in a browser of this machine may but the admin page itself;
// see read.
func asked(w http.ResponseWriter, r *http.Request, into any, whole func() bool, like string) bool {
	code, err := read(w, r, maxChange, into)
	switch {
	case code == http.StatusBadRequest, err == nil && !whole():
		refuse(w, http.StatusBadRequest, fmt.Errorf("the body must be like %s", like))
	case err != nil:
		refuse(w, code, err)
	default:
		return true
	}
	return false
}

// swap takes POST /swap.
func (s *Source) swap(w http.ResponseWriter, r *http.Request) {
	var ask Swap
	if asked(w, r, &ask, func() bool { return ask.Index != "" && ask.File != "" }, `{"index":"people","file":"/srv/people.gmq"}`) {
		was, is, err := s.Swap(r.Context(), ask.Index, ask.File)
		if err != nil {
			is = ""
		}
		answer(w, statusOf(err), &Swapped{Was: was, Version: is, Error: textOf(err)})
	}
}

// add takes POST /add.
func (s *Source) add(w http.ResponseWriter, r *http.Request) {
	var ask Add
	if asked(w, r, &ask, func() bool { return ask.File != "" }, `{"file":"/srv/people.gmq"} or {"index":"people","file":"/srv/people.gmq"}`) {
		name, version, err := s.Add(r.Context(), ask.Index, ask.File)
		answer(w, statusOf(err), &Added{Index: name, Version: version, Error: textOf(err)})
	}
}

// remove takes POST /remove.
func (s *Source) remove(w http.ResponseWriter, r *http.Request) {
	var ask Remove
	if asked(w, r, &ask, func() bool { return ask.Index != "" }, `{"index":"people"}`) {
		version, note, err := s.Remove(r.Context(), ask.Index)
		answer(w, statusOf(err), &Removed{Version: version, Note: textOf(note), Error: textOf(err)})
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
func (s Swap) Ask(ctx context.Context, addr, token string) (done Swapped, err error) {
	err = change(ctx, addr, token, swapPath, s, &done, &done.Error)
	return done, err
}

// Ask is that of Swap: it returns when queries are answered.
func (a Add) Ask(ctx context.Context, addr, token string) (done Added, err error) {
	err = change(ctx, addr, token, addPath, a, &done, &done.Error)
	return done, err
}

// Ask is that of Swap: it returns when nothing is left of the index.
func (r Remove) Ask(ctx context.Context, addr, token string) (done Removed, err error) {
	err = change(ctx, addr, token, removePath, r, &done, &done.Error)
	return done, err
}

// change posts what is asked for and reads what came of it; fault is where that says why nothing did.
func change(ctx context.Context, addr, token, path string, ask, done any, fault *string) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	return exchange(ctx, http.MethodPost, addr, token, path, bytes.NewReader(body), func(response *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		if err != nil {
			return fmt.Errorf("the worker at %s was cut off: %w", addr, err)
		}
		if err := json.Unmarshal(text, done); err != nil {
			return fmt.Errorf("what listens at %s does not change indexes: it answers %s", addr, response.Status)
		}
		if response.StatusCode != http.StatusOK {
			return errors.New(*fault)
		}
		return nil
	})
}
