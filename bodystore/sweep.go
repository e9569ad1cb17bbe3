package bodystore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/wire"
)

const (
	// OrphanAge is after how long an object that nobody needs is removed.
	OrphanAge = 24 * time.Hour
	// PublishWithin is how long after an object was stored, or touched, its query may be published at the latest.
	PublishWithin = 12 * time.Hour
)

// Key names an object of a deployment.
type Key struct{ User, Name string }

// Sweep is one look for orphans: objects whose query is gone, and chunks without an object. It is harmless beside others.
//
// A query has no place where it could be found by its object, so it is looked at from the other side. A query is published within PublishWithin of its object. So
// an object is needed while a stream of queries has a message that is no younger than that; or while a dead letter names it. Streams are looked at first,
// then the letters, then the objects, which is the way that a query goes when it dies and when it is replayed, the object being touched before: whatever moves
// meanwhile is seen at one of its places.
type Sweep struct {
	// Age is how old orphans are at least. Default OrphanAge; less than PublishWithin is for tests alone.
	Age time.Duration
	// Letters are the objects that dead letters name. Required.
	Letters func(ctx context.Context) (map[Key]bool, error)
}

// Sweep removes the orphans of all buckets and returns how many there were. It goes on with the next bucket after an error.
func (s *Store) Sweep(ctx context.Context, how Sweep) (removed int, err error) {
	if how.Age == 0 {
		how.Age = OrphanAge
	}
	buckets, err := s.users(ctx)
	if err != nil {
		return 0, fmt.Errorf("list the buckets of large queries: %w", err)
	}
	var faults []error
	for _, user := range buckets {
		n, err := s.sweep(ctx, user, how)
		removed += n
		if err != nil && !errors.Is(err, ErrNoBucket) {
			faults = append(faults, err)
		}
	}
	return removed, errors.Join(faults...)
}

// users are those who have a bucket, "" among them.
func (s *Store) users(ctx context.Context) (all []string, err error) {
	shared, err := s.subjects.ObjectBucket("")
	if err != nil {
		return nil, err
	}
	list := s.js.StreamNames(ctx)
	for name := range list.Name() {
		rest, ours := strings.CutPrefix(name, StreamOf(shared))
		user, some := strings.CutPrefix(rest, "_")
		if ours && (rest == "" || some && wire.CheckUser(user) == nil) {
			all = append(all, user)
		}
	}
	return all, list.Err()
}

// old is an object, or chunks without one, that were stored long ago.
type old struct {
	name  string
	at    time.Time
	info  *jetstream.ObjectInfo
	found *jetstream.RawStreamMsg
}

func (s *Store) sweep(ctx context.Context, user string, how Sweep) (removed int, err error) {
	bucket, stream, err := s.bucket(ctx, user)
	if err != nil {
		return 0, err
	}
	if none(stream.CachedInfo(), how.Age) { // which nearly every sweep finds
		return 0, nil
	}
	oldest, err := s.oldestQuery(ctx)
	if err != nil {
		return 0, err
	}
	letters, err := how.Letters(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for dead letters: %w", err)
	}
	candidates, err := candidates(ctx, stream, bucket, how.Age)
	if err != nil {
		return 0, fmt.Errorf("look for orphans in %s: %w", bucket, err)
	}
	for _, o := range candidates {
		waits := !oldest.IsZero() && oldest.Before(o.at.Add(min(PublishWithin, how.Age)))
		if waits || letters[Key{user, o.name}] {
			continue
		}
		if err := remove(ctx, stream, o.info, o.found); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// none says that a stream has nothing of that age, by the server's clock.
func none(info *jetstream.StreamInfo, age time.Duration) bool {
	return info.State.Msgs == 0 || info.TimeStamp.Sub(info.State.FirstTime) < age
}

// oldestQuery is when the oldest message of all streams of queries was stored; zero: there is none.
func (s *Store) oldestQuery(ctx context.Context) (oldest time.Time, err error) {
	for _, class := range wire.StoredClasses() {
		name := s.subjects.Stream(class)
		stream, err := s.js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		} else if err != nil {
			return oldest, fmt.Errorf("look at stream %s: %w", name, err)
		}
		if state := stream.CachedInfo().State; state.Msgs > 0 && (oldest.IsZero() || state.FirstTime.Before(oldest)) {
			oldest = state.FirstTime
		}
	}
	return oldest, nil
}

// candidates are the objects of an age, and chunks of that age that belong to none: of who died while he stored them.
func candidates(ctx context.Context, stream jetstream.Stream, bucket string, age time.Duration) (all []old, err error) {
	chunks, err := stream.Info(ctx, jetstream.WithSubjectFilter(chunksOf(bucket, ">"))) // first: those of an object are there before it is
	if err != nil {
		return nil, err
	}
	metas, err := stream.Info(ctx, jetstream.WithSubjectFilter("$O."+bucket+".M.>"))
	if err != nil {
		return nil, err
	}
	belong := make(map[string]bool)
	for subject := range metas.State.Subjects {
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		o := old{at: m.Time, found: m}
		if o.info, o.name = described(m); o.info != nil {
			belong[o.info.NUID] = true
		}
		if metas.TimeStamp.Sub(m.Time) >= age {
			all = append(all, o)
		}
	}
	for subject := range chunks.State.Subjects {
		if belong[strings.TrimPrefix(subject, chunksOf(bucket, ""))] {
			continue
		}
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		if m.Data = nil; metas.TimeStamp.Sub(m.Time) >= age {
			all = append(all, old{at: m.Time, found: m})
		}
	}
	return all, nil
}
