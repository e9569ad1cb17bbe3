// Package served is the indexes that a worker serves, each with all that takes its queries in. Indexes come and go while others are served.
package served

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/fetch"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/intake"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
	"github.com/geniemq/geniemq/service/repeats"
	"github.com/geniemq/geniemq/service/storedanswers"
	"github.com/geniemq/geniemq/service/suspects"
	"github.com/geniemq/geniemq/wire"
)

// Options are what indexes are opened, loaded and told about with.
type Options struct {
	Config    *config.Config
	Kinds     index.Kinds
	Metrics   *metrics.Metrics
	Repeats   *repeats.Limiter
	Budget    *memory.Budget
	Exclusion *exclusion.Lock
	Version   string // of the program
	Log       *slog.Logger
	Fatal     func(error) // is called when the engine is lost for good
	// Aborted ends when what was taken in is given up, of all indexes.
	Aborted context.Context
}

// Link is what brings queries to indexes, and their answers out.
type Link struct {
	NC       *nats.Conn // direct ones come and are answered on it
	Carriers *intake.Carriers
	Subjects wire.Subjects
	Classes  []wire.Class // of stored queries that are served
	Limits   wire.Limits
	Bodies   *fetch.Fetcher // of stored queries that lie in the object store
	Denials  *connection.Denials
	// Needs says whether a worker that serves only so many indexes is of no use when something is forbidden.
	Needs     func(e *connection.ForbiddenError, names ...string) bool
	Replies   *intake.Replies
	Admission *intake.Admissions
	Answers   *storedanswers.Reader
	Suspects  *suspects.Runner
	Clock     *clock.Clock
	MaxResult func() int64
}

// Set is the indexes of a worker, by their names.
//
// # Coming and going
//
// An index is coming, serving or going. Its name is taken from the moment it comes until nothing of it is left. While it comes and
// goes it is in nobody's way: the others are opened for, loaded for and drained for nothing.
//
// What comes is opened, loaded and asked a query before anything tells of it, so what is wrong with a file is found while nothing
// has changed. Then its pipeline is started, its endpoint is added, and its durables are pulled from; what fails there is taken
// back in the order of going.
//
// What goes is stopped in the order in which a message passes through it, so that nothing is handed to a part that has ended: what
// would replace it (swaps, followers of files and of what is pushed), consumers, the endpoint, direct intake, pipeline, settlements,
// file. Everything that was taken in is answered within the time there is; then it is given back, which loses nothing. Queries that
// are stored and were not pulled stay in their stream, for other workers and for the index when it comes again.
//
// # The endpoint
//
// A worker is one micro service of NATS with an endpoint or two per index. Endpoints cannot be taken from a service, so with each
// change it is made anew: the new one listens before the old one stops, in the same queue group, so that no request finds nobody. What
// the old one has received it hands over before the change is done.
//
// # Shares
//
// The consumers of all indexes share their carriers and a budget. They are granted equal parts, anew whenever one comes or has gone.
//
// # Ownership
//
// The Set owns its entries and their goroutines. Entries must not be kept by who lists them. At the end of the worker the parts of all
// entries stop together, in steps of the worker's own order: End, StopPulling, StopSearch, Drain, Settle, Close.
type Set struct {
	options Options
	engine  gpuexec.Engine
	traces  *observe.Traces // nil: none are sent
	link    Link

	changing context.Context // ends with End
	end      context.CancelFunc
	changes  sync.WaitGroup // additions and removals that are going on

	sharing sync.Mutex // guards the micro service, and is held while shares are granted
	micro   micro.Service

	mu        sync.RWMutex // guards the rest, and the states of entries
	entries   []*Entry     // in the order in which they came
	followers map[string][]*follower
	ended     bool // nothing comes or goes any more
	failed    bool // GiveBack was called
}

// New makes an empty set.
func New(opts Options) *Set {
	s := &Set{options: opts, followers: make(map[string][]*follower)}
	s.changing, s.end = context.WithCancel(context.Background())
	return s
}

// Open opens the indexes of a worker that starts, all before it loads the first, which leaves room for the others. Close is to be called whether it
// fails or not.
func (s *Set) Open(ctx context.Context, engine gpuexec.Engine, traces *observe.Traces, sources []config.IndexSource) error {
	s.engine, s.traces = engine, traces
	paths := make(map[string]string)
	var all []*Entry
	var later []*generation.Index
	for _, source := range sources {
		x, err := generation.Open(source.Path, source.Name, s.options.Kinds, int64(s.options.Config.CertifyLimit))
		if errors.Is(err, fs.ErrNotExist) && source.Name == "" && wire.CheckIndexName(source.Path) == nil {
			return fmt.Errorf("%w: if %s is the index's name, give its file too, like --index %[2]s=%[2]s.gmq", err, source.Path)
		} else if err != nil {
			return err
		}
		e := s.entry(x)
		if other, twice := paths[e.Name]; twice {
			return errors.Join(fmt.Errorf("%s and %s are both index %s: name them, like --index other=%s", other, source.Path, e.Name, source.Path), x.Close())
		}
		s.mu.Lock()
		s.entries = append(s.entries, e)
		s.mu.Unlock()
		if err := wire.CheckIndexName(e.Name); err != nil {
			return fmt.Errorf("%s: %w", source.Path, err)
		}
		paths[e.Name] = source.Path
		all, later = append(all, e), append(later, x)
	}
	for i, e := range all {
		if err := e.load(ctx, later[i+1:]); err != nil {
			return fmt.Errorf("loading %s: %w", paths[e.Name], err)
		}
	}
	return nil
}

// Serving are the indexes that are served, in the order in which they came.
func (s *Set) Serving() []*Entry { return s.in(serving) }

// Find is the index that is served under a name, or nil.
func (s *Set) Find(name string) *Entry {
	for _, e := range s.Serving() {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Names are those of the indexes that come or are served.
func (s *Set) Names() (names []string) {
	for _, e := range s.in(coming, serving) {
		names = append(names, e.Name)
	}
	return names
}

// Has says whether an index comes or is served: its stored queries are not for the sweeper.
func (s *Set) Has(name string) bool { return slices.Contains(s.Names(), name) }

// all are the indexes in any state.
func (s *Set) all() []*Entry { return s.in(coming, serving, going) }

// in are the indexes in some states.
func (s *Set) in(states ...state) (in []*Entry) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.entries {
		if slices.Contains(states, e.state) {
			in = append(in, e)
		}
	}
	return in
}

// PulledBytes is how much the consumers hold.
func (s *Set) PulledBytes() (bytes int64) {
	for _, stored := range s.stored() {
		bytes += stored.Consumer.Progress().Bytes
	}
	return bytes
}

// stored are the intakes of all indexes and classes that pull.
func (s *Set) stored() (all []*intake.Stored) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.entries {
		all = append(all, e.stored...)
	}
	return all
}
