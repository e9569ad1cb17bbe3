package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/cmd/geniemq/planned"
)

// The figures of GENIE's section IV by the command, in its three forms.
func TestPlan(t *testing.T) {
	figure := filepath.Join(t.TempDir(), "figure.svg")
	got := command(t, "", nil, "plan", "--epsilon", "0.06", "--delta", "0.06", "--plot", figure, "--json=false")
	if got.code != exitDone {
		t.Fatal(got.err)
	}
	for _, want := range []string{"Theorem 4.1  2174  ", "Eqn 9         258  at ", "the worst s of 0.01 to 0.99, s = 0.50", "both ends included", "0.20  166  ", "┤"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("plan does not say %q:\n%s", want, got.out)
		}
	}
	svg, err := os.ReadFile(figure)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"m = 258 at s = 0.50", "similarity s", "hash functions m"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the figure does not say %q", want)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the figure is no XML: %v", err)
		}
	}

	got = command(t, "", nil, "plan") // to no terminal
	var report planned.Report
	if err := json.Unmarshal([]byte(got.out), &report); got.code != exitDone || err != nil {
		t.Fatalf("%v\n%s%s", err, got.out, got.err)
	}
	if report.Theorem41 != 2174 || report.Eqn9.Largest.Functions != 258 || len(report.Eqn9.Points) != 99 || report.Eqn9.Points[9].Functions != 88 {
		t.Errorf("%+v", report)
	}

	for says, args := range map[string][]string{
		"epsilon 0:":            {"plan", "--epsilon", "0"},
		"epsilon NaN:":          {"plan", "--epsilon", "NaN"},
		"epsilon 0.0001:":       {"plan", "--epsilon", "0.0001"},
		"delta 1:":              {"plan", "--delta", "1"},
		"--objects 0:":          {"plan", "--objects", "0"},
		`unknown command "now"`: {"plan", "now"},
	} {
		if got := command(t, "", nil, args...); got.code != exitUsage || !strings.Contains(got.err, says) {
			t.Errorf("%v: exit code %d: %s", args, got.code, got.err)
		}
	}
	if got := command(t, "", nil, "plan", "--plot", filepath.Join(t.TempDir(), "none", "x.svg")); got.code != exitFailed || !strings.Contains(got.err, "drawing the plot") {
		t.Errorf("a plot that cannot be written: exit code %d: %s", got.code, got.err)
	}
}
