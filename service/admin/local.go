package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
)

// local says why a request is none that a program on this machine has sent, or the admin page in a browser of this machine: it must come by a loopback
// address, name a host that no other site's name can stand for, and come from no other site.
func local(r *http.Request) (code int, err error) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return http.StatusForbidden, errors.New("this is for the worker's own machine only, by a loopback address")
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		return http.StatusForbidden, fmt.Errorf("this is to be asked for by address, or as localhost, not as %q", host)
	}
	origin := r.Header.Get("Origin")
	if err := new(http.CrossOriginProtection).Check(r); err != nil || origin != "" && origin != "http://"+r.Host {
		return http.StatusForbidden, errors.New("no page of another site may ask for this")
	}
	if site := r.Header.Get("Sec-Fetch-Site"); !slices.Contains([]string{"", "same-origin", "none"}, site) { // reading, which the check above allows
		return http.StatusForbidden, errors.New("no page of another site may ask for this")
	}
	return 0, nil
}

// read reads what a local program or the page asks for. It must be JSON, which no form of another site can send.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) (code int, err error) {
	if code, err := local(r); err != nil {
		return code, err
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, errors.New("the body must be JSON, with the content type application/json")
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return http.StatusBadRequest, fmt.Errorf("the body cannot be read: %w", err)
	}
	return 0, nil
}

// answer writes JSON that nobody keeps.
func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // who does not listen is not told
}

// refuse says why nothing was done.
func refuse(w http.ResponseWriter, code int, err error) {
	answer(w, code, map[string]string{"error": err.Error()})
}
