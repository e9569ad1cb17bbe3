package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/cmd/geniemq/answers"
	"github.com/geniemq/geniemq/cmd/geniemq/inputs"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

const (
	inFlight = 64              // queries that the query command has under way at a time
	quiet    = 3 * time.Second // for which nobody is answered before it says that it waits
)

type queryOptions struct {
	index, file string
	server      config.Config // of which only NATSSettings and the prefix are used
	direct      bool
	json, csv   bool     // how results are written; else as tables
	columns     []string // stored columns to show; nil: all that there is room for
	k           int      // hits of queries that are texts
	user, class string
	explain     bool // each query is to be explained, for people
	timeout     time.Duration
}

// check looks for what cannot be meant.
func (o *queryOptions) check(args []string) error {
	if o.index == "" {
		return usagef("which index? name it first, as in: geniemq query words definately")
	}
	if wire.CheckIndexName(o.index) != nil {
		return usagef("--index %q cannot be an index: names are 1 to %d of A-Z a-z 0-9 _ -", o.index, wire.MaxIndexName)
	}
	if _, err := wire.NewSubjects(o.server.Prefix); err != nil {
		return usagef("--prefix: %w", err)
	}
	if o.user != "" && wire.CheckUser(o.user) != nil {
		return usagef("--user %q cannot be a user: names are 1 to %d of A-Z a-z 0-9 _ -", o.user, wire.MaxUserName)
	}
	if o.class != string(client.ClassQuery) && o.class != string(client.ClassBulk) {
		return usagef("--class %q is neither query nor bulk", o.class)
	}
	if o.timeout <= 0 {
		return usagef("--timeout %v is no time to wait: give one like 30s", o.timeout)
	}
	if o.k < 0 || o.k > wire.MaxK {
		return usagef("--k takes numbers from 1 to %d", wire.MaxK)
	}
	if o.json && o.csv {
		return usagef("--json and --csv exclude each other")
	}
	if len(args) > 0 && o.file != "" {
		return usagef("queries are either arguments or in --file, not both")
	}
	return nil
}

func (c *cli) queryCommand() *cobra.Command {
	opts := new(queryOptions)
	cmd := c.askingCommand(opts)
	cmd.Use, cmd.Short = "query [flags] INDEX [TEXT | '{...}' ...]", "Ask an index"
	cmd.Long = `Query asks queries and prints their results. A query is a text, or a JSON object where
it begins with {. Queries are arguments, or the lines of --file, or else those of the
standard input. Without arguments --index may name the index, too.

On a terminal results are tables: the key of each hit, how well it fits, how many of the
conditions it meets and which, and as many stored columns as there is room for; --columns
says which. Otherwise they are JSON Lines, one line per query in the order of the queries.

Queries are stored and answered even if the worker or the server is restarted
meanwhile; with --direct they go to a worker that listens right now.

  {"row":{"age":{"min":30,"max":40},"sex":"Female"},"k":5}      tables
  {"text":"generic inverted indx framework"}                    sequences, documents
  {"items":[{"attr":"sex","value":"Male","weight":2}]}          items, one by one
  {"row":{"title":"red shoes"},"filter":{"price":{"max":60}}}   records, only those that pass
  {"point":[48.86,2.35],"radius":100000,"total":true}           points, vectors and strings by distance
  options: k, filter, exclude, total, weights, idf, rescore, matched, explain,
  candidates, certify, min_count, with_payload, timeout_ms, id

A query that nobody answered within --timeout gets an error for its result.

Exit codes: 0 when every query was answered, also if some answers are errors; 1 when one
was not; 2 for wrong usage.`
	cmd.Example = `  geniemq query words definately
  geniemq query adult --columns age,state '{"row":{"age":{"min":30,"max":40},"sex":"Female"},"k":5}'
  geniemq query words --direct '{"text":"recieve","certify":true}'
  geniemq query adult --file queries.jsonl > results.jsonl
  geniemq query adult --file queries.jsonl --csv > hits.csv
  jq -c '{text: .title}' papers.json | geniemq query titles --nats nats://broker:4222`
	return cmd
}

func (c *cli) explainCommand() *cobra.Command {
	opts := &queryOptions{explain: true}
	cmd := c.askingCommand(opts)
	cmd.Use, cmd.Short = "explain [flags] INDEX [TEXT | '{...}' ...]", "Ask an index, and say what the answers came from"
	cmd.Long = `Explain asks queries as query does, and prints with each answer what it came from:
the items that the query became, with what they weigh and how many objects have
them; values that no object has, and the nearest one that some have; by what filters
were decided; what each hit was counted for; and what it cost. Of a search by
distance it prints which way was taken, why, and what each way was expected to take.

A message of queries may have 64 explained. With --json the explanation is the field
"explain" of each result. Its members are for people and may change.`
	cmd.Example = `  geniemq explain shop '{"row":{"title":"red shoes","brand":"acme"}}'`
	return cmd
}

// askingCommand asks queries; its texts are missing.
func (c *cli) askingCommand(opts *queryOptions) *cobra.Command {
	cmd := &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			c.warnOfSecrets(cmd)
			// Not the index: GENIEMQ_INDEX says which ones serve has, with their files.
			if err := c.environment(cmd, append([]string{"prefix", "timeout", "direct", "json", "csv", "columns", "user", "class"}, config.NATSSettings...)...); err != nil {
				return err
			}
			if opts.index == "" && len(args) > 0 && !isJSON(args[0]) {
				opts.index, args = args[0], args[1:]
			}
			if err := opts.server.ValidateAsked(cmd.Flags()); err != nil {
				return usageError{err}
			}
			if err := opts.check(args); err != nil {
				return err
			}
			if len(args) == 0 && opts.file == "" && isTerminal(c.in) {
				return usagef("nothing to ask: give a text, a query like '{\"row\":{...}}', or --file")
			}
			if !cmd.Flags().Changed("json") {
				opts.json = !isTerminal(c.out) && !opts.explain && !opts.csv
			}
			return c.query(cmd.Context(), *opts, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.index, "index", "", "`name` of the index")
	opts.server.NATS = nats.DefaultURL
	opts.server.NATSFlags(flags)
	flags.Lookup("nats").Usage = "`URL` of the NATS server"
	flags.StringVar(&opts.server.Prefix, "prefix", wire.DefaultPrefix, "first `token` of all subjects")
	flags.StringVar(&opts.file, "file", "", "`file` with one query per line; - is the standard input")
	flags.BoolVar(&opts.direct, "direct", false, "ask a worker directly, without storing the query")
	flags.StringVar(&opts.user, "user", "", "user's `token` of the subjects: queries go to genie.query.<index>.<user>")
	flags.StringVar(&opts.class, "class", string(client.ClassQuery), "query, or bulk for work that nobody waits for")
	flags.DurationVar(&opts.timeout, "timeout", 30*time.Second, "how long to wait for each answer")
	flags.IntVar(&opts.k, "k", 0, "hits of each query that is a text (default 10); others say k themselves")
	flags.StringSliceVar(&opts.columns, "columns", nil, "stored `columns` to show, in this order (default: all that there is room for)")
	flags.BoolVar(&opts.json, "json", false, "JSON Lines (default when the output is no terminal; --json=false for tables)")
	flags.BoolVar(&opts.csv, "csv", false, "CSV, a row per hit")
	return cmd
}

func (c *cli) query(ctx context.Context, opts queryOptions, args []string) error {
	queries := func(yield func(line) bool) {
		for i, text := range args {
			if !yield(line{number: i + 1, text: text}) {
				return
			}
		}
	}
	if len(args) == 0 {
		in := c.in
		if opts.file != "" && opts.file != inputs.Standard {
			file, err := os.Open(opts.file)
			if err != nil {
				return fmt.Errorf("opening the queries: %w", err)
			}
			defer file.Close()
			in = file
		}
		queries = queryLines(in)
	}

	nc, js, err := connection.Connect(&opts.server, "geniemq query", nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	asker, err := client.New(nc, client.Options{
		Prefix: opts.server.Prefix, Timeout: opts.timeout, User: opts.user, Class: client.Class(opts.class), JetStream: js,
	})
	if err != nil {
		return err
	}
	defer asker.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return c.printAnswers(ctx, opts, askAll(ctx, asker, opts, queries))
}

// printAnswers prints the answers as they come. Its error says what was not answered.
func (c *cli) printAnswers(ctx context.Context, opts queryOptions, answers <-chan chan answered) error {
	show := c.show(opts)
	var asked, unanswered int
	var first, unread error // why the first of the unanswered is, and why not all lines were read
	for asking := true; ; asking = false {
		var answer chan answered
		select {
		case answer = <-answers:
		case <-ctx.Done(): // perhaps while the next line is waited for
		}
		if answer == nil && ctx.Err() == nil {
			break
		}
		var a answered
		if answer != nil {
			var waiting <-chan time.Time // for the first: whoever was answered once knows
			if asking {
				waiting = time.After(quiet)
			}
			select {
			case a = <-answer:
			case <-waiting:
				table.On(c.err).Say("no answer for %v, waiting up to --timeout %v; is a worker serving index %s?\n", quiet, opts.timeout, opts.index)
				a = <-answer
			}
		}
		if answer == nil || a.err != nil && ctx.Err() != nil {
			return fmt.Errorf("interrupted after %s", human.Count(asked-unanswered, "answer"))
		}
		asked += len(a.results)
		switch {
		case a.err == nil:
		case len(a.results) == 0:
			unread = a.err
		default:
			unanswered += len(a.results)
			first = cmp.Or(first, a.err)
		}
		for i := range a.results {
			if err := show(&a.queries[i], &a.results[i]); err != nil { // each at once: a person or a pipe waits for it
				return fmt.Errorf("writing results: %w", err)
			}
		}
	}
	if unanswered > 1 {
		first = fmt.Errorf("%d of %d queries have no answer; the first: %w", unanswered, asked, first)
	}
	return errors.Join(first, unread)
}

// show is how results are written, each with the query that it answers.
func (c *cli) show(opts queryOptions) func(q *wire.Query, r *wire.Result) error {
	page := table.On(c.out)
	out := bufio.NewWriter(c.out)
	switch {
	case opts.json:
		return func(_ *wire.Query, r *wire.Result) error {
			text := append(wire.AppendResult(nil, wire.JSON, r), '\n')
			if page.Terminal() {
				text = table.EscapeJSON(text)
			}
			_, _ = out.Write(text)
			return out.Flush()
		}
	case opts.csv:
		rows, number := answers.NewCSV(page.To(out), opts.columns), 0
		return func(q *wire.Query, r *wire.Result) error {
			number++
			if r.Err != nil {
				table.On(c.err).Say("query %d: %s: %s\n", number, string(r.Err.Code), r.Err.Message)
			}
			lost, err := rows.Write(number, q, r)
			for _, name := range lost {
				table.On(c.err).Say("query %d has a stored column %q, for which the first line has no place: name it in --columns\n", number, name)
			}
			return errors.Join(err, out.Flush())
		}
	}
	return func(q *wire.Query, r *wire.Result) error {
		answers.Print(page.To(out), q, r, opts.columns)
		return out.Flush()
	}
}

// line is a line of input, or why there are no more.
type line struct {
	number int
	text   string
	err    error
}

// queryLines yields the lines of a file that are not empty.
func queryLines(in io.Reader) iter.Seq[line] {
	return func(yield func(line) bool) {
		scanner := bufio.NewScanner(in)
		scanner.Buffer(make([]byte, 64<<10), 16<<20)
		n := 1
		for ; scanner.Scan(); n++ {
			if text := strings.TrimSpace(scanner.Text()); text != "" && !yield(line{number: n, text: text}) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			yield(line{number: n, err: fmt.Errorf("reading queries, line %d: %w", n, err)})
		}
	}
}

// answered is what became of one line: results, one per query, and why some of them are none. Only a line that cannot be
// read has no results.
type answered struct {
	queries []wire.Query
	results []wire.Result
	err     error
}

// askAll asks all queries, some at a time, and returns the answers in the order of the queries.
func askAll(ctx context.Context, asker *client.Client, opts queryOptions, lines iter.Seq[line]) <-chan chan answered {
	answers := make(chan chan answered, inFlight)
	go func() {
		defer close(answers)
		var asking sync.WaitGroup
		defer asking.Wait()
		for l := range lines {
			answer := make(chan answered, 1)
			select {
			case answers <- answer: // has room for as many as may be under way
			case <-ctx.Done():
				return
			}
			if l.err != nil {
				answer <- answered{err: l.err}
				return
			}
			asking.Go(func() {
				a := ask(ctx, asker, opts, l.text)
				if a.err != nil {
					a.err = fmt.Errorf("query %d: %w", l.number, a.err)
				}
				answer <- a
			})
		}
	}()
	return answers
}

// isJSON says that a query is JSON; else it is a text.
func isJSON(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "{") }

// read is what is on one line: a text, a query, or {"queries":[...]}.
func (o *queryOptions) read(text string) (*wire.Message, error) {
	if !isJSON(text) {
		q := wire.Query{Text: text, K: o.k}
		q.EnsureDefaults()
		return &wire.Message{Queries: []wire.QueryOrError{{Query: q}}}, nil
	}
	if o.k > 0 {
		return nil, wire.Errorf(wire.BadRequest, `--k is of queries that are texts: write "k":%d into the query`, o.k)
	}
	return wire.DecodeMessage(wire.JSON, []byte(text), wire.Limits{})
}

// ask asks what is on one line. What is wrong with a query is its result. With an error
// some of the results are not the service's: nobody answered.
func ask(ctx context.Context, asker *client.Client, opts queryOptions, text string) answered {
	message, err := opts.read(text)
	if refusal := (*wire.Error)(nil); errors.As(err, &refusal) {
		return answered{queries: make([]wire.Query, 1), results: []wire.Result{{Index: opts.index, Err: refusal}}}
	} else if err != nil {
		return answered{err: err}
	}
	results, all := make([]wire.Result, len(message.Queries)), make([]wire.Query, len(message.Queries))
	var places []int
	var queries []wire.Query
	for i, q := range message.Queries {
		if q.Err != nil {
			results[i] = wire.Result{ID: q.Query.ID, Index: opts.index, Err: q.Err}
			continue
		}
		opts.complete(&q.Query)
		all[i] = q.Query
		places = append(places, i)
		queries = append(queries, q.Query)
	}
	if len(queries) == 0 {
		return answered{all, results, nil}
	}
	request := asker.RequestBatch
	if opts.direct {
		request = asker.SearchBatch
	}
	if !message.Batch {
		request = func(ctx context.Context, index string, queries []wire.Query) ([]wire.Result, error) {
			one := asker.Request
			if opts.direct {
				one = asker.Search
			}
			result, err := one(ctx, index, queries[0])
			if err != nil {
				return nil, err
			}
			return []wire.Result{*result}, nil
		}
	}
	got, err := request(ctx, opts.index, queries)
	refusal := (*wire.Error)(nil)
	if errors.As(err, &refusal) {
		err = nil
	} else if err != nil {
		refusal, err = noAnswer(err, opts)
	}
	for i, place := range places {
		if refusal != nil {
			results[place] = wire.Result{ID: queries[i].ID, Index: opts.index, Err: refusal}
		} else {
			results[place] = got[i]
		}
	}
	return answered{all, results, err}
}

// complete adds to a query what the command line says of all.
func (o *queryOptions) complete(q *wire.Query) {
	if o.explain {
		q.Explain, q.Matched = true, true
	}
	if !o.json {
		answers.Want(q)
	}
}

// noAnswer is the result of queries that nobody answered, and the error in terms of the command line.
func noAnswer(err error, opts queryOptions) (*wire.Error, error) {
	code := wire.Internal
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = wire.DeadlineExceeded
		err = fmt.Errorf("no answer within --timeout %v; is a worker serving index %s?", opts.timeout, opts.index)
	case errors.Is(err, client.ErrNotServed):
		code = wire.UnknownIndex
	case errors.Is(err, client.ErrQueueFull):
		code = wire.Overloaded
	}
	return wire.Errorf(code, "%v", err), err
}

// payloadField is the text of a field of a hit's payload, "" when it has none.
func payloadField(payload json.RawMessage, name string) (string, error) {
	var fields map[string]any
	if len(payload) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(payload, &fields); err != nil {
		return "", fmt.Errorf("reading a payload: %w", err)
	}
	text, _ := fields[name].(string)
	return text, nil
}
