package generation

import (
	"context"
	"os"
	"time"

	"github.com/geniemq/geniemq/internal/bell"
)

// nameInterval is how often the name of a file is looked at, and how long a file must be as it is to count as whole.
const nameInterval = 2 * time.Second

// FollowName calls swap, until ctx ends, when another file has the name of the one that is served and has not changed for an interval. One that
// cannot be served is not tried again before it changes.
func (x *Index) FollowName(ctx context.Context, swap func(ctx context.Context, path string)) {
	var seen, tried os.FileInfo
	for bell.Sleep(ctx, nameInterval) {
		replaced, path := x.Replaced()
		if !replaced {
			seen, tried = nil, nil
			continue
		}
		now, err := os.Stat(path)
		switch {
		case err != nil || sameFile(now, tried):
		case !sameFile(now, seen):
			seen = now
		default:
			tried = now
			swap(ctx, path)
		}
	}
}

func sameFile(a, b os.FileInfo) bool {
	return b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
