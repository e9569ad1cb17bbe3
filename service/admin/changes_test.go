package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/service/admin"
)

// TestAddAndRemoveAreAsked: who asks is told what came of it, or why nothing did; browsers of other sites are refused as for swaps.
func TestAddAndRemoveAreAsked(t *testing.T) {
	asked := 0
	server, err := admin.Start("127.0.0.1:0", admin.Source{
		Metrics: prometheus.NewRegistry(), Status: func() admin.Status { return admin.Status{} }, Log: slog.New(slog.DiscardHandler),
		Add: func(_ context.Context, index, file string) (string, string, error) {
			asked++
			switch {
			case file == "/bad":
				return "", "", errors.New("it is damaged")
			case index == "people":
				return "", "", fmt.Errorf("%w: it is served already", admin.ErrRefused)
			case index == "":
				return "own", "v1", nil
			}
			return index, "v1", nil
		},
		Remove: func(_ context.Context, index string) (string, error, error) {
			asked++
			switch index {
			case "none":
				return "", nil, fmt.Errorf("%w: none", admin.ErrNoSuchIndex)
			case "busy":
				return "v1", errors.New("3 messages were given back"), nil
			}
			return "v1", nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Shutdown(context.Background()) })
	addr := strings.TrimPrefix(server.URL(), "http://")
	for ask, want := range map[admin.Add]admin.Added{{File: "/good"}: {Index: "own", Version: "v1"}, {Index: "a", File: "/good"}: {Index: "a", Version: "v1"}} {
		if done, err := ask.Ask(t.Context(), addr, ""); err != nil || done != want {
			t.Errorf("%+v: %+v, %v", ask, done, err)
		}
	}
	for ask, says := range map[admin.Add]string{{File: "/bad"}: "damaged", {Index: "people", File: "/good"}: "served already", {Index: "a"}: "must be like"} {
		if _, err := ask.Ask(t.Context(), addr, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", ask, err)
		}
	}
	for index, want := range map[string]admin.Removed{"a": {Version: "v1"}, "busy": {Version: "v1", Note: "3 messages were given back"}} {
		if done, err := (admin.Remove{Index: index}).Ask(t.Context(), addr, ""); err != nil || done != want {
			t.Errorf("%s: %+v, %v", index, done, err)
		}
	}
	for index, says := range map[string]string{"none": "no such index", "": "must be like"} {
		if _, err := (admin.Remove{Index: index}).Ask(t.Context(), addr, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", index, err)
		}
	}
	before := asked
	for _, c := range []struct {
		path, body, kind, origin string
		code                     int
	}{
		{"/add", `{"file":"/good"}`, "text/plain", "", http.StatusUnsupportedMediaType},
		{"/add", `{"file":"/good"}`, "application/json", "http://127.0.0.1:8080", http.StatusForbidden},
		{"/remove", `{"index":"a"}`, "application/x-www-form-urlencoded", "", http.StatusUnsupportedMediaType},
		{"/remove", `{"index":"a"}`, "application/json", "null", http.StatusForbidden},
		{"/remove", `{"index":"a","force":true}`, "application/json", "", http.StatusBadRequest},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL()+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", c.kind)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.code || asked != before {
			t.Errorf("%+v: %s, %d asked: %s", c, resp.Status, asked-before, text)
		}
	}
}
