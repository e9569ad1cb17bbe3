package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/service/admin"
)

// startSwapping starts a server whose swaps end as they are told by the name of the file.
func startSwapping(t *testing.T) (addr string, asked *[]admin.Swap) {
	t.Helper()
	asked = new([]admin.Swap)
	server, err := admin.Start("127.0.0.1:0", admin.Source{
		Metrics: prometheus.NewRegistry(), Status: func() admin.Status { return admin.Status{} }, Log: slog.New(slog.DiscardHandler),
		Swap: func(_ context.Context, index, file string) (was, is string, err error) {
			*asked = append(*asked, admin.Swap{Index: index, File: file})
			switch file {
			case "/bad":
				return "v1", "", errors.New("it is damaged")
			case "/other":
				return "v1", "", fmt.Errorf("%w: it has no attribute age", admin.ErrRefused)
			case "/none":
				return "", "", fmt.Errorf("%w: this worker does not serve it", admin.ErrNoSuchIndex)
			}
			return "v1", "v2", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Shutdown(context.Background()) })
	return strings.TrimPrefix(server.URL(), "http://"), asked
}

// TestSwapIsAsked: who asks is told the versions, or why nothing was swapped.
func TestSwapIsAsked(t *testing.T) {
	addr, asked := startSwapping(t)
	_, port, _ := net.SplitHostPort(addr)
	for _, where := range []string{addr, ":" + port, "0.0.0.0:" + port, "localhost:" + port} {
		done, err := admin.Swap{Index: "people", File: "/good"}.Ask(t.Context(), where, "")
		if err != nil || done != (admin.Swapped{Was: "v1", Version: "v2"}) {
			t.Errorf("by %s: %+v, %v", where, done, err)
		}
	}
	for file, says := range map[string]string{"/bad": "damaged", "/other": "no attribute age", "/none": "does not serve"} {
		if _, err := (admin.Swap{Index: "people", File: file}).Ask(t.Context(), addr, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if len(*asked) != 7 || (*asked)[0] != (admin.Swap{Index: "people", File: "/good"}) {
		t.Errorf("asked for %v", *asked)
	}
	if _, err := (admin.Swap{Index: "people", File: "/good"}).Ask(t.Context(), "127.0.0.1:1", ""); err == nil {
		t.Error("nobody listens, and there is no error")
	}
}

// TestSwapIsRefusedToBrowsers: a page that is open in a browser of the worker's machine cannot swap an index, whatever it sends of what
// such pages can send, and neither can a program elsewhere.
func TestSwapIsRefusedToBrowsers(t *testing.T) {
	addr, asked := startSwapping(t)
	body := `{"index":"people","file":"/good"}`
	for _, c := range []struct {
		name, method, kind, body string
		header                   [2]string
		code                     int
	}{
		{"as a form", "POST", "application/x-www-form-urlencoded", body, [2]string{}, http.StatusUnsupportedMediaType},
		{"as text", "POST", "text/plain", body, [2]string{}, http.StatusUnsupportedMediaType},
		{"as nothing", "POST", "", body, [2]string{}, http.StatusUnsupportedMediaType},
		{"from another site", "POST", "application/json", body, [2]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"from another port", "POST", "application/json", body, [2]string{"Origin", "http://127.0.0.1:8080"}, http.StatusForbidden},
		{"from a page without an origin", "POST", "application/json", body, [2]string{"Origin", "null"}, http.StatusForbidden},
		{"by a name that stands for this machine", "POST", "application/json", body, [2]string{"Host", "evil.example:9464"}, http.StatusForbidden},
		{"by GET", "GET", "application/json", body, [2]string{}, http.StatusMethodNotAllowed},
		{"with more than is understood", "POST", "application/json", `{"index":"people","file":"/good","force":true}`, [2]string{}, http.StatusBadRequest},
		{"without a file", "POST", "application/json", `{"index":"people"}`, [2]string{}, http.StatusBadRequest},
		{"with a body without end", "POST", "application/json", `{"index":"` + strings.Repeat("x", 1<<20), [2]string{}, http.StatusBadRequest},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+addr+"/swap", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		if c.header[0] == "Host" {
			r.Host = c.header[1]
		} else if c.header[0] != "" {
			r.Header.Set(c.header[0], c.header[1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.code || len(*asked) != 0 {
			t.Errorf("%s: %s, %d swaps: %s", c.name, resp.Status, len(*asked), text)
		}
	}
}

// TestSwapFromElsewhere: only this machine's programs may swap, also where the server listens for others.
func TestSwapFromElsewhere(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		ip, _, err := net.ParseCIDR(a.String())
		if err != nil || ip.IsLoopback() || ip.To4() == nil {
			continue
		}
		asked := 0
		server, err := admin.Start(net.JoinHostPort(ip.String(), "0"), admin.Source{
			Metrics: prometheus.NewRegistry(), Status: func() admin.Status { return admin.Status{} }, Log: slog.New(slog.DiscardHandler),
			Swap: func(context.Context, string, string) (was, is string, err error) { asked++; return "", "", nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Shutdown(context.Background())
		_, err = admin.Swap{Index: "people", File: "/good"}.Ask(t.Context(), strings.TrimPrefix(server.URL(), "http://"), "")
		if err == nil || !strings.Contains(err.Error(), "own machine") || asked != 0 {
			t.Errorf("from %s: %v", ip, err)
		}
		return
	}
	t.Skip("this machine has no address but loopback")
}
