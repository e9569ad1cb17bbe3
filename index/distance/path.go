package distance

import (
	"context"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Path is an access path: a way to the objects of a column that looks at fewer than a scan does. It is built into a section of its own where the
// schema names it in index, and opened with the column. A new one is a package that knows spaces and bytes, a file here that says how they meet, and a line in
// Paths.
type Path struct {
	Name    string // in a schema's index and a query's method
	Section store.SectionKind
	Rows    store.SectionKind // of vectors in the order of the path; 0: it has none
	Of      []Values          // what columns may have it
	// Check says why a column cannot have it, beside Of; nil: any can.
	Check func(c *schema.Column) error
	// Build makes what a column keeps of it, of a space of the objects with a value, on so many cores and with the aid of a device, if there is one.
	Build func(ctx context.Context, c *schema.Column, space metric.Space, workers int, aid *metric.Aid) (Built, error)
	// Open checks what was kept, whoever wrote it, of so many objects with a value. What was kept stays where it is.
	Open func(c *schema.Column, m metric.Metric, kept Kept, objects uint32) (Opened, error)
}

// Built is what a column is to keep of an access path.
type Built struct {
	Parts [][]byte
	// Order is the object at each position, of a path with Rows: vectors are stored once more in this order, so that what the path looks at together lies together.
	Order []uint32
}

// Kept is what a column has kept of an access path.
type Kept struct {
	Parts [][]byte
	Rows  []byte // vectors in the order of the path, as many as objects with a value; nil where there are none, as in files of before
}

// Opened is an access path of a column of an open index.
type Opened interface {
	// Bind makes a searcher over the space of the objects with a value.
	Bind(space metric.Space) (Searcher, error)
	// Price says what queries take, as far as is known.
	Price(on On) Price
	// Recall is the table of what was measured, by what steps are called; nil of what is exact.
	Recall() (table *recall.Table, steps string)
	// Exact says that answers are always those of a scan.
	Exact() bool
	// Counts says that it can count the objects within a radius.
	Counts() bool
	// Verify checks what opening leaves, of a space of the objects with a value.
	Verify(ctx context.Context, space metric.Space) error
	// String says to people what it is.
	String() string
}

// On is where a path is priced.
type On struct {
	Device   *cost.Device
	Distance cost.Distance // what one takes there, of a query like the objects
	Far      float64       // more, as of Asked
	Searcher Searcher      // by which the path is searched there; nil: nobody has bound one
}

// Searcher searches the objects of a space. It is safe for concurrent use.
type Searcher interface {
	// Begin begins a query, whose filter so many objects of the index pass. The error says what is wrong with it.
	Begin(q *Query, passing uint32) (Searching, error)
}

// Searching is a query that is being answered. One goroutine at a time has it; who gives it up just drops it.
type Searching interface {
	// Run goes on until all is found, or the meter stops it: then it goes on in another call, and comes to the same. pass says which objects of the space may be hits, nil: all, and is
	// alike in all calls.
	Run(pass func(id uint32) bool, meter metric.Meter) (done bool)
	// End appends what was found, in order, once all is. What it did it tells did. It comes last.
	End(did *Answer, hits []metric.Hit) []metric.Hit
}

// Together is a Searcher that answers many queries at once for less than one after the other.
type Together interface {
	Searcher
	// Joins says whether a query may be one of those.
	Joins(q *Query) bool
	// SearchAll answers queries that join, but for those that it leaves. It asks now and then whether to stop with one of them, for which the error is the reason, and says of each when it is
	// done: until that returns its hits are good. The error is that of the context; of one query alone it is in its ask.
	SearchAll(ctx context.Context, asks []Ask, stop func(ask int) error, done func(ask int)) error
}

// Ask is a query of some that are answered together.
type Ask struct {
	Query   *Query
	Passing uint32               // as of Begin
	Pass    func(id uint32) bool // as of Run
	Did     *Answer

	Hits []metric.Hit
	Err  error
	Left bool // Search has to be asked
}

// Paths are the access paths that are built in, beside the scan, which needs no section.
func Paths() []Path { return []Path{treePath(), cellsPath(), permutationPath()} }

// pathNamed is a path by its name, nil where there is none.
func pathNamed(name string) *Path {
	paths := Paths()
	if i := slices.IndexFunc(paths, func(p Path) bool { return p.Name == name }); i >= 0 {
		return &paths[i]
	}
	return nil
}
