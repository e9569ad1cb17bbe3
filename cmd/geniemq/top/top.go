// Package top shows what a running worker does.
package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/service/admin"
)

// errEnough ends listening.
var errEnough = errors.New("enough")

// Worker is where a worker is asked: the address of its admin server, and its token, if it has one.
type Worker struct{ Addr, Token string }

// Once prints the figures of one second, as a table or as JSON.
func Once(ctx context.Context, p *table.Page, w Worker, asJSON bool) error {
	seen := 0
	err := admin.Listen(ctx, w.Addr, w.Token, func(e *admin.Event) error {
		if seen++; seen == 1 { // its figures are since the worker's start
			return nil
		}
		if !asJSON {
			Print(p, w.Addr, e)
			return errEnough
		}
		if err := p.JSON(e, ""); err != nil {
			return err
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Live shows the figures until the user presses q or ctx ends. A worker that is gone is waited for.
func Live(ctx context.Context, p *table.Page, in io.Reader, w Worker) error {
	ctx, cancel := context.WithCancel(ctx)
	program := tea.NewProgram(&screen{addr: w.Addr, page: p, width: p.Width}, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(p.Writer), tea.WithoutSignalHandler())
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		for ctx.Err() == nil {
			err := admin.Listen(ctx, w.Addr, w.Token, func(e *admin.Event) error {
				program.Send(e)
				return nil
			})
			program.Send(err)
			select {
			case <-ctx.Done():
			case <-time.After(admin.EventInterval):
			}
		}
	}()
	_, err := program.Run()
	cancel()
	<-listening
	if errors.Is(err, tea.ErrProgramKilled) && errors.Is(err, context.Canceled) || errors.Is(err, tea.ErrInterrupted) {
		return nil // Ctrl-C is how such programs are ended
	}
	return err
}

// screen is what is shown live.
type screen struct {
	addr          string
	page          *table.Page
	width, height int
	first         int // line that is shown, of those that there is not room for
	event         *admin.Event
	fault         error
	told          time.Time // when it came
}

func (s *screen) Init() tea.Cmd { return nil }

// Update takes events of the worker, the errors of listening to it, and what the terminal says.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case *admin.Event:
		s.event, s.told, s.fault = m, time.Now(), nil
	case error:
		s.fault = m
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		switch m.String() {
		case "q", "esc", "ctrl+c":
			return s, tea.Quit
		case "down", "j":
			s.first++
		case "up", "k":
			s.first--
		case "pgdown", "space":
			s.first += s.room()
		case "pgup":
			s.first -= s.room()
		case "home":
			s.first = 0
		}
	}
	return s, nil
}

// room is how many lines there are above the foot. A window of unknown height has room for all.
func (s *screen) room() int {
	if s.height == 0 {
		return math.MaxInt
	}
	return max(s.height-2, 1)
}

// lines are what there is to be shown. What keeps the worker from telling comes first, as nothing else is of now.
func (s *screen) lines() []string {
	var out bytes.Buffer
	p := &table.Page{Writer: &out, Width: s.width, Colour: s.page.Colour}
	switch {
	case s.fault != nil && s.event != nil:
		p.Say("%s; trying again. This is of %s:\n\n", s.fault.Error(), s.told.Format(time.TimeOnly))
	case s.fault != nil:
		p.Say("%s; trying again\n", s.fault.Error())
	case s.event == nil:
		p.Say("listening to %s\n", s.addr)
	}
	if s.event != nil {
		Print(p, s.addr, s.event)
	}
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}

// View is the screen as it is to be.
func (s *screen) View() tea.View {
	lines, foot := s.lines(), "q ends"
	s.first = max(min(s.first, len(lines)-s.room()), 0)
	if all := len(lines); all > s.room() {
		lines = lines[s.first : s.first+s.room()]
		foot = table.Cut(fmt.Sprintf("q ends; lines %d to %d of %d, up and down move", s.first+1, s.first+len(lines), all), max(s.width, 1))
	}
	view := tea.NewView(strings.Join(lines, "\n") + "\n\n" + foot)
	view.AltScreen = true
	view.WindowTitle = "geniemq " + s.addr
	return view
}
