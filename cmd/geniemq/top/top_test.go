package top

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/live"
)

var update = flag.Bool("update", false, "write testdata anew: look at each screen before it is kept")

// busy is an event of a worker with two indexes, one of which is being swapped, and a third that nobody asks.
func busy() *admin.Event {
	stages := func(scale float64) []live.Stage {
		var all []live.Stage
		for i, name := range []string{"queue", "batch", "engine", "verify", "publish", "total"} {
			all = append(all, live.Stage{Name: name, P50: scale * float64(i+1) * 0.00021, P99: scale * float64(i+1) * 0.0017})
		}
		return all
	}
	return &admin.Event{
		Version: "1.4.0", Ready: true, Uptime: 93784, NATS: "nats://broker-1.example.org:4222, nats://broker-2.example.org:4222, nats://broker-3.example.org:4222",
		Engine: "cuda on NVIDIA H200 (141 GiB), cpu on 16 cores",
		Indexes: []admin.EventIndex{
			{Name: "adult", Version: "45313cf6c922f8b0", Retiring: "2df8f213ddb053a8", Waiting: 1204},
			{Name: "a_name_of_sixty_four_letters_that_somebody_has_given_to_an_index", Version: "8bacb1b4630d0858", Waiting: 0},
			{Name: "quiet", Version: "7883cd84d7f5d1ff"},
		},
		Memory: []admin.EventHeld{
			{Where: "gpu 0", Owner: "adult 45313cf6c922f8b0", Bytes: 7 << 30}, {Where: "gpu 0", Owner: "adult 2df8f213ddb053a8", Bytes: 6 << 30},
			{Where: "host", Owner: "engine", Bytes: 896 << 10},
		},
		Figures: live.Figures{
			Seconds: 10, Busy: 0.734,
			Indexes: []live.Index{
				{Name: "adult", Rate: 48213.4, Errors: 0.3, Waiting: 1204, Stages: stages(1), Batches: 61.2, PerBatch: 787.8,
					Sizes: []live.Size{{UpTo: 1, Batches: 3}, {UpTo: 512, Batches: 40}, {UpTo: 1024, Batches: 569}}, Reasons: []live.Count{{Name: "full", Count: 500}, {Name: "timer", Count: 112}}},
				{Name: "a_name_of_sixty_four_letters_that_somebody_has_given_to_an_index", Rate: 0.4, Stages: stages(400), Batches: 0.4, PerBatch: 1,
					Sizes: []live.Size{{UpTo: 1, Batches: 4}}, Reasons: []live.Count{{Name: "timer", Count: 4}}},
			},
			Dead: []live.Count{{Name: "bad_object", Count: 2}, {Name: "bad_reply", Count: 0}, {Name: "engine_failed", Count: 1}, {Name: "unknown_index", Count: 17}},
		},
	}
}

// shown is what a terminal of so many columns and rows shows after what has come.
func shown(t *testing.T, width, height int, came ...tea.Msg) string {
	t.Helper()
	s := &screen{addr: "127.0.0.1:9464", page: &table.Page{}, width: 80}
	for _, msg := range append([]tea.Msg{tea.WindowSizeMsg{Width: width, Height: height}}, came...) {
		s.Update(msg)
		s.told = time.Date(2026, 5, 17, 10, 30, 15, 0, time.UTC)
	}
	content := s.View().Content
	lines := strings.Split(content, "\n")
	if height > 0 && len(lines) > height {
		t.Errorf("%d lines in a window of %d", len(lines), height)
	}
	for _, line := range lines {
		if table.Width(line) > width {
			t.Errorf("a line of %d cells in a window of %d: %q", table.Width(line), width, line)
		}
		if strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%q commands the terminal", line)
		}
	}
	return content
}

// TestScreens: what terminals of three widths show of a busy worker, one that does not tell any more, one that is not ready and serves nothing, and of many indexes in a
// window that is too low.
func TestScreens(t *testing.T) {
	gone := errors.New("the worker at 127.0.0.1:9464 is gone: EOF")
	empty := &admin.Event{Version: "1.4.0", Ready: true, Uptime: 1, NATS: "nats://127.0.0.1:4222", Engine: "cpu on 2 cores"}
	ends := &admin.Event{Version: "1.4.0", Uptime: 90, NotReady: []string{"shutting down"}}
	lost := &admin.Event{Version: "1.4.0", Indexes: []admin.EventIndex{{Name: "adult"}}, NotReady: []string{"the connection to NATS is lost: nats: no servers available for connection, at nats://broker-1.example.org:4222"}, NATS: "not connected", Engine: "cpu on 2 cores"}
	many := busy()
	many.Indexes = nil
	for i := range 50 {
		many.Indexes = append(many.Indexes, admin.EventIndex{Name: fmt.Sprintf("index_%02d", i), Version: "45313cf6c922f8b0", Waiting: int64(i)})
	}
	down := tea.KeyPressMsg{Code: tea.KeyDown}
	page := tea.KeyPressMsg{Code: tea.KeyPgDown}
	for _, c := range []struct {
		name   string
		height int
		came   []tea.Msg
	}{
		{"busy", 60, []tea.Msg{busy()}},
		{"gone", 60, []tea.Msg{busy(), gone}},
		{"never there", 24, []tea.Msg{gone}},
		{"listening", 24, nil},
		{"nothing served", 24, []tea.Msg{empty}},
		{"not ready", 24, []tea.Msg{lost}},
		{"shutting down", 24, []tea.Msg{ends}},
		{"many", 24, []tea.Msg{many}},
		{"many, further down", 24, []tea.Msg{many, page, down, down}},
		{"many, at the end", 24, []tea.Msg{many, page, page, page, page, page, page, page}},
		{"many, gone", 12, []tea.Msg{many, gone}},
		{"hostile", 24, []tea.Msg{&admin.Event{Version: "\x1b[2J", Engine: "\x1b]0;a\a", NATS: "\u009b2J", Indexes: []admin.EventIndex{{Name: "\r\u202e"}}}}},
	} {
		for _, width := range []int{80, 120, 200} {
			path := filepath.Join("testdata", fmt.Sprintf("%s_%d.txt", strings.NewReplacer(",", "", " ", "_").Replace(c.name), width))
			got := shown(t, width, c.height, c.came...) + "\n"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s, %d columns:\n%s\nwant\n%s\n(-update writes it anew)", c.name, width, got, want)
			}
		}
	}
}

// TestResized: whatever size a window takes meanwhile, what is shown fits it, and what was scrolled to stays within what there is.
func TestResized(t *testing.T) {
	e := busy()
	for width := 1; width < 210; width += 13 {
		for height := 1; height < 60; height += 7 {
			if width < 40 { // numbers are not cut, and the terminal cuts what is left
				continue
			}
			shown(t, width, height+3, tea.WindowSizeMsg{Width: 200, Height: 5}, e, tea.KeyPressMsg{Code: tea.KeyPgDown}, tea.KeyPressMsg{Code: tea.KeyPgDown}, tea.WindowSizeMsg{Width: width, Height: height + 3})
		}
	}
}
