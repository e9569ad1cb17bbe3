package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/tests/faults/crowd"
	"github.com/geniemq/geniemq/tests/faults/history"
)

// answerLine is an answer that was read when it was stored.
func answerLine(incarnation string, sequence uint64, stored time.Time, id, version, text string) string {
	return history.Answered{Incarnation: incarnation, Sequence: sequence, Stored: stored, Read: stored, ID: id, Version: version, Answer: text}.Line()
}

// TestJudge: the judge finds what histories are made to show, and nothing in one that is right.
func TestJudge(t *testing.T) {
	const n = 300
	seed := seeded.Seed(t)
	tables := []crowd.Table{crowd.New(seed), crowd.New(seed + 1)}
	now := time.Now()
	var asks, answers []string
	for i := range n {
		_, q := crowd.Question(seed, i)
		at := now.Add(time.Duration(i) * time.Second)
		asks = append(asks, history.Accepted{ID: crowd.QuestionID(seed, i), Began: at, Stored: at}.Line())
		answers = append(answers, answerLine("1", uint64(i+1), at, crowd.QuestionID(seed, i), fmt.Sprintf("v%d", i%2), tables[i%2].Answer(q)))
	}
	check := func(name string, asks, answers []string, excuse time.Time, lost, doubled, wrong, withdrawn int) {
		t.Helper()
		dir := t.TempDir()
		files := map[string]string{history.VersionsLog: fmt.Sprintf("v0\t%d\nv1\t%d\n", seed, seed+1), history.AcceptedLog: strings.Join(asks, ""), history.AnswersLog: strings.Join(answers, "")}
		if !excuse.IsZero() {
			files[history.ExcusedLog] = history.Excuse{From: now.Add(3 * time.Second), To: excuse}.Line()
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		v, err := Judge(dir, seed)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v.Lost != lost || v.Doubled != doubled || v.Wrong != wrong || v.Withdrawn != withdrawn || v.Accepted != len(asks) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	var never time.Time
	with := func(line string) []string { return append(answers[:n:n], line) }
	_, q := crowd.Question(seed, 7)
	id := crowd.QuestionID(seed, 7)
	check("right", asks, answers, never, 0, 0, 0, 0)
	check("one answer is missing", asks, append(answers[:5:5], answers[6:]...), never, 1, 0, 0, 0)
	check("it was withdrawn", asks, append(answers[:5:5], answers[6:]...), now.Add(6*time.Second), 0, 0, 0, 1)
	check("it was accepted after what withdrew others", asks, append(answers[:5:5], answers[6:]...), now.Add(5*time.Second), 1, 0, 0, 0)
	check("it was to be answered before that", asks, append(answers[:2:2], answers[3:]...), now.Add(6*time.Second), 1, 0, 0, 0)
	check("written down twice", asks, with(answers[9]), never, 0, 0, 0, 0)
	check("answered twice", asks, with(answerLine("1", n+1, now.Add(8*time.Second), id, "v1", tables[1].Answer(q))), never, 0, 1, 0, 0)
	check("again, beyond the window", asks, with(answerLine("1", n+1, now.Add(time.Hour), id, "v1", tables[1].Answer(q))), never, 0, 0, 0, 0)
	check("again, in another stream", asks, with(answerLine("2", 1, now.Add(8*time.Second), id, "v1", tables[1].Answer(q))), never, 0, 0, 0, 0)
	check("wrong", asks, append(append(answers[:7:7], answerLine("1", 8, now, id, "v1", "1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1")), answers[8:]...), never, 0, 0, 1, 0)
	check("of a version that never was", asks, append(append(answers[:7:7], answerLine("1", 8, now, id, "v3", tables[1].Answer(q))), answers[8:]...), never, 0, 0, 1, 0)
	check("of the other version's table", asks, append(append(answers[:crowd.WrongEvery-1:crowd.WrongEvery-1], answerLine("1", crowd.WrongEvery, now, crowd.QuestionID(seed, crowd.WrongEvery-1), "v1", "1:1")), answers[crowd.WrongEvery:]...), never, 0, 0, 1, 0)
	check("nobody asked", asks, with(answerLine("1", n+1, now, "stranger", "v1", "")), never, 0, 0, 1, 0)
}

// The judge takes servers' clocks into account as the conductor has set them, and no further: what they do not explain is a fault as ever.
func TestJudgeKnowsTheClocks(t *testing.T) {
	seed := seeded.Seed(t)
	own, now := crowd.New(seed), time.Now().Add(-3*time.Hour)
	const n = crowd.TimedEvery - 1 // has a timeout
	question := func(n int) (id, right, ask string) {
		_, asked := crowd.Question(seed, n)
		id = crowd.QuestionID(seed, n)
		return id, own.Answer(asked), history.Accepted{ID: id, Began: now, Stored: now.Add(time.Second)}.Line()
	}
	id, right, ask := question(n)
	otherID, otherRight, otherAsk := question(0)
	event := func(server, what string, at, ahead time.Duration) history.Turn {
		return history.Turn{At: now.Add(at), Server: server, What: what, Ahead: ahead}
	}
	set := func(at, ahead time.Duration) history.Turn { return event("n1", history.ClockSet, at, ahead) }
	anew := event("n1", history.Started, 15*time.Second, 0)
	answer := func(sequence uint64, stored, read time.Duration, text string) string {
		return history.Answered{Incarnation: "1", Sequence: sequence, Stored: now.Add(stored), Read: now.Add(read), ID: id, Version: "v0", Answer: text}.Line()
	}
	other := func(stored time.Duration) string {
		return history.Answered{Incarnation: "1", Sequence: 2, Stored: now.Add(stored), Read: now.Add(9 * time.Second), ID: otherID, Version: "v0", Answer: otherRight}.Line()
	}
	first, again := answer(1, 2*time.Second, 2*time.Second, right), answer(3, 20*time.Second, 20*time.Second, right)
	twice, late := first+other(9*time.Second)+again, func(stored time.Duration) string {
		return other(stored) + answer(3, stored, 9*time.Second, crowd.TooLate)
	}
	backAnHour := []history.Turn{set(5*time.Second, -time.Hour), set(10*time.Second, 0)}
	for _, c := range []struct {
		name                           string
		turns                          []history.Turn
		answers                        string
		doubled, wrong, expired, again int
	}{
		{"no clock was set", nil, twice, 1, 0, 0, 0},
		{"set forward by less than the window", []history.Turn{set(5*time.Second, 5*time.Minute), set(10*time.Second, 0)}, twice, 1, 0, 0, 0},
		{"set forward by more, between the two", []history.Turn{set(5*time.Second, time.Hour), set(10*time.Second, 0)}, twice, 0, 0, 0, 1},
		{"set forward by more, before the query", []history.Turn{set(-50*time.Second, time.Hour), set(-40*time.Second, 0)}, twice, 1, 0, 0, 0},
		{"set forward by more, after both", []history.Turn{set(50*time.Second, time.Hour), set(60*time.Second, 0)}, twice, 1, 0, 0, 0},
		{"set forward by more, of a server that cannot have stored the second", []history.Turn{event("n2", history.Started, -time.Hour, 0), event("n2", history.ClockSet, -time.Minute, time.Hour)}, twice, 1, 0, 0, 0},
		{"set back, and nobody forgot", backAnHour, first + other(9*time.Second-time.Hour) + again, 1, 0, 0, 0},
		{"set back and started anew, with an old stamp between the two", append(backAnHour[:2:2], anew), first + other(9*time.Second-time.Hour) + again, 0, 0, 0, 1},
		{"set back and started anew, with no old stamp between the two", append(backAnHour[:2:2], anew), twice, 1, 0, 0, 0},
		{"set back and started anew, with an old stamp before both", append(backAnHour[:2:2], anew), other(9*time.Second-time.Hour) + first + again, 1, 0, 0, 0},
		{"set back and started anew, with a stamp that is not so old", append(backAnHour[:2:2], anew), first + other(-5*time.Minute) + again, 1, 0, 0, 0},
		{"started anew between the two", []history.Turn{anew}, twice, 1, 0, 0, 0},
		{"too late, and no clock was set", nil, late(2 * time.Second), 0, 1, 0, 0},
		{"too late by a clock", []history.Turn{set(time.Second, time.Hour)}, late(time.Hour), 0, 0, 1, 0},
		{"too late, by a clock that was set by less", []history.Turn{set(time.Second, 20*time.Minute)}, late(20 * time.Minute), 0, 1, 0, 0},
		{"too late, by a clock that was right again", []history.Turn{set(-9*time.Minute, time.Hour), set(-8*time.Minute, 0)}, late(9 * time.Second), 0, 1, 0, 0},
	} {
		dir, servers := t.TempDir(), event("n1", history.Started, -time.Hour, 0).Line()
		for _, one := range c.turns {
			servers += one.Line()
		}
		for file, text := range map[string]string{history.VersionsLog: fmt.Sprintf("v0\t%d\n", seed), history.AcceptedLog: ask + otherAsk, history.AnswersLog: c.answers, history.ServersLog: servers} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		v, err := Judge(dir, seed)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if v.Lost != 0 || v.Doubled != c.doubled || v.Wrong != c.wrong || v.Expired != c.expired || v.Again != c.again {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}
