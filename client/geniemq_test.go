package client_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// smallPayload is a max_payload of a server at which manyQueries fit into one message, and their results do not.
const (
	smallPayload = 256 << 10
	manyQueries  = 3000
)

// theDemo is what the examples ask: a broker and geniemq, started by the first example.
var theDemo struct {
	once   sync.Once
	broker *testkit.Broker
	stop   func() error
	err    error
}

func startDemo() (url string, err error) {
	d := &theDemo
	d.once.Do(func() {
		var dir string
		if dir, d.err = os.MkdirTemp("", "geniemq-client-test-"); d.err == nil {
			d.broker, d.err = testkit.NewBroker(dir)
		}
		if d.err == nil {
			d.stop, d.err = startGeniemq(d.broker.URL())
		}
	})
	if d.err != nil {
		return "", d.err
	}
	return d.broker.URL(), nil
}

func stopDemo() {
	if theDemo.stop != nil {
		if err := theDemo.stop(); err != nil {
			panic(err)
		}
	}
	if theDemo.broker != nil {
		if err := theDemo.broker.Remove(); err != nil {
			panic(err)
		}
	}
}

// startGeniemq starts geniemq on a NATS server. It serves the dictionary as the index "words".
func startGeniemq(url string) (stop func() error, err error) {
	dir, err := os.MkdirTemp("", "geniemq-client-test-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	path := filepath.Join(dir, "words.gmq")
	if err := buildWords(ctx, path); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	srv, err := service.Start(ctx, config.Config{
		NATS: url, Indexes: []config.IndexSource{{Path: path}}, Admin: config.Off,
	}, service.Options{})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return errors.Join(srv.Shutdown(ctx), os.RemoveAll(dir))
	}, nil
}

// buildWords writes an index of the dictionary, with the words as keys.
func buildWords(ctx context.Context, path string) error {
	spec, err := index.Builtin().ParseSchema([]byte("name: words\nkind: sequences\nkey: word\ncolumns: [{name: word, type: text}]\n"))
	if err != nil {
		return err
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		return err
	}
	words := strings.NewReader("word\n" + strings.Join(dictionary, "\n") + "\n")
	reader, err := load.NewReader(words, "words.csv", spec, load.Options{})
	if err != nil {
		return err
	}
	if err := objects.AddAll(ctx, index.Source{Next: reader.Next}); err != nil {
		return err
	}
	return objects.WriteFile(ctx, path, nil)
}
