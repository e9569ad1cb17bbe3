// Package top shows what a running worker does.
package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := p.Write(append(table.EscapeJSON(text), '\n')); err != nil {
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
	event         *admin.Event
	fault         error
}

func (s *screen) Init() tea.Cmd { return nil }

// Update takes events of the worker, the errors of listening to it, and what the terminal says.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case *admin.Event:
		s.event, s.fault = m, nil
	case error:
		s.fault = m
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		switch m.String() {
		case "q", "esc", "ctrl+c":
			return s, tea.Quit
		}
	}
	return s, nil
}

// View is the screen as it is to be.
func (s *screen) View() tea.View {
	var out bytes.Buffer
	p := &table.Page{Writer: &out, Width: s.width, Colour: s.page.Colour}
	switch {
	case s.event != nil:
		Print(p, s.addr, s.event)
	case s.fault == nil:
		p.Say("listening to %s\n", s.addr)
	}
	if s.fault != nil {
		p.Say("\n%s; trying again\n", s.fault.Error())
	}
	const foot = "q ends"
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if most := s.height - 2; most > 0 && len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("%d lines more: the window is too low", len(lines)-most+1))
	}
	view := tea.NewView(strings.Join(lines, "\n") + "\n\n" + foot)
	view.AltScreen = true
	view.WindowTitle = "geniemq " + s.addr
	return view
}
