package run

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestBudget: whatever is reserved and given back, at the same time by many, what is free and what is held are all of it, and
// nothing is given back twice.
func TestBudget(t *testing.T) {
	const all = 1000
	b := NewBudget(2, all)
	var users sync.WaitGroup
	for user := range 4 {
		rng := seeded.Rand(t)
		users.Go(func() {
			for range 500 {
				wanted := []gpuexec.Holding{{Owner: fmt.Sprint(user), Form: "a", Bytes: 1 + rng.Int64N(299)}, {Owner: fmt.Sprint(user), Form: "nothing"}, {Owner: fmt.Sprint(user), Form: "b", Bytes: 1 + rng.Int64N(299)}}
				refused := errors.New("refused by who chooses")
				release, err := b.Place(func(free int64) ([]gpuexec.Holding, error) {
					if free < 0 || free > all {
						t.Errorf("%d of %d bytes are free", free, all)
					}
					if free%7 == 3 {
						return nil, refused
					}
					return wanted, nil
				})
				var full *gpuexec.DeviceError
				switch {
				case err == nil:
					if own := holdingsOf(b, user); len(own) != 2 || own[0].Bytes != wanted[0].Bytes || own[1].Form != "b" || own[0].Device != 2 {
						t.Errorf("user %d holds %+v of %+v", user, own, wanted)
					}
					release()
					release()
				case !errors.Is(err, refused) && (!errors.As(err, &full) || !full.OutOfMemory):
					t.Errorf("%v", err)
				}
				if own := holdingsOf(b, user); len(own) != 0 {
					t.Errorf("user %d still holds %+v", user, own)
				}
			}
		})
	}
	users.Wait()
	if freeOf(b) != all || len(b.Holdings()) != 0 {
		t.Errorf("%d of %d bytes are free, held are %+v", freeOf(b), all, b.Holdings())
	}
	if _, err := b.Place(func(int64) ([]gpuexec.Holding, error) { return []gpuexec.Holding{{Bytes: 1}, {Bytes: all}}, nil }); err == nil || freeOf(b) != all {
		t.Errorf("more than there is: %v, %d bytes are free", err, freeOf(b))
	}
	if _, err := b.Reserve(gpuexec.Holding{Bytes: all}); err != nil || freeOf(b) != 0 {
		t.Errorf("all that there is: %v", err)
	}
}

// freeOf is what nobody holds.
func freeOf(b *Budget) (free int64) {
	_, _ = b.Place(func(left int64) ([]gpuexec.Holding, error) { free = left; return nil, nil })
	return free
}

func holdingsOf(b *Budget, user int) []gpuexec.Holding {
	return slices.DeleteFunc(b.Holdings(), func(h gpuexec.Holding) bool { return h.Owner != fmt.Sprint(user) })
}
