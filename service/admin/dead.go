package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/geniemq/geniemq/consumer/letters"
)

const (
	maxQuery = 8 << 20
	// shownLetters is how many dead letters the page shows, and among how many it looks for them: the newest.
	shownLetters, searchedLetters = 100, 10_000
)

// query takes POST /query: the body is like {"index":"people","query":{"row":{...}}}. Queries show data, so they are for this machine only.
func (s *Source) query(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Index string          `json:"index"`
		Query json.RawMessage `json:"query"`
	}
	if code, err := read(w, r, maxQuery, &asked); err != nil {
		refuse(w, code, err)
		return
	}
	text, err := s.Ask(r.Context(), asked.Index, asked.Query)
	switch {
	case errors.Is(err, ErrNoSuchIndex):
		refuse(w, http.StatusNotFound, err)
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err)
	default:
		answer(w, http.StatusOK, json.RawMessage(text))
	}
}

// box are the dead letters; nil if the request was refused. They hold queries of users, so they are for this machine only.
func (s *Source) box(w http.ResponseWriter, r *http.Request) *letters.Box {
	if code, err := local(r); err != nil {
		refuse(w, code, err)
		return nil
	}
	box := s.Letters()
	if box == nil {
		refuse(w, http.StatusServiceUnavailable, errors.New("the worker has no connection yet"))
	}
	return box
}

func (s *Source) deadList(w http.ResponseWriter, r *http.Request) {
	box := s.box(w, r)
	if box == nil {
		return
	}
	found, err := box.List(r.Context(), letters.Choice{Newest: shownLetters, Within: searchedLetters})
	if err != nil {
		refuse(w, http.StatusBadGateway, err)
		return
	}
	all, err := box.Count(r.Context())
	if err != nil {
		refuse(w, http.StatusBadGateway, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"all": all, "letters": append([]letters.Letter{}, found...)})
}

func (s *Source) deadShow(w http.ResponseWriter, r *http.Request) {
	box := s.box(w, r)
	if box == nil {
		return
	}
	sequence, err := strconv.ParseUint(r.PathValue("sequence"), 10, 64)
	if err != nil {
		refuse(w, http.StatusBadRequest, errors.New("a dead letter is named by its sequence"))
		return
	}
	l, err := box.Get(r.Context(), sequence)
	if err != nil {
		refuse(w, letterCode(err), err)
		return
	}
	shown := struct {
		*letters.Letter
		Body   string `json:"body,omitempty"`
		Binary []byte `json:"body_base64,omitempty"` // of what is no text
	}{Letter: l}
	if shown.Body = string(l.Body); !utf8.Valid(l.Body) {
		shown.Body, shown.Binary = "", l.Body
	}
	answer(w, http.StatusOK, shown)
}

func (s *Source) deadReplay(w http.ResponseWriter, r *http.Request) {
	s.deadDo(w, r, func(box *letters.Box, sequence uint64) (any, error) { return box.Replay(r.Context(), sequence) })
}

func (s *Source) deadDrop(w http.ResponseWriter, r *http.Request) {
	s.deadDo(w, r, func(box *letters.Box, sequence uint64) (any, error) {
		return map[string]uint64{"dropped": sequence}, box.Drop(r.Context(), sequence)
	})
}

// deadDo does something to the letter that the body names: {"sequence":17}.
func (s *Source) deadDo(w http.ResponseWriter, r *http.Request, do func(*letters.Box, uint64) (any, error)) {
	var asked struct {
		Sequence uint64 `json:"sequence"`
	}
	if code, err := read(w, r, 1<<10, &asked); err != nil {
		refuse(w, code, err)
		return
	}
	box := s.box(w, r)
	if box == nil {
		return
	}
	done, err := do(box, asked.Sequence)
	if err != nil {
		refuse(w, letterCode(err), err)
		return
	}
	answer(w, http.StatusOK, done)
}

func letterCode(err error) int {
	switch {
	case errors.Is(err, letters.ErrNone):
		return http.StatusNotFound
	case errors.Is(err, letters.ErrCut):
		return http.StatusConflict
	}
	return http.StatusBadGateway
}
