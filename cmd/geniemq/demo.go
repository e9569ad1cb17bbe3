package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// The demo's data: the largest word list of SCOWL (demodata/words.copyright), and the chemical elements with IUPAC's
// abridged atomic weights, which elements without stable isotopes lack.
var (
	//go:embed demodata/words.txt.gz
	demoWords []byte
	//go:embed demodata/elements.csv
	demoElements []byte
)

// demoIndexes are the indexes of the demo.
var demoIndexes = []struct {
	what, file string
	data       []byte
	schema     string
}{
	{"English words", "words.txt.gz", demoWords, `
name: words
kind: sequences
columns:
  - {name: word, type: text}
`},
	{"chemical elements", "elements.csv", demoElements, `
name: elements
kind: rows
key: symbol
columns:
  - {name: number, type: number, edges: exact}
  - {name: symbol, type: payload}
  - {name: name, type: payload}
  - {name: weight, type: number}
  - {name: period, type: number, edges: exact}
  - {name: group, type: number, edges: exact}
  - {name: block, type: category}
  - {name: state, type: category}
`},
}

func (c *cli) demoCommand() *cobra.Command {
	var once bool
	cfg := config.Config{Admin: "127.0.0.1:0", NATSListen: "127.0.0.1:0"} // the usual ports are for serve, which may be tried beside it
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: everything in one process, on bundled data",
		Long: `Demo starts a NATS server with JetStream and a worker in this process, builds two indexes
from bundled data (663,473 English words, 118 chemical elements), publishes queries
through the stream, prints the results, and stays up for you to try. It needs no files
and leaves none, and takes free ports, which it prints.`,
		Example: `  geniemq demo
  geniemq demo --once          print the results and end`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.environment(cmd, "nats-listen", "admin", "once"); err != nil {
				return err
			}
			settings := cfg
			settings.Indexes = []config.IndexSource{{Path: "demo"}} // they are built later
			settings.EnsureDefaults()
			if err := settings.Validate(); err != nil {
				return usageError{err}
			}
			return c.demo(cmd.Context(), cfg, once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "end after the results")
	cmd.Flags().StringVar(&cfg.NATSListen, "nats-listen", cfg.NATSListen, "`address` of the NATS server; port 0 takes a free one, and so does a port that is taken")
	cmd.Flags().StringVar(&cfg.Admin, "admin", cfg.Admin, "`address` of the admin page, or off; port 0 takes a free one, and so does a port that is taken")
	return cmd
}

func (c *cli) demo(ctx context.Context, cfg config.Config, once bool) (err error) {
	ctx, stop := c.untilHungUp(ctx, func(context.Context) {
		fmt.Fprintln(c.err, "SIGHUP is ignored: SIGTERM ends the demo")
	})
	defer stop()
	dir, err := os.MkdirTemp("", "geniemq-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg.DataDir = filepath.Join(dir, "streams")
	cfg.NATSListen = freeAddress(cfg.NATSListen)
	if cfg.Admin != config.Off {
		cfg.Admin = freeAddress(cfg.Admin)
	}
	for _, d := range demoIndexes {
		start := time.Now()
		path, objects, err := buildDemoIndex(ctx, dir, d.file, d.data, d.schema)
		if err != nil {
			return fmt.Errorf("building the index of %s: %w", d.what, err)
		}
		fmt.Fprintf(c.out, "indexed %d %s in %.1f s\n", objects, d.what, time.Since(start).Seconds())
		cfg.Indexes = append(cfg.Indexes, config.IndexSource{Path: path})
	}
	cfg.EnsureDefaults()

	// The log would drown the results; what goes wrong is said all the same.
	log := slog.New(slog.NewTextHandler(redacting{c.err}, &slog.HandlerOptions{Level: slog.LevelError}))
	srv, err := service.Start(ctx, cfg, service.Options{Logger: log})
	if err != nil {
		return err
	}
	status := srv.Status()
	fmt.Fprintf(c.out, "engine: %s%s\n", status.Engine, noteOf(status.EngineNote))
	if err = c.demoQueries(ctx, srv.NATSURL()); err == nil && !once {
		c.demoAdvice(srv)
		return c.untilStopped(ctx, srv, cfg)
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.DrainTimeout)
	defer cancel()
	return errors.Join(err, srv.Shutdown(draining))
}

// freeAddress is addr if it can be listened on, else the same host with a free port.
func freeAddress(addr string) string {
	listener, err := net.Listen("tcp", addr)
	if err == nil {
		listener.Close()
		return addr
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr // Validate says what is wrong with it
	}
	return net.JoinHostPort(host, "0")
}

func buildDemoIndex(ctx context.Context, dir, name string, data []byte, schemaText string) (path string, objects int, err error) {
	spec, err := index.Builtin().ParseSchema([]byte(schemaText))
	if err != nil {
		return "", 0, err
	}
	built, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		return "", 0, err
	}
	reader, err := load.NewReader(bytes.NewReader(data), name, spec, load.Options{})
	if err != nil {
		return "", 0, err
	}
	if err := built.AddAll(ctx, index.Source{Name: name, Next: reader.Next}); err != nil {
		return "", 0, err
	}
	path = filepath.Join(dir, spec.Name+".gmq")
	return path, built.Objects(), built.WriteFile(ctx, path, nil)
}

// misspelt are words as people type them.
var misspelt = []string{"definately", "seperate", "neccessary", "embarass", "goverment", "independant", "occurence", "konsensus", "rythm"}

// questions are asked to the table of elements.
var questions = []struct {
	text string
	row  []client.Condition
}{
	{"a gas of period 2 or 3 that weighs 15 to 21", client.Conditions(
		client.Equal("state", "gas"), client.AnyOf("period", 2, 3), client.Between("weight", 15, 21))},
	{"a liquid, preferably a metal of the d block, heavier than 150", client.Conditions(
		client.Weighted(2, client.Equal("state", "liquid")), client.Equal("block", "d"), client.AtLeast("weight", 150))},
	{"like copper: group 11, solid, weighs 100 to 200", client.Conditions(
		client.Equal("group", 11), client.Equal("state", "solid"), client.Between("weight", 100, 200))},
}

func (c *cli) demoQueries(ctx context.Context, url string) error {
	nc, err := nats.Connect(url, nats.Name("geniemq demo"))
	if err != nil {
		return err
	}
	defer nc.Close()
	asker, err := client.New(nc, client.Options{})
	if err != nil {
		return err
	}
	defer asker.Close()

	fmt.Fprintf(c.out, "\nTyped words and the nearest ones by edit distance (index words, kind sequences):\n\n")
	queries := make([]client.Query, len(misspelt))
	for i, word := range misspelt {
		queries[i] = client.Query{ID: word, K: 4, Text: word, WithPayload: true}
	}
	results, err := asker.RequestBatch(ctx, "words", queries)
	if err != nil {
		return err
	}
	page := table.On(c.out)
	words := table.New(table.Text("typed").Kept(), table.Text("nearest").Kept(), table.Number("edits"), table.Text("also near"), table.Text("certain"))
	words.Indent = 2
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
		nearest, edits, also := "-", any(nil), []string(nil)
		for i, hit := range r.Hits {
			word, err := payloadField(hit.Payload, "word")
			if err != nil {
				return err
			}
			if i == 0 {
				nearest, edits = word, hit.Distance
			} else {
				also = append(also, fmt.Sprintf("%s (%v)", word, hit.Distance))
			}
		}
		words.Row(r.ID, nearest, edits, strings.Join(also, ", "), map[bool]string{true: "yes", false: "no"}[r.Exact])
	}
	words.Print(page)

	fmt.Fprintf(c.out, "\nMost conditions matched (index elements, kind rows):\n\n")
	elements := table.New(table.Text("wanted"), table.Text("best matches (conditions met)").Kept())
	elements.Indent = 2
	for _, q := range questions {
		result, err := asker.Request(ctx, "elements", client.Query{K: 4, Row: q.row, WithPayload: true})
		if err != nil {
			return err
		}
		var found []string
		for _, hit := range result.Hits {
			name, err := payloadField(hit.Payload, "name")
			if err != nil {
				return err
			}
			found = append(found, fmt.Sprintf("%s (%d)", name, hit.Count))
		}
		elements.Row(q.text, strings.Join(found, ", "))
	}
	elements.Print(page)
	return nil
}

func (c *cli) demoAdvice(srv *service.Service) {
	url := srv.NATSURL()
	name := "geniemq"
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") { // started by go run
		name = "go run ./cmd/geniemq"
	}
	page := ""
	if admin := srv.AdminURL(); admin != "" {
		page = ", the admin page is " + admin
	}
	fmt.Fprintf(c.out, `
Still running. NATS listens on %[1]s%[3]s

  %[2]s query --nats %[1]s words definately
  %[2]s query --nats %[1]s elements '{"row":{"state":"liquid","weight":{"min":150}}}'

With any NATS client, for instance the nats command: a request, and a query that is stored.

  nats -s %[1]s req genie.search.words '{"text":"definately"}'
  nats -s %[1]s sub 'genie.result.>' &
  nats -s %[1]s pub genie.query.words '{"id":"1","text":"rythm"}'

Ctrl-C ends.
`, url, name, page)
}
