package main

import (
	"bytes"
	"fmt"
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
	o := Options{Count: 10, Seed: seeded.Seed(t), Servers: 1, Workers: 2, Rate: 40, Dir: t.TempDir(), AckWait: time.Second, Patience: 3 * time.Minute, Log: &log}
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
		logs, _ := filepath.Glob(filepath.Join(o.Dir, "*.log"))
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
	if report.Faults < o.Count || report.Verdict.Answered == 0 {
		t.Errorf("%d faults, %d answers", report.Faults, report.Verdict.Answered)
	}
}

// TestJudge: the judge finds what histories are made to show, and nothing in one that is right.
func TestJudge(t *testing.T) {
	const n = 300
	seed := seeded.Seed(t)
	tables := []crowd{newCrowd(seed), newCrowd(seed + 1)}
	now := time.Now()
	var asks, answers []string
	for i := range n {
		_, q := question(seed, i)
		at := now.Add(time.Duration(i) * time.Second)
		asks = append(asks, accepted{questionID(seed, i), at, at}.line())
		answers = append(answers, answered{"1", uint64(i + 1), at, at, questionID(seed, i), fmt.Sprintf("v%d", i%2), tables[i%2].answer(q)}.line())
	}
	check := func(name string, asks, answers []string, excuse time.Time, lost, doubled, wrong, withdrawn int) {
		t.Helper()
		dir := t.TempDir()
		files := map[string]string{versionsLog: fmt.Sprintf("v0\t%d\nv1\t%d\n", seed, seed+1), acceptedLog: strings.Join(asks, ""), answersLog: strings.Join(answers, "")}
		if !excuse.IsZero() {
			files[excusedLog] = fmt.Sprintf("%d\n", excuse.UnixNano())
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		v, err := judge(dir, seed)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v.Lost != lost || v.Doubled != doubled || v.Wrong != wrong || v.Withdrawn != withdrawn || v.Accepted != len(asks) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	var never time.Time
	with := func(line string) []string { return append(answers[:n:n], line) }
	_, q := question(seed, 7)
	id := questionID(seed, 7)
	check("right", asks, answers, never, 0, 0, 0, 0)
	check("one answer is missing", asks, append(answers[:5:5], answers[6:]...), never, 1, 0, 0, 0)
	check("it was withdrawn", asks, append(answers[:5:5], answers[6:]...), now.Add(6*time.Second), 0, 0, 0, 1)
	check("it was accepted after what withdrew others", asks, append(answers[:5:5], answers[6:]...), now.Add(5*time.Second), 1, 0, 0, 0)
	check("written down twice", asks, with(answers[9]), never, 0, 0, 0, 0)
	check("answered twice", asks, with(answered{"1", n + 1, now.Add(8 * time.Second), now.Add(8 * time.Second), id, "v1", tables[1].answer(q)}.line()), never, 0, 1, 0, 0)
	check("again, beyond the window", asks, with(answered{"1", n + 1, now.Add(time.Hour), now.Add(time.Hour), id, "v1", tables[1].answer(q)}.line()), never, 0, 0, 0, 0)
	check("again, in another stream", asks, with(answered{"2", 1, now.Add(8 * time.Second), now.Add(8 * time.Second), id, "v1", tables[1].answer(q)}.line()), never, 0, 0, 0, 0)
	check("wrong", asks, append(append(answers[:7:7], answered{"1", 8, now, now, id, "v1", "1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1"}.line()), answers[8:]...), never, 0, 0, 1, 0)
	check("of a version that never was", asks, append(append(answers[:7:7], answered{"1", 8, now, now, id, "v3", tables[1].answer(q)}.line()), answers[8:]...), never, 0, 0, 1, 0)
	check("of the other version's table", asks, append(append(answers[:wrongEvery-1:wrongEvery-1], answered{"1", wrongEvery, now, now, questionID(seed, wrongEvery-1), "v1", "1:1"}.line()), answers[wrongEvery:]...), never, 0, 0, 1, 0)
	check("nobody asked", asks, with(answered{"1", n + 1, now, now, "stranger", "v1", ""}.line()), never, 0, 0, 1, 0)
}
