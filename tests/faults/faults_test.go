package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestFaults is the short form: a random choice of faults, each once, on one server and two workers. The command's has three servers.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of waiting; the form that is not -short runs it")
	}
	var log bytes.Buffer
	o := Options{Count: 10, Seed: seeded.Seed(t), Worlds: 1, Servers: 1, Workers: 2, Rate: 40, Dir: t.TempDir(), AckWait: time.Second, Patience: 3 * time.Minute, Log: &log}
	for _, f := range faults {
		if f.name != "lame duck" && f.name != "engine slow" { // which take long
			o.Only = append(o.Only, f.name)
		}
	}
	report, err := Run(t.Context(), o)
	if report != nil {
		report.Print(&log)
	}
	t.Log(log.String())
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(o.Dir, "*", "*.log"))
		for _, path := range logs {
			if name := filepath.Base(path); name[0] == 'w' || name[0] == 'n' || name == "asker.log" || name == "reader.log" {
				text, _ := os.ReadFile(path)
				t.Logf("%s ends with:\n%s", name, text[max(0, len(text)-4000):])
			}
		}
		t.Fatal(err)
	}
	for name, missing := range report.Missing {
		if isDisk := strings.Contains(name, "disk"); !isDisk || os.Getenv("CI") == "true" {
			t.Errorf("%s was not injected: %v", name, missing)
		}
	}
	if sum := report.Sum(); sum.Faults < o.Count || sum.Verdict.Answered == 0 {
		t.Errorf("%d faults, %d answers", sum.Faults, sum.Verdict.Answered)
	}
}
