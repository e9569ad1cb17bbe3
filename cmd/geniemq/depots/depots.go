// Package depots is the commands that keep indexes in a NATS server: push, versions and rollback.
package depots

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/depot"
	"github.com/geniemq/geniemq/wire"
)

// Shell is what the command line gives its commands.
type Shell struct {
	Out io.Writer
	// Prepare takes the named flags that the command line left alone from the environment, and warns of secrets.
	Prepare func(cmd *cobra.Command, names ...string) error
	// Usage marks an error as a mistake in the command's words.
	Usage func(error) error
	// Report prints what a command found as JSON, or as a table for people.
	Report func(cmd *cobra.Command, found any, table func(*table.Page)) error
}

// Commands are push, versions and rollback.
func (s Shell) Commands() []*cobra.Command {
	return []*cobra.Command{s.push(), s.versions(), s.rollback()}
}

// with adds the flags by which a command reaches the server, and has it do something with the depot there.
func (s Shell) with(cmd *cobra.Command, do func(store *depot.Depot, args []string) error) {
	cfg := new(config.Config)
	cfg.NATS = nats.DefaultURL
	cfg.NATSFlags(cmd.Flags())
	cmd.Flags().Lookup("nats").Usage = "`URL` of the NATS server"
	cmd.Flags().StringVar(&cfg.Prefix, "prefix", wire.DefaultPrefix, "first `token` of all subjects")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := s.Prepare(cmd, append([]string{"prefix"}, config.NATSSettings...)...); err != nil {
			return err
		}
		if err := cfg.ValidateAsked(cmd.Flags()); err != nil {
			return s.Usage(err)
		}
		subjects, err := wire.NewSubjects(cfg.Prefix)
		if err != nil {
			return s.Usage(fmt.Errorf("--prefix: %w", err))
		}
		nc, js, err := connection.Connect(cfg, "geniemq "+cmd.Name())
		if err != nil {
			return err
		}
		defer nc.Close()
		return do(depot.New(js, subjects), args)
	}
}

func (s Shell) push() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Keep an index in the NATS server, for workers to serve",
		Long: `Push stores the file of an index in the object store of the NATS server and makes it the
version that is served. Workers that serve NAME=nats: fetch it, compare its checksum,
and swap: nothing that was asked is lost, and each answer names its version.

The last ` + fmt.Sprint(depot.Keep) + ` versions are kept; 'geniemq rollback' goes back to one. A push that ends
half-way, or that the server has no room for, changes nothing of what is served.`,
		Example: `  geniemq push people.gmq
  geniemq serve --nats nats://127.0.0.1:4222 --index people=nats:
  geniemq push people.gmq --name people-test`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` of the index (default: its own)")
	s.with(cmd, func(store *depot.Depot, args []string) error {
		name, v, err := store.Push(cmd.Context(), name, args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "%s: version %s is pushed, %s; workers of %s=nats: take it\n", name, v.Version, human.Bytes(v.Bytes), name)
		return nil
	})
	return cmd
}

func (s Shell) versions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions [INDEX...]",
		Short: "List the versions of indexes that were pushed",
		Example: `  geniemq versions
  geniemq versions people --json | jq .people.current`,
	}
	cmd.Flags().Bool("json", false, "JSON (default when the output is no terminal; --json=false for a table)")
	s.with(cmd, func(store *depot.Depot, names []string) (err error) {
		if len(names) == 0 {
			if names, err = store.Names(cmd.Context()); err != nil {
				return err
			}
		}
		shelves := make(map[string]*depot.Shelf)
		for _, name := range names {
			if shelves[name], err = store.Shelf(cmd.Context(), name); err != nil {
				return fmt.Errorf("index %s: %w", name, err)
			}
		}
		return s.Report(cmd, shelves, func(p *table.Page) { list(p, names, shelves) })
	})
	return cmd
}

func list(p *table.Page, names []string, shelves map[string]*depot.Shelf) {
	t := table.New(table.Text("index").Kept(), table.Text("version").Whole().Kept(), table.Text("served").Kept(), table.Text("pushed").Whole(), table.Number("objects"), table.Number("size"))
	for _, name := range names {
		for _, v := range shelves[name].Versions {
			served := ""
			if v.Version == shelves[name].Current {
				served = "yes"
			}
			t.Row(name, v.Version, served, v.Pushed.Format(time.RFC3339), v.Objects, human.Bytes(v.Bytes))
		}
	}
	t.Print(p)
}

func (s Shell) rollback() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "rollback INDEX",
		Short: "Have workers serve an older version that was pushed",
		Long: `Rollback makes the version that was pushed before the one that is served the one that is
served, or the one that --to names. Workers take it as they take one that is pushed.`,
		Example: `  geniemq rollback people
  geniemq rollback people --to 155e9ca468e97bd0`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&to, "to", "", "`version` to go back, or forth, to")
	s.with(cmd, func(store *depot.Depot, args []string) error {
		was, is, err := store.Rollback(cmd.Context(), args[0], to)
		if errors.Is(err, depot.ErrNothing) || errors.Is(err, depot.ErrNoVersion) {
			return fmt.Errorf("index %s: %w: 'geniemq versions %s' lists them", args[0], err, args[0])
		} else if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "%s: version %s is to be served, %s was\n", args[0], is, was)
		return nil
	})
	return cmd
}
