package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

var deploy = filepath.Join("..", "deploy")

// monitoringTool is a program of Debian's package prometheus.
func monitoringTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed (Debian's package prometheus), and CI=true", name)
	} else if err != nil {
		t.Skipf("%s is not installed (Debian's package prometheus)", name)
	}
	return path
}

// ruleFile is a file of rules, as far as tests look.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Record, Alert, Expr, For string
		}
	}
}

func readRules(t *testing.T, name string) (rules ruleFile) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "prometheus", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yamlv3.Unmarshal(text, &rules); err != nil || len(rules.Groups) == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return rules
}

// Each alert fires on what it is for, none does when all is well, and people can read what to do.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool := monitoringTool(t, "promtool")
	dir := filepath.Join(deploy, "prometheus")
	for _, args := range [][]string{
		{"check", "rules", filepath.Join(dir, "rules.yml"), filepath.Join(dir, "alerts.yml")},
		{"test", "rules", filepath.Join(dir, "tests.yml")},
		{"check", "config", "--syntax-only", filepath.Join(dir, "prometheus.yml")},
	} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	unit, err := os.ReadFile(filepath.Join(dir, "tests.yml"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range readRules(t, "alerts.yml").Groups {
		for _, rule := range group.Rules {
			if strings.Count(string(unit), "alertname: "+rule.Alert+"\n") != 1 || strings.Count(string(unit), "alertname: "+rule.Alert+",") != 1 {
				t.Errorf("tests.yml does not say when %s fires and when not", rule.Alert)
			}
			if !strings.Contains(string(page), "| `"+rule.Alert+"` |") {
				t.Errorf("docs/metrics.md does not say what to do about %s", rule.Alert)
			}
		}
	}
}

// dashboard is a dashboard of Grafana, as far as tests look.
type dashboard struct {
	UID    string
	Title  string
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, RefID string }
	}
}

func readDashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(deploy, "grafana", "*.json"))
	if err != nil || len(files) < 4 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID+".json" != filepath.Base(file) {
			t.Errorf("%s has the uid %s", file, d.UID)
		}
		all = append(all, d)
	}
	return all
}

// Panels of a dashboard have numbers and names of their own, lie side by side, and ask something.
func TestDashboards(t *testing.T) {
	for _, d := range readDashboards(t) {
		ids, taken := make(map[int]bool), make(map[[2]int]string)
		for _, p := range d.Panels {
			if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || (len(p.Targets) == 0) != (p.Type == "row") {
				t.Errorf("%s: panel %d %q is wrong: %+v", d.UID, p.ID, p.Title, p)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %q lies over %q", d.UID, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

// promServer is a real Prometheus that scrapes workers twice a second.
type promServer struct {
	t   *testing.T
	url string
}

// startPrometheus starts one with the rules of deploy, whose alerts wait for nothing before they fire. So that a test need not wait either, what is looked at for a
// minute is for five seconds, and what is old after five minutes is after three seconds.
func startPrometheus(t *testing.T, workers ...string) *promServer {
	t.Helper()
	prometheus := monitoringTool(t, "prometheus")
	dir := t.TempDir()
	for _, name := range []string{"rules.yml", "alerts.yml"} {
		text, err := os.ReadFile(filepath.Join(deploy, "prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`(?m)^( *)for: \S+$`).ReplaceAll(text, []byte("${1}for: 0s"))
		writeFile(t, dir, name, []byte(strings.NewReplacer("[1m]", "[5s]", "> 300", "> 3").Replace(string(text))))
	}
	file := writeFile(t, dir, "prometheus.yml", fmt.Appendf(nil, `
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 200ms}
rule_files: [rules.yml, alerts.yml]
scrape_configs:
  - {job_name: geniemq, static_configs: [{targets: [%s]}]}
`, strings.ReplaceAll(strings.Join(workers, ", "), "http://", "")))
	for attempt := 0; ; attempt++ {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := listener.Addr().String()
		listener.Close()
		var log lockedText
		ctx, stop := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, prometheus, "--config.file", file, "--storage.tsdb.path", filepath.Join(dir, fmt.Sprint("data", attempt)),
			"--web.listen-address", at, "--log.level=warn", "--enable-feature=exemplar-storage")
		cmd.Stdout, cmd.Stderr = &log, &log
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = patience
		if err := cmd.Start(); err != nil {
			stop()
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // what it says is in its log
		}()
		p := &promServer{t, "http://" + at}
		if p.ready(ended) {
			t.Cleanup(func() { stop(); <-ended })
			return p
		}
		stop()
		<-ended
		if attempt == 5 {
			t.Fatalf("prometheus does not start:\n%s", log.String())
		}
		t.Logf("prometheus at %s: %s", at, log.String()) // somebody took the port
	}
}

// ready waits until the server answers and says that it is itself, or ends.
func (p *promServer) ready(ended <-chan struct{}) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
		if resp, err := http.Get(p.url + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
		}
	}
	return false
}

// ask evaluates an expression and returns how many series it has.
func (p *promServer) ask(expr string) (series int, err error) {
	resp, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Error string
		Data  struct{ Result []any }
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error != "" {
		return 0, fmt.Errorf("%s: %w %s", expr, err, body)
	}
	return len(answer.Data.Result), nil
}

// comparison is what the expression of an alert ends in.
var comparison = regexp.MustCompile(`\s(?:==|!=|>=|<=|>|<)\s*-?[\d.]+\s*$`)

// A real Prometheus scrapes a real worker under load: every query of every panel, rule and alert has series.
func TestDashboardsLive(t *testing.T) {
	if testing.Short() {
		t.Skip("Prometheus needs some seconds to see something")
	}
	t.Parallel()
	monitoringTool(t, "prometheus")
	r := start(t, config.Config{Admin: "127.0.0.1:0", SlowQuery: time.Nanosecond}, service.Options{Logger: textLogger(&lockedText{})})
	p := startPrometheus(t, r.srv.AdminURL())
	load, stop := context.WithCancel(t.Context())
	var loading sync.WaitGroup
	loading.Go(func() { r.load(load) })
	defer loading.Wait()
	defer stop()

	place := strings.NewReplacer("$index", ".*", "$instance", ".*", "$__rate_interval", "1m", "$__range", "5m")
	var asked []string
	for _, d := range readDashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				asked = append(asked, place.Replace(target.Expr))
			}
		}
	}
	var alerts []string
	for _, name := range []string{"rules.yml", "alerts.yml"} {
		for _, group := range readRules(t, name).Groups {
			for _, rule := range group.Rules {
				if rule.Alert == "" {
					asked = append(asked, rule.Record, rule.Expr)
					continue
				}
				bare := comparison.ReplaceAllString(rule.Expr, "")
				if bare == rule.Expr {
					t.Errorf("the expression of %s does not end in a comparison: %s", rule.Alert, rule.Expr)
				}
				alerts, asked = append(alerts, rule.Alert), append(asked, bare)
			}
		}
	}
	if len(asked) < 80 || len(alerts) < 15 {
		t.Fatalf("only %d queries and %d alerts were found", len(asked), len(alerts))
	}
	testkit.Eventually(t, func() error {
		asked = slices.DeleteFunc(asked, func(expr string) bool {
			n, err := p.ask(expr)
			if err != nil {
				t.Fatal(err)
			}
			return n > 0
		})
		if len(asked) > 0 {
			return fmt.Errorf("%d queries have no series:\n%s", len(asked), strings.Join(asked, "\n"))
		}
		return nil
	})
}

// load asks all indexes in all ways until ctx ends.
func (r *running) load(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		for index, body := range map[string]string{"people": `{"row":{"age":30}}`, "words": `{"text":"aple","radius":1}`, "papers": `{"text":"inverted index"}`} {
			if _, err := r.js.PublishMsg(ctx, message("genie.query."+index, body)); err != nil && ctx.Err() == nil {
				r.t.Errorf("under load: %v", err)
				return
			}
			if _, err := r.nc.RequestWithContext(ctx, "genie.search."+index, []byte(body)); err != nil && ctx.Err() == nil {
				r.t.Errorf("under load: %v", err)
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
