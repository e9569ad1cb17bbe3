package admin

import (
	"bytes"
	"crypto/rand"
	"html/template"
	"net/http"
)

// shown is what the page is made of.
type shown struct {
	Status
	Nonce string // of its script and styles: nothing else runs, whatever the data says
	// Asks, Swaps and Reads say which of its parts work.
	Asks, Swaps, Adds, Reads bool
}

// page serves the page. Its script fills it from /events; without scripts it shows how things are now.
func (s *Source) page(page *template.Template) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var out bytes.Buffer
		v := shown{Status: s.Status(), Nonce: rand.Text(), Asks: s.Ask != nil, Swaps: s.Swap != nil, Adds: s.Add != nil && s.Remove != nil, Reads: s.Letters != nil}
		if err := page.Execute(&out, &v); err != nil {
			s.Log.Error("admin page", "error", err)
			plain(w, http.StatusInternalServerError, "the page could not be made; see the log")
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+v.Nonce+"'; style-src 'nonce-"+v.Nonce+"'; img-src data:; connect-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(out.Bytes()) // whoever asked may have gone
	}
}
