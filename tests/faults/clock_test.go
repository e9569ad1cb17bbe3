package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/tests/faults/crowd"
	"github.com/geniemq/geniemq/tests/faults/history"
	"github.com/geniemq/geniemq/wire"
)

func TestSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("builds everything that knows the time")
	}
	dir := t.TempDir()
	if err := buildStepped(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	t.Run("AreReal", func(t *testing.T) { stepsAreReal(t, steppedProgram(dir)) })
	for _, who := range []string{"worker", "server", "both"} {
		t.Run("LeaveReady/"+who, func(t *testing.T) {
			t.Parallel()
			stepsLeaveReady(t, steppedProgram(dir), who)
		})
	}
}

// The time of day may jump, of a worker, of its server, or of the host of both: the worker is ready and answers as before, and goes on to do so for longer
// than after which silence counts as a fault (30 s).
func stepsLeaveReady(t *testing.T, program, who string) {
	h, dir := &host{needed: map[need]bool{clocks: true}, stepped: program}, t.TempDir()
	file, _, err := crowd.New(1).Build(dir, "crowd.gmq")
	if err != nil {
		t.Fatal(err)
	}
	servers, err := newCluster(dir, 1, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { servers.end(false) })
	admin, err := h.ports.free()
	if err != nil {
		t.Fatal(err)
	}
	worker := &part{name: "w1", role: "worker", dir: dir, args: []string{"--index", crowd.IndexName + "=" + file, "--nats", servers.urls(), "--admin", admin, "--engine", "cpu", "--engine-threads", "1"}}
	clock, err := newClock(worker, program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { clock.file.Close() })
	if err := servers.nodes[0].awake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := worker.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { worker.signal(syscall.SIGTERM); <-worker.ended })
	js, err := connect(servers.urls())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(js.Conn().Close)
	ready := func() error {
		if !worker.running() {
			log, _ := os.ReadFile(filepath.Join(dir, "w1.log"))
			t.Fatalf("the worker ended:\n%s", log)
		}
		response, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
			return errors.Join(err, fmt.Errorf("%s: %s", response.Status, text))
		}
		return nil
	}
	question, asked := crowd.Question(1, 0)
	want := crowd.New(1).Answer(asked)
	asks := func() {
		t.Helper()
		answers, err := js.Conn().SubscribeSync(nats.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answers.Unsubscribe() }()
		msg := nats.NewMsg(wire.Subjects{}.Query(crowd.IndexName))
		msg.Header.Set(wire.HeaderReply, answers.Subject)
		msg.Data = wire.AppendQuery(nil, wire.JSON, &question)
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
		answer, err := answers.NextMsgWithContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		result, err := wire.DecodeAnswer(wire.JSON, answer.Data)
		if err != nil {
			t.Fatal(err)
		}
		if got := crowd.AnswerText(&result.Results[0]); got != want {
			t.Errorf("answered %q, not %q", got, want)
		}
	}
	testkit.Eventually(t, ready)
	asks()
	for _, step := range []time.Duration{largestStep, 0, -largestStep} {
		if who != "server" {
			if err := clock.set(step); err != nil {
				t.Fatal(err)
			}
		}
		if who != "worker" {
			if err := servers.nodes[0].setClock(step); err != nil {
				t.Fatal(err)
			}
		}
		testkit.Eventually(t, ready)
		asks()
	}
	time.Sleep(35 * time.Second)
	testkit.Eventually(t, ready)
	asks()
}

// A part's clock jumps when it is set, and what it measures does not.
func stepsAreReal(t *testing.T, program string) {
	dir := t.TempDir()
	p := &part{name: "clock", role: "clock", dir: dir}
	c, err := newClock(p, program)
	if err != nil {
		t.Fatal(err)
	}
	defer c.file.Close()
	if err := c.set(-largestStep); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	text, err := os.ReadFile(filepath.Join(dir, "clock.log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(text))
	if len(lines) != 3 {
		t.Fatalf("it says %q", text)
	}
	first, err := history.Moment(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	if behind := before.Sub(first); behind > largestStep || behind < largestStep-time.Since(before) {
		t.Errorf("its clock is %v behind one that is an hour ahead of it", behind)
	}
	for i, ahead := range map[int]bool{1: true, 2: false} { // it has set its own clock to an hour ahead: seen by the time of day, and not by what has passed
		took, err := time.ParseDuration(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		if (took >= 2*largestStep) != ahead || took < 0 {
			t.Errorf("a step of two hours measures %v", took)
		}
	}
}
