package match

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/cmd/geniemq/inputs"
	"github.com/geniemq/geniemq/cmd/geniemq/match/alike"
	"github.com/geniemq/geniemq/cmd/geniemq/match/journal"
	"github.com/geniemq/geniemq/cmd/geniemq/progress"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/inorder"
	"github.com/geniemq/geniemq/internal/lock"
)

// runner is one run of match or dedupe.
//
// # How it goes
//
// Rows of the input are read, asked in messages of some rows, several at a time, and what was found of each is put into a journal, in the order of the rows. When all
// are there the output is made of the journal. So a run that was killed goes on after the last row of its journal, and ends with the output that it would
// have had: what is found of a row depends on the row and the version of the index alone, and the journal says of which these are.
type runner struct {
	*options
	host       *Host
	question   *question
	skipped    atomic.Int64
	saying     sync.Mutex   // of host.Err, for lines about rows
	perMessage atomic.Int64 // rows
	keyed      bool         // rows have keys; others have their numbers
}

// rowsPerMessage is how many rows a message has as a rule.
const rowsPerMessage = 64

// journalTail is what the name of a journal has after that of the output.
const journalTail = ".part"

// line is a line of progress.
func (r *runner) line(what string, o progress.Options) *progress.Line {
	return progress.New(r.host.Err, r.host.Terminal && !r.quiet, what, o)
}

// run does all.
func (r *runner) run(ctx context.Context) (err error) {
	r.perMessage.Store(rowsPerMessage)
	input, err := identify(r.input)
	if err != nil {
		return err
	}
	g, err := readGold(r.gold, r.goldColumns)
	if err != nil {
		return err
	}
	spec, reading, err := r.described()
	if err != nil {
		return err
	}
	r.keyed = spec.Key != ""
	temporary, remove, err := folder()
	if err != nil {
		return fmt.Errorf("making a folder for what comes and goes: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()

	file, unfit := r.file, map[int64]bool(nil)
	if r.within && !r.remote() {
		if file = filepath.Join(temporary, "rows.gmq"); r.index == "" {
			r.index = spec.Name
		}
		if unfit, err = r.build(ctx, spec, reading, file); ctx.Err() != nil {
			return errors.New("interrupted while the rows were indexed")
		} else if err != nil {
			return err
		}
	}
	t, err := r.connect(ctx, file, temporary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if r.question, err = r.options.question(spec, t.schema); err != nil {
		return err
	}
	r.question.needless(spec)
	r.tellColumns()

	j, err := r.journal(input, spec, reading, t, temporary)
	if err != nil {
		return err
	}
	before := j.Rows()
	asked := time.Now()
	if err := r.askAll(ctx, t, j, spec, reading, unfit); err != nil {
		done := j.Rows()
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted after %d rows", done)
		}
		return errors.Join(r.kept(err, done), j.Close())
	}
	if err := r.ofOne(input, t, j.Rows()); err != nil {
		return errors.Join(err, j.Remove())
	}
	f, err := r.collect(j, g)
	if err == nil {
		err = r.put(j, f)
	}
	if err != nil {
		return errors.Join(r.kept(err, j.Rows()), j.Close())
	}
	return errors.Join(j.Remove(), r.tell(r.reportOf(t, f, f.rows-before, time.Since(asked).Seconds())))
}

// ofOne says whether all that was found is of one input, and dedupe's of the index of it.
func (r *runner) ofOne(input *identity, t *target, rows int64) error {
	if err := input.unchanged(); err != nil {
		return err
	}
	if r.within && t.objects != uint64(rows) {
		return fmt.Errorf("index %s has %d objects and %s %d rows: it is no index of this file", t.index, t.objects, r.input, rows)
	}
	return nil
}

// tellColumns says what is compared with what.
func (r *runner) tellColumns() {
	if r.quiet {
		return
	}
	for i, c := range r.question.columns {
		note := ""
		if i == r.question.leading {
			note = ", by which candidates are found"
			if r.question.by != "" {
				note += " and put into order (" + r.question.by + ")"
			}
		}
		if alike.Far(c.Type) {
			note += "; distances are " + distance.MetricName(c.Scale.Metric)
			if c.Scale.Limit {
				note += fmt.Sprintf(", at most %g", c.Scale.Most)
			}
		}
		table.On(r.host.Err).Say("comparing %s (%s, weight %g)%s\n", c.name, string(c.Type), c.Weight, note)
	}
	for _, name := range r.question.left {
		table.On(r.host.Err).Say("column %s is not compared: nobody knows which distance is far; --max-distance %[1]s=DISTANCE says so\n", name)
	}
	for _, said := range r.question.silent {
		table.On(r.host.Err).Say("%s\n", said)
	}
	for _, name := range r.question.unsaid() {
		table.On(r.host.Err).Say("warning: column %s of the index is not stored, so the score does not know it: build the index with store: true\n", name)
	}
}

// journal opens the journal of this run, beside the output if that is a file. Who has it has the output.
func (r *runner) journal(input *identity, spec *schema.Schema, reading load.Options, t *target, temporary string) (*journal.Journal, error) {
	columns, err := textOf(spec)
	if err != nil {
		return nil, err
	}
	var weights []float64
	var names [][2]string
	for _, c := range r.question.columns {
		weights, names = append(weights, c.Weight), append(names, [2]string{c.name, spec.Columns[c.input].Name})
	}
	leading := ""
	if r.question.leading >= 0 {
		leading = names[r.question.leading][0]
	}
	run, err := json.Marshal(map[string]any{
		"dedupe": r.within, "input": input.contents, "schema": columns, "index": t.index, "version": t.version, "columns": names, "weights": weights, "k": r.k,
		"format": reading.Format, "encoding": reading.Encoding, "separator": reading.Comma, "skip_lines": reading.SkipLines,
		"candidates": r.candidates, "min": r.min, "skip_bad": r.skipBad,
		"by": leading, "max_distance": r.most,
	})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(temporary, "rows")
	if r.output != "" {
		path = r.output + journalTail
	}
	j, err := journal.Open(path, string(run), r.restart || r.input == inputs.Standard)
	if other := (*journal.OtherRun)(nil); errors.As(err, &other) {
		return nil, fmt.Errorf("an earlier run was not finished, and this one has another input, index or setting: repeat that, or begin anew with --restart\n%w", err)
	} else if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("another run writes %s: wait for its end, or name another output\n%w", r.output, err)
	} else if err != nil {
		return nil, err
	}
	if j.Rows() > 0 && !r.quiet {
		table.On(r.host.Err).Say("going on after %d rows of an earlier run\n", j.Rows())
	}
	return j, nil
}

// askAll asks the rows that the journal does not have.
func (r *runner) askAll(ctx context.Context, t *target, j *journal.Journal, spec *schema.Schema, reading load.Options, unfit map[int64]bool) (err error) {
	var shown *progress.Line
	s := r.open(spec, reading, func(what string, bytes int64) *progress.Line {
		shown = r.line("matching", progress.Options{Total: bytes, Bytes: true, First: j.Rows()})
		return progress.New(io.Discard, false, what, progress.Options{}) // rows that were read are not yet asked
	})
	s.unfit = unfit
	defer func() {
		if shown != nil {
			shown.Finish()
		}
		err = errors.Join(err, s.files.Close())
	}()
	if err := s.pass(ctx, j.Rows()); err != nil {
		return err
	}
	live := newWriter(r.host.Out, r.format, r.fieldNames())
	workers := max(2, runtime.GOMAXPROCS(0))
	made := func() *batch { return &batch{records: make([]schema.Record, rowsPerMessage)} }
	return inorder.Run(ctx, workers, 2*workers, made, func(b *batch) (last bool, err error) {
		b.first = s.next
		for b.n = 0; b.n < len(b.records); b.n++ {
			if err := s.row(ctx, &b.records[b.n]); errors.Is(err, io.EOF) {
				return true, nil
			} else if err != nil {
				return false, err
			}
			if rec := &b.records[b.n]; !r.keyed {
				rec.Key = strconv.FormatInt(s.next-1, 10)
			}
		}
		b.bytes = s.files.Read()
		return false, nil
	}, func(b *batch) error { return r.ask(ctx, t, b) }, func(b *batch) error {
		if err := j.Append(b.rows); err != nil {
			return err
		}
		if shown != nil {
			shown.Set(b.bytes, j.Rows())
		}
		return r.live(live, b.rows)
	})
}

// streams says that pairs are put out as they are found: nothing that is found later decides on them.
func (r *runner) streams() bool { return r.output == "" && !r.within && !r.oneToOne }

func (r *runner) live(w *writer, rows []journal.Row) error {
	if !r.streams() {
		return nil
	}
	for i := range rows {
		if err := r.writeRow(w, &rows[i]); err != nil {
			return err
		}
	}
	return w.flush()
}

// put writes the output.
func (r *runner) put(j *journal.Journal, f *found) error {
	if r.streams() {
		return nil
	}
	if r.output == "" {
		return r.write(r.host.Out, j, f)
	}
	return whole(r.output, func(out io.Writer) error { return r.write(out, j, f) })
}

// tell reports.
func (r *runner) tell(p *report) error {
	if r.plot != "" {
		if err := p.draw(r.plot); err != nil {
			return err
		}
	}
	out := r.host.Out
	if r.output == "" {
		out = r.host.Err
	}
	if r.report == "json" {
		return table.On(out).JSON(p, "  ")
	}
	if !r.quiet {
		p.table(table.On(out))
	}
	return nil
}

// kept says of a run that failed how to go on.
func (r *runner) kept(err error, done int64) error {
	if r.output == "" {
		return err
	}
	return fmt.Errorf("%w\nthe %d rows that are done are kept in %s: the same command goes on after them", err, done, r.output+journalTail)
}
