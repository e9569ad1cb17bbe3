// Package dead is the command for dead letters: messages that were given up.
package dead

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/consumer/letters"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

// Shell is what commands share: how settings of the environment are taken, and how mistakes of the user are marked.
type Shell struct {
	Settings func(cmd *cobra.Command, names ...string) error
	Usage    func(error) error
}

type options struct {
	shell  Shell
	server config.Config // of which only NATSSettings and the prefix are used
	choice letters.Choice
	all    bool
	json   bool
}

// Command is geniemq dead.
func Command(shell Shell) *cobra.Command {
	o := &options{shell: shell}
	root := &cobra.Command{
		Use:   "dead",
		Short: "Look at dead letters, replay or drop them",
		Long: `Dead letters are messages that were given up: workers did not survive them, their reply
subject is not allowed, or nobody serves their index. Each was answered with an error. The
stream keeps them for 7 days.

A replay publishes the query anew, with its own headers, and deletes the letter when the
stream has taken the query. It is answered as any other. Its Nats-Msg-Id is made of the
letter, so that a replay which is repeated within 2 minutes, because nobody said that it
had worked, is one query. The id in the answer is that of the query that died.

A query that was too large for a message lies in the object store for as long as its letter
does: show reads it there, replay asks with it again, drop deletes it.

Letters are named by their sequence, which list shows.`,
		Example: `  geniemq dead list
  geniemq dead replay 17`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	o.server.NATS = "nats://127.0.0.1:4222"
	o.server.NATSFlags(flags)
	flags.Lookup("nats").Usage = "`URL` of the NATS server"
	flags.StringVar(&o.server.Prefix, "prefix", wire.DefaultPrefix, "first `token` of all subjects")
	root.AddCommand(
		o.command("list", "List dead letters, the oldest first", "  geniemq dead list\n  geniemq dead list --index people --reason unknown_index --json", cobra.NoArgs, true, o.list),
		o.command("show SEQUENCE", "Show a dead letter with its query", "  geniemq dead show 17", cobra.ExactArgs(1), false, o.show),
		o.command("replay [SEQUENCE...]", "Publish the queries of dead letters anew", "  geniemq dead replay 17 18\n  geniemq dead replay --all --index people --reason unknown_index", cobra.ArbitraryArgs, true, o.replay),
		o.command("drop [SEQUENCE...]", "Delete dead letters", "  geniemq dead drop 17", cobra.ArbitraryArgs, true, o.drop),
	)
	return root
}

// command is one of the commands; those that choose can take letters by what they are.
func (o *options) command(use, short, example string, args cobra.PositionalArgs, chooses bool, run func(context.Context, *table.Page, *letters.Box, []uint64) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		if err := o.shell.Settings(cmd, append([]string{"prefix"}, config.NATSSettings...)...); err != nil {
			return err
		}
		if err := o.server.ValidateAsked(cmd.Flags()); err != nil {
			return o.shell.Usage(err)
		}
		subjects, err := wire.NewSubjects(o.server.Prefix)
		if err != nil {
			return o.shell.Usage(fmt.Errorf("--prefix: %w", err))
		}
		if o.choice.Newest < 0 {
			return o.shell.Usage(errors.New("--newest takes numbers from 1"))
		}
		var sequences []uint64
		for _, arg := range args {
			n, err := strconv.ParseUint(arg, 10, 64)
			if err != nil || n == 0 {
				return o.shell.Usage(fmt.Errorf("%q is no sequence of a dead letter: geniemq dead list shows them", arg))
			}
			sequences = append(sequences, n)
		}
		if acts := cmd.Flags().Lookup("all") != nil; acts && o.all == (len(sequences) > 0) {
			return o.shell.Usage(errors.New("which letters? name their sequences, or --all, with --index or --reason for some of them"))
		} else if acts && !o.all && (o.choice.Index != "" || o.choice.Reason != "") {
			return o.shell.Usage(errors.New("--index and --reason choose letters: they go with --all"))
		}
		nc, js, err := connection.Connect(&o.server, "geniemq dead")
		if err != nil {
			return err
		}
		defer nc.Close()
		page := table.On(cmd.OutOrStdout())
		out := bufio.NewWriter(page)
		if !cmd.Flags().Changed("json") {
			o.json = !page.Terminal()
		}
		return errors.Join(run(cmd.Context(), page.To(out), letters.Of(js, subjects), sequences), out.Flush())
	}}
	set := cmd.Flags()
	set.BoolVar(&o.json, "json", false, "JSON Lines (default when the output is no terminal; --json=false for people)")
	if chooses {
		set.StringVar(&o.choice.Index, "index", "", "those of an `index` alone")
		set.StringVar(&o.choice.Reason, "reason", "", "those of a `reason` alone: worker_lost, engine_failed, bad_reply, bad_object, unknown_index")
	}
	if args := cmd.Name(); args == "list" {
		set.IntVar(&o.choice.Newest, "newest", 100, "most letters, the newest; 0: all")
	} else if chooses {
		set.BoolVar(&o.all, "all", false, "all letters, or all that --index and --reason choose")
	}
	return cmd
}

func (o *options) list(ctx context.Context, p *table.Page, box *letters.Box, _ []uint64) error {
	found, err := box.List(ctx, o.choice)
	if err != nil {
		return err
	}
	if o.json {
		for i := range found {
			if err := p.JSON(&found[i], ""); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		p.Say("no dead letters\n")
		return nil
	}
	t := table.New(table.Number("letter").Kept(), table.Text("index").Kept(), table.Text("reason").Kept().Whole(), table.Text("died").Whole(), table.Text("detail"),
		table.Text("id"), table.Number("bytes"), table.Number("delivered"))
	for _, l := range found {
		t.Row(l.Sequence, l.Index, l.Reason, l.Died.Local().Format(time.DateTime), l.Detail, l.ID, l.Size, l.Delivered)
	}
	t.Print(p)
	if all, err := box.Count(ctx); err == nil && all > uint64(len(found)) {
		p.Say("%d of %d\n", len(found), all)
	}
	return nil
}

func (o *options) show(ctx context.Context, p *table.Page, box *letters.Box, sequences []uint64) error {
	l, err := box.Get(ctx, sequences[0])
	if err != nil {
		return err
	}
	if o.json {
		shown := struct {
			*letters.Letter
			Body   string `json:"body,omitempty"`
			Base64 string `json:"body_base64,omitempty"` // of what is no text
		}{Letter: l}
		if utf8.Valid(l.Body) {
			shown.Body = string(l.Body)
		} else {
			shown.Base64 = base64.StdEncoding.EncodeToString(l.Body)
		}
		return p.JSON(shown, "")
	}
	p.Say("letter     %d of %s, %s\n", l.Sequence, l.Died.Local().Format(time.DateTime), l.Reason)
	p.Say("detail     %s\n", l.Detail)
	p.Say("query      message %d of %s, published to %s\n", l.Query, l.Asked.Local().Format(time.DateTime), l.Subject)
	if l.ID != "" {
		p.Say("id         %s\n", l.ID)
	}
	if l.Reply != "" {
		p.Say("answer to  %s\n", l.Reply)
	}
	p.Say("delivered  %s\n", human.Count(l.Delivered, "time"))
	cut := ""
	if l.Cut {
		cut = fmt.Sprintf(", of which the letter has %d: it cannot be replayed", len(l.Body))
	}
	p.Say("body       %s%s\n", human.Count(l.Size, "byte"), cut)
	if l.Object != "" {
		p.Say("object     %s\n", l.Object)
	}
	if l.ObjectFault != "" {
		p.Say("           %s\n", l.ObjectFault)
	}
	p.Say("\n")
	p.Copy(readable(l.Body))
	return nil
}

// readable is the body of a letter as people can read it: MessagePack as the JSON that means the same, and what is neither as base64.
func readable(body []byte) string {
	if utf8.Valid(body) {
		return string(body)
	}
	m, err := wire.DecodeMessage(wire.MessagePack, body, wire.Limits{})
	if err != nil || slices.ContainsFunc(m.Queries, func(q wire.QueryOrError) bool { return q.Err != nil }) {
		return base64.StdEncoding.EncodeToString(body)
	}
	queries := make([]wire.Query, len(m.Queries))
	for i := range m.Queries {
		queries[i] = m.Queries[i].Query
	}
	if m.Batch {
		return string(wire.AppendQueries(nil, wire.JSON, queries))
	}
	return string(wire.AppendQuery(nil, wire.JSON, &queries[0]))
}

func (o *options) replay(ctx context.Context, p *table.Page, box *letters.Box, sequences []uint64) error {
	return o.each(ctx, box, sequences, "replayed", func(sequence uint64) error {
		done, err := box.Replay(ctx, sequence)
		if err != nil {
			return err
		}
		if o.json {
			return p.JSON(struct {
				Letter uint64 `json:"letter"`
				letters.Replayed
			}{sequence, done}, "")
		}
		already := ""
		if done.Already {
			already = ", where an earlier replay had put it"
		}
		p.Say("letter %d is message %d of %s%s, id %s\n", sequence, done.Sequence, done.Subject, already, done.ID)
		return nil
	})
}

func (o *options) drop(ctx context.Context, p *table.Page, box *letters.Box, sequences []uint64) error {
	return o.each(ctx, box, sequences, "dropped", func(sequence uint64) error {
		if err := box.Drop(ctx, sequence); err != nil {
			return err
		}
		if o.json {
			return p.JSON(map[string]uint64{"dropped": sequence}, "")
		}
		p.Say("letter %d is gone\n", sequence)
		return nil
	})
}

// each does something to letters: those named, or with --all those chosen. It goes on after one that fails, and its error joins the first faults.
func (o *options) each(ctx context.Context, box *letters.Box, sequences []uint64, done string, do func(uint64) error) error {
	if o.all {
		found, err := box.List(ctx, o.choice)
		if err != nil {
			return err
		}
		for _, l := range found {
			sequences = append(sequences, l.Sequence)
		}
	}
	const shown = 10
	var faults []error
	failed := 0
	for _, sequence := range sequences {
		err := do(sequence)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
		if err != nil {
			if failed++; failed <= shown {
				faults = append(faults, err)
			}
		}
	}
	if failed > shown {
		faults = append(faults, fmt.Errorf("%d of %d letters were not %s", failed, len(sequences), done))
	}
	return errors.Join(faults...)
}
