package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/cmd/geniemq/inputs"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

// inFlight is how many queries the query command has under way at a time.
const inFlight = 64

type queryOptions struct {
	index, file  string
	server       config.Config // of which only NATSSettings and the prefix are used
	direct, json bool
	user, class  string
	explain      bool // each query is to be explained, for people
	timeout      time.Duration
}

// check looks for what cannot be meant.
func (o *queryOptions) check(args []string) error {
	if o.index == "" {
		return usagef("--index is missing: name the index to ask")
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
	if len(args) > 0 && o.file != "" {
		return usagef("queries are either arguments or in --file, not both")
	}
	return nil
}

func (c *cli) queryCommand() *cobra.Command {
	opts := new(queryOptions)
	cmd := c.askingCommand(opts)
	cmd.Use, cmd.Short = "query --index NAME [flags] ['{...}' ...]", "Ask an index"
	cmd.Long = `Query asks queries, each a JSON object, and prints their results: a table on a terminal,
JSON Lines otherwise, one line per query in the order of the queries. The queries are
arguments, or the lines of --file, or else those of the standard input.

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
	cmd.Example = `  geniemq query --index adult '{"row":{"age":{"min":30,"max":40},"sex":"Female"},"k":5}'
  geniemq query --index words --direct '{"text":"recieve","k":3,"with_payload":true}'
  geniemq query --index adult --file queries.jsonl > results.jsonl
  jq -c '{text: .title}' papers.json | geniemq query --index titles --nats nats://broker:4222`
	return cmd
}

// askingCommand asks queries; its texts are missing.
func (c *cli) askingCommand(opts *queryOptions) *cobra.Command {
	cmd := &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			c.warnOfSecrets(cmd)
			// Not the index: GENIEMQ_INDEX says which ones serve has, with their files.
			if err := c.environment(cmd, append([]string{"prefix", "timeout", "direct", "json", "user", "class", "js-domain"}, config.NATSSettings...)...); err != nil {
				return err
			}
			if opts.server.NATSContext != "" && !cmd.Flags().Changed("nats") {
				opts.server.NATS = "" // the default stands back
			} else if opts.server.NATS == "" { // as serve understands it: the server that it starts itself
				opts.server.NATS = nats.DefaultURL
			}
			if err := opts.server.ValidateNATS(); err != nil {
				return usageError{err}
			}
			if err := opts.check(args); err != nil {
				return err
			}
			if len(args) == 0 && opts.file == "" && isTerminal(c.in) {
				return usagef("nothing to ask: give a query like '{\"text\":\"...\"}', or --file")
			}
			if !cmd.Flags().Changed("json") {
				opts.json = !isTerminal(c.out) && !opts.explain
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
	flags.StringVar(&opts.server.Streams.Domain, "js-domain", "", "JetStream `domain` of the streams (default: that of the server)")
	flags.DurationVar(&opts.timeout, "timeout", 30*time.Second, "how long to wait for each answer")
	flags.BoolVar(&opts.json, "json", false, "JSON Lines (default when the output is no terminal; --json=false for tables)")
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

	nc, err := connection.Connect(&opts.server, "geniemq query", nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := connection.JetStreamOf(nc, opts.server.Streams.Domain)
	if err != nil {
		return err
	}
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
	out := bufio.NewWriter(c.out)
	var asked, unanswered int
	var first, unread error // why the first of the unanswered is, and why not all lines were read
	for {
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
			a = <-answer
		}
		if answer == nil || a.err != nil && ctx.Err() != nil {
			return fmt.Errorf("interrupted after %s", count(asked-unanswered, "answer"))
		}
		asked += len(a.results)
		switch {
		case a.err == nil:
		case len(a.results) == 0:
			unread = a.err
		default:
			unanswered += len(a.results)
			if first == nil {
				first = a.err
			}
		}
		for i := range a.results {
			if opts.json {
				_, _ = out.Write(append(wire.AppendResult(nil, wire.JSON, &a.results[i]), '\n'))
			} else {
				printResult(out, &a.results[i])
			}
		}
		if err := out.Flush(); err != nil { // each at once: a person or a pipe waits for it
			return fmt.Errorf("writing results: %w", err)
		}
	}
	if unanswered > 1 {
		first = fmt.Errorf("%d of %d queries have no answer; the first: %w", unanswered, asked, first)
	}
	return errors.Join(first, unread)
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
				results, err := ask(ctx, asker, opts, l.text)
				if err != nil {
					err = fmt.Errorf("query %d: %w", l.number, err)
				}
				answer <- answered{results, err}
			})
		}
	}()
	return answers
}

// ask asks what is on one line, a query or {"queries":[...]}. What is wrong with a query is its result. With an error
// some of the results are not the service's: nobody answered.
func ask(ctx context.Context, asker *client.Client, opts queryOptions, text string) ([]wire.Result, error) {
	message, err := wire.DecodeMessage(wire.JSON, []byte(text), wire.Limits{})
	if refusal := (*wire.Error)(nil); errors.As(err, &refusal) {
		return []wire.Result{{Index: opts.index, Err: refusal}}, nil
	} else if err != nil {
		return nil, err
	}
	results := make([]wire.Result, len(message.Queries))
	var places []int
	var queries []wire.Query
	for i, q := range message.Queries {
		if q.Err != nil {
			results[i] = wire.Result{ID: q.Query.ID, Index: opts.index, Err: q.Err}
			continue
		}
		if opts.explain {
			q.Query.Explain, q.Query.Matched = true, true
		}
		places = append(places, i)
		queries = append(queries, q.Query)
	}
	if len(queries) == 0 {
		return results, nil
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
	return results, err
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

// printResult writes a result for people.
func printResult(out io.Writer, r *wire.Result) {
	title := r.Index
	if r.ID != "" {
		title = r.ID + " on " + r.Index
	}
	if r.Err != nil {
		fmt.Fprintf(out, "%s: %s: %s\n\n", title, r.Err.Code, r.Err.Message)
		return
	}
	exact := ""
	if r.Exact {
		exact = ", exact"
	}
	total := ""
	if r.HasTotal {
		total = fmt.Sprintf(" of %s that pass", count(r.Total, "object"))
	}
	if r.HasInRange {
		total += fmt.Sprintf(", %s within", count(r.InRange, "object"))
	}
	if r.Method != "" {
		exact += ", by " + r.Method
	}
	fmt.Fprintf(out, "%s: %s%s%s, %v\n", title, count(len(r.Hits), "hit"), total, exact, r.Took.Total.Round(10*time.Microsecond))
	for _, warning := range r.Warnings {
		fmt.Fprintf(out, "  warning: %s\n", warning)
	}
	if len(r.Hits) > 0 {
		printHits(out, r.Hits)
	}
	if r.Explain != nil {
		printExplanation(out, r)
	}
	fmt.Fprintln(out)
}

// count is a number of things, in words that fit it.
func count[N int | int64 | uint32 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// hitColumn is a column of a table of hits.
type hitColumn struct {
	name  string
	shown bool // a hit has something for it
	cell  func(h *wire.Hit) string
}

func printHits(out io.Writer, hits []wire.Hit) {
	number := func(v float64, digits, bits int) string { return strconv.FormatFloat(v, 'g', digits, bits) }
	optional := func(has bool, text string) string {
		if !has {
			return ""
		}
		return text
	}
	columns := []hitColumn{
		{"count", true, func(h *wire.Hit) string { return strconv.FormatUint(uint64(h.Count), 10) }},
		{"distance", false, func(h *wire.Hit) string { return optional(h.HasDistance, number(h.Distance, 6, 64)) }},
		{"score", false, func(h *wire.Hit) string { return optional(h.HasScore, number(h.Score, 6, 64)) }},
		{"similarity", false, func(h *wire.Hit) string { return optional(h.HasSimilarity, number(float64(h.Similarity), 4, 32)) }},
		{"id", true, func(h *wire.Hit) string { return strconv.FormatUint(uint64(h.ID), 10) }},
		{"key", false, func(h *wire.Hit) string { return optional(h.Key != strconv.FormatUint(uint64(h.ID), 10), h.Key) }},
		{"matched", false, func(h *wire.Hit) string { return optional(h.Detail != nil, strings.Join(matchedOf(h), " ")) }},
		{"payload", false, func(h *wire.Hit) string { return string(h.Payload) }},
	}
	keys := false
	for i := range hits {
		keys = keys || hits[i].Key != "" && hits[i].Key != strconv.FormatUint(uint64(hits[i].ID), 10)
		for j := range columns {
			columns[j].shown = columns[j].shown || columns[j].cell(&hits[i]) != ""
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cell func(c *hitColumn) string) {
		cells := []string{""}
		for j := range columns {
			if c := &columns[j]; c.shown {
				cells = append(cells, cell(c))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if keys { // then all are told
		columns[5].cell = func(h *wire.Hit) string { return h.Key }
	}
	row(func(c *hitColumn) string { return c.name })
	for i := range hits {
		row(func(c *hitColumn) string { return c.cell(&hits[i]) })
	}
	w.Flush()
}

// matchedOf are the columns that a hit matched.
func matchedOf(h *wire.Hit) []string {
	if h.Detail == nil {
		return nil
	}
	return h.Detail.Matched
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
