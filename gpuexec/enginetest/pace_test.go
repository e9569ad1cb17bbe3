package enginetest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// pacedSearch executes plans under a pace until all are answered, as a service does: what is unfinished goes on in later calls,
// in groups and an order of their own. It returns the answers and the calls that it took.
func pacedSearch(t testing.TB, rng *rand.Rand, s gpuexec.Searcher, plans []gpuexec.Plan, pace gpuexec.Pace) ([]gpuexec.Answer, int) {
	t.Helper()
	answers := make([]gpuexec.Answer, len(plans))
	var open []int
	for i := range plans {
		open = append(open, i)
	}
	calls := 0
	for len(open) > 0 {
		rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		n := 1 + rng.IntN(len(open))
		round, got := make([]gpuexec.Plan, n), make([]gpuexec.Answer, n)
		for i, plan := range open[:n] {
			round[i] = plans[plan]
			round[i].Unfinished = answers[plan].Unfinished
		}
		if err := s.Search(gpuexec.WithPace(context.Background(), pace), round, got, nil); err != nil {
			t.Fatal(err)
		}
		if calls++; calls > 1_000_000 {
			t.Fatal("the plans come to no end")
		}
		var left []int
		for i, plan := range open[:n] {
			if answers[plan] = got[i]; got[i].Unfinished != nil {
				if len(got[i].Hits) > 0 || got[i].Err != nil {
					t.Fatalf("plan %d is unfinished and has an answer: %+v", plan, got[i])
				}
				left = append(left, plan)
			}
		}
		open = append(left, open[n:]...)
	}
	return answers, calls
}

// TestPaceChangesNoAnswer: whatever a call may spend, and however the plans are put together in later calls, the answers
// are those of one call. On one engine, and on groups of devices that scan or do not.
func TestPaceChangesNoAnswer(t *testing.T) {
	rng := seeded.Rand(t)
	all := engines(t)
	rounds := Rounds(make([]struct{}, 30))
	interrupted := 0
	for round := range rounds {
		var texts []string
		base := RandomString(rng, "abcdé", 1+rng.IntN(200))
		size := rng.IntN(raced.Of(300, 60))
		if round%20 == 0 && !raced.Detector {
			size = store.TileObjects + rng.IntN(300) // several parts of a scan
		}
		for range size {
			switch rng.IntN(4) {
			case 0:
				texts = append(texts, RandomString(rng, "abcdé", rng.IntN(20)))
			case 1:
				texts = append(texts, "")
			default:
				texts = append(texts, Misspelt(rng, base, rng.IntN(6)))
			}
		}
		c := SequenceCollection(t, texts, 1+rng.IntN(4))
		searchers := loadOnAll(t, all, c.Index)
		var plans []gpuexec.Plan
		for range 1 + rng.IntN(20) {
			text := Misspelt(rng, base+"a", rng.IntN(6))
			if text == "" || rng.IntN(3) == 0 {
				text = RandomString(rng, "xyz", 1+rng.IntN(5)) // shares nothing: a scan
			}
			plan := c.SequencePlan(t, text, 1+rng.IntN(12), 1+rng.IntN(20), rng.IntN(3) > 0)
			plan.MinCount = uint32(rng.IntN(3))
			plans = append(plans, plan)
		}
		want := Search(t, searchers["one core"], plans)
		for name, s := range searchers {
			for _, pace := range []gpuexec.Pace{
				{Call: 1, Grain: 1 + rng.IntN(50)},
				{Call: time.Duration(1 + rng.IntN(1_000_000)), Plan: time.Duration(rng.IntN(100_000)), Grain: 1 + rng.IntN(5000)},
				{Plan: 1, Grain: 1, Background: true},
				{Call: time.Hour},
			} {
				if size > 300 {
					pace.Grain *= 1000
				}
				got, calls := pacedSearch(t, rng, s, plans, pace)
				for i := range want {
					if !SameHits(&got[i], &want[i]) || got[i].Exact != want[i].Exact || got[i].MCK != want[i].MCK {
						t.Fatalf("round %d, engine %s, %+v, plan %d:\ngot  %+v\nwant %+v", round, name, pace, i, got[i], want[i])
					}
				}
				if pace.Call == time.Hour && calls > len(plans) {
					t.Fatalf("%d calls for %d plans without a bound", calls, len(plans))
				}
				interrupted += calls
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d calls", interrupted)
	if interrupted < 20*len(rounds) {
		t.Error("hardly anything was interrupted")
	}
}

// longTexts is a collection of which one query is a lot of work.
func longTexts(t testing.TB, rng *rand.Rand) *Collection {
	var texts []string
	for range 400 {
		texts = append(texts, RandomString(rng, "abcdefgh", 2000+rng.IntN(2000)))
	}
	return SequenceCollection(t, texts, 3)
}

// TestDeadlineEndsOnePlan: a plan whose time is up ends, in the middle of a comparison if need be, and those beside it are
// answered. The same with an allowance of work, and when the context ends.
func TestDeadlineEndsOnePlan(t *testing.T) {
	rng := seeded.Rand(t)
	c := longTexts(t, rng)
	long := RandomString(rng, "abcdefgh", 60_000)
	for name, s := range map[string]gpuexec.Searcher{
		"one": loadCPU(t, c.Index, gpuexec.CPUOptions{Workers: 2}), "capacity": LoadOn(t, cpuGroup(gpuexec.DeviceCapacity, 2, 2), c.Index),
	} {
		for _, certify := range []bool{false, true} {
			plans := []gpuexec.Plan{c.SequencePlan(t, long, 50, 400, certify), c.SequencePlan(t, c.Index.Text(7), 1, 8, false), c.SequencePlan(t, long, 50, 400, certify)}
			plans[0].Deadline = time.Now().Add(50 * time.Millisecond)
			plans[2].Work = 20 * time.Millisecond
			answers := Search(t, s, plans)
			if !errors.Is(answers[0].Err, gpuexec.ErrDeadline) || !errors.Is(answers[2].Err, gpuexec.ErrWork) || answers[1].Err != nil || answers[1].Hits[0].ID != 7 {
				t.Errorf("%s: answers %+v", name, answers)
			}
			// What was spent beyond is one look at the clock: far less than the whole. A busy machine may take the core away meanwhile, but not each time.
			spent := answers[2].Rescoring
			for range 20 {
				if spent <= 200*time.Millisecond {
					break
				}
				spent = min(spent, Search(t, s, plans[2:])[0].Rescoring)
			}
			if spent > 200*time.Millisecond {
				t.Errorf("%s: comparing went on for %v with an allowance of %v", name, spent, plans[2].Work)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			err := s.Search(ctx, []gpuexec.Plan{c.SequencePlan(t, long, 50, 400, certify)}, make([]gpuexec.Answer, 1), nil)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: ended context: %v", name, err)
			}
		}
		plans := []gpuexec.Plan{c.SequencePlan(t, "abc", 1, 8, false)}
		plans[0].Deadline = time.Now()
		if a := Search(t, s, plans); !errors.Is(a[0].Err, gpuexec.ErrDeadline) {
			t.Errorf("%s: a plan that is too late: %+v", name, a[0])
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCallAllowance: a call ends soon after its allowance is spent, and what is left can be estimated.
func TestCallAllowance(t *testing.T) {
	rng := seeded.Rand(t)
	c := longTexts(t, rng)
	s := loadCPU(t, c.Index, gpuexec.CPUOptions{Workers: 2})
	var plans []gpuexec.Plan
	for range 8 {
		plans = append(plans, c.SequencePlan(t, RandomString(rng, "abcdefgh", 20_000), 50, 400, false))
	}
	least := time.Duration(math.MaxInt64)
	for try := 0; try < 20 && least > 400*time.Millisecond; try++ { // a busy machine may take the core away, but not each time
		answers := make([]gpuexec.Answer, len(plans))
		if err := s.Search(gpuexec.WithPace(context.Background(), gpuexec.Pace{Call: 20 * time.Millisecond}), plans, answers, nil); err != nil {
			t.Fatal(err)
		}
		var spent time.Duration
		known := 0
		for i, a := range answers {
			if a.Unfinished == nil {
				t.Fatalf("plan %d is answered, which takes a second: %+v", i, a)
			}
			spent += a.Rescoring
			if a.Unfinished.Left() > 0 {
				known++
			}
		}
		if spent < 20*time.Millisecond || known == 0 || known > 2 {
			t.Fatalf("%v was spent of 20 ms, on %d plans", spent, known)
		}
		least = min(least, spent)
	}
	if least > 400*time.Millisecond {
		t.Errorf("%v was spent of 20 ms", least)
	}
}
