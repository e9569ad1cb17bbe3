package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// guarded asks for the token, if there is one: as a bearer token, which Prometheus and scripts send, or as the password of any name, which a browser
// asks people for. Health checks are for those who know no secret.
func (s *Source) guarded(next http.Handler) http.Handler {
	if s.Token == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			_, shown, ok = r.BasicAuth()
		}
		// Hashes have one length, so that the time to compare says nothing of the token's.
		got, want := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(s.Token()))
		if !ok || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="geniemq", charset="UTF-8"`)
			plain(w, http.StatusUnauthorized, "this page asks for the token of admin-token-file")
			return
		}
		next.ServeHTTP(w, r)
	})
}
