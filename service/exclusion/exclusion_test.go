package exclusion_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/service/exclusion"
)

// Lone runs and everything else take turns: one at a time or all of the others, and neither side is kept out by the other.
func TestExclusion(t *testing.T) {
	var e exclusion.Lock
	var mu sync.Mutex
	alone, others := 0, 0
	look := func(a, o int) error {
		mu.Lock()
		defer mu.Unlock()
		alone, others = alone+a, others+o
		if alone > 1 || alone == 1 && others > 0 {
			return fmt.Errorf("%d lone runs beside %d others", alone, others)
		}
		return nil
	}
	const rounds = 300
	var working sync.WaitGroup
	faults := make(chan error, 8)
	for range 4 { // they do nothing else, so that one of them always works
		working.Go(func() {
			for range rounds {
				e.Share()
				err := look(0, 1)
				time.Sleep(100 * time.Microsecond)
				err = errors.Join(err, look(0, -1))
				e.Done()
				if err != nil {
					faults <- err
					return
				}
			}
		})
	}
	for range rounds {
		e.TakeAll()
		err := errors.Join(look(1, 0), look(-1, 0))
		e.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	working.Wait()
	select {
	case err := <-faults:
		t.Fatal(err)
	default:
	}
}
