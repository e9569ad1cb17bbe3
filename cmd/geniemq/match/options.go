package match

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/cmd/geniemq/inputs"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// options are what both commands can be told.
type options struct {
	inputs.Options
	input  string
	schema string // of the input
	index  string // its name
	file   string // its file, which is served by this process; "" of match: a worker serves it
	server config.Config

	elsewhere bool // the command line says which server: --nats or --context

	pairs   []string           // --map: index column=input column
	weights []string           // --weight: index column=number
	weight  map[string]float64 // what they say
	key     string
	by      string             // --by: the index column by which candidates are found
	farther []string           // --max-distance: index column=distance, or a distance
	most    map[string]float64 // what they say; of "" the one column that has distances
	minSaid bool               // --min was given

	k, candidates       int
	min                 float64
	output, format      string
	oneToOne, restart   bool
	unmatched, clusters bool // of match, of dedupe
	skipBad, quiet      bool
	gold, plot, report  string
	goldColumns         string
	timeout             time.Duration
	within              bool // rows are compared among themselves: dedupe
}

// defaults of what is looked at and what is kept.
const (
	defaultK          = 5
	defaultMin        = 0.4
	defaultCandidates = 20
)

func (o *options) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	o.server.EnsureDefaults()
	flags.StringVar(&o.schema, "schema", "", "schema `file` of the input (default: guessed, as by geniemq init)")
	o.Options.Flags(cmd)
	flags.StringVar(&o.key, "key", "", "input `column` that names its rows (default: the schema's key, else their numbers)")
	flags.StringArrayVar(&o.weights, "weight", nil, "`column=number`: what a column of the index weighs in the score; repeat for more (default: 4 for the first text, 1)")
	flags.StringVar(&o.by, "by", "", "index `column` by which candidates are found (default: the first text, else string, set, vector or point)")
	flags.StringArrayVar(&o.farther, "max-distance", nil, "`column=distance` or distance: how far apart vectors or points of a pair are at most (geo: metres); there their score is 0; repeat for more")
	flags.IntVar(&o.k, "k", defaultK, "pairs of a row at most")
	flags.IntVar(&o.candidates, "candidates", defaultCandidates, "objects that are looked at for a row, at least k")
	flags.Float64Var(&o.min, "min", defaultMin, "least score of a pair, 0 to 1; 1 is equal in all that both have ; 0 unless it is given where candidates are found by distance")
	flags.StringVar(&o.output, "output", "", "`file` for the pairs, .gz and .zst compressed; a run that was killed can be gone on with (default: the standard output)")
	flags.StringVar(&o.format, "to", "", "csv or jsonl (default: by the extension of --output, else csv)")
	flags.BoolVar(&o.oneToOne, "one-to-one", false, "no row and no object in two pairs: the best pairs first")
	flags.StringVar(&o.gold, "gold", "", "`file` with the keys of the pairs that are right (CSV, with a header): tells precision, recall and F1 by threshold")
	flags.StringVar(&o.goldColumns, "gold-columns", "", "`input,index`: its columns (default: the first two, in the order in which their keys are found)")
	flags.StringVar(&o.plot, "plot", "", "also draw these into this SVG `file`")
	flags.StringVar(&o.report, "report", "table", "table or json: what was found, on the standard output with --output, else on the standard error")
	flags.BoolVar(&o.restart, "restart", false, "begin anew, whatever an earlier run has left")
	flags.BoolVar(&o.skipBad, "skip-bad", false, "leave out records that cannot be read, and rows that cannot be asked")
	flags.BoolVar(&o.quiet, "quiet", false, "no progress and no report, but for one that --report asks for")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "how long to try for an answer")
	o.server.NATSFlags(flags)
	flags.Lookup("nats").Usage = "`URL` of the NATS server with a worker for the index"
	flags.StringVar(&o.server.Prefix, "prefix", wire.DefaultPrefix, "first `token` of all subjects")
	o.server.EngineFlags(flags)
}

// settings are those that the environment may say too. What is not among them is of a run, not of a place.
func settings() []string {
	return append([]string{"prefix", "timeout", "engine", "engine-threads", "devices", "device-mode", "gpu-memory"}, config.NATSSettings...)
}

// check finds wrong usage, all of it at once.
func (o *options) check(flags *pflag.FlagSet) error {
	var faults schema.Faults
	_, err := o.Reading()
	faults = append(faults, err, o.CheckSchema(o.schema))
	faults.If(o.k < 1 || o.k > 1000, "--k %d must be 1 to 1000", o.k)
	o.candidates = max(o.candidates, o.k)
	faults.If(o.candidates > 1000, "--candidates %d must be at most 1000", o.candidates)
	faults.If(!(o.min >= 0 && o.min <= 1), "--min %v must be 0 to 1", o.min)
	faults.If(o.timeout <= 0, "--timeout %v is no time to wait: give one like 1m", o.timeout)
	faults.If(!slices.Contains([]string{"table", "json"}, o.report), "--report %q is unknown: use table or json", o.report)
	faults.If(o.plot != "" && o.gold == "", "--plot draws what --gold tells: add --gold")
	faults.If(o.goldColumns != "" && strings.Count(o.goldColumns, ",") != 1, "--gold-columns %q must be two names, such as idAbt,idBuy", o.goldColumns)
	faults.If(o.input == inputs.Standard && o.schema == "", "the standard input is read once, so no schema can be guessed from it: add --schema")
	faults.If(o.input == inputs.Standard && o.within, "the standard input is read once, and dedupe reads its input twice: name a file")
	if o.format == "" {
		if o.format = "csv"; slices.Contains([]string{".jsonl", ".ndjson"}, filepath.Ext(plainName(o.output))) {
			o.format = "jsonl"
		}
	}
	faults.If(!slices.Contains([]string{"csv", "jsonl"}, o.format), "--to %q is unknown: use csv or jsonl", o.format)
	faults.If(o.oneToOne && o.clusters, "--one-to-one and --clusters exclude each other: clusters may have any size")
	faults.If(o.file != "" && o.elsewhere, "--index NAME=FILE is served by this command, and --nats or --context is of a worker elsewhere: give one")
	if wire.CheckIndexName(o.index) != nil && (!o.within || o.index != "") {
		faults.If(o.index == "", "--index is missing: name the index, as in --index products=products.gmq, or --index products of a worker")
		faults.If(o.index != "", "--index %q cannot be an index: names are 1 to %d of A-Z a-z 0-9 _ -", o.index, wire.MaxIndexName)
	}
	if _, err := wire.NewSubjects(o.server.Prefix); err != nil {
		faults = append(faults, fmt.Errorf("--prefix: %w", err))
	}
	_, err = o.server.EngineOptions()
	faults = append(faults, err, o.readWeights(), o.readDistances())
	for _, pair := range o.pairs {
		_, _, ok := strings.Cut(pair, "=")
		faults.If(!ok, "--map %q must be a column of the index and one of the input, as in title=name", pair)
	}
	if o.remote() {
		faults = append(faults, o.server.ValidateAsked(flags))
	}
	return errors.Join(faults...)
}

// remote says that a worker elsewhere serves the index.
func (o *options) remote() bool { return o.file == "" && o.index != "" }

func (o *options) readWeights() error {
	o.weight = make(map[string]float64)
	for _, text := range o.weights {
		name, number, _ := cutLast(text, "=")
		w, err := strconv.ParseFloat(number, 64)
		if err != nil || !(w >= 0 && w <= 1000) {
			return fmt.Errorf("--weight %q must be a column and a number from 0 to 1000, as in title=3", text)
		}
		o.weight[name] = w
	}
	return nil
}

func (o *options) readDistances() error {
	o.most = make(map[string]float64)
	for _, text := range o.farther {
		name, number, ok := cutLast(text, "=")
		if !ok {
			name, number = "", text
		}
		d, err := strconv.ParseFloat(number, 64)
		if _, twice := o.most[name]; err != nil || !(d >= 0 && !math.IsInf(d, 1)) || twice {
			return fmt.Errorf("--max-distance %q must be a distance of 0 or more, or a column and one, as in where=5000; each column once", text)
		}
		o.most[name] = d
	}
	return nil
}

func cutLast(text, separator string) (before, after string, ok bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
