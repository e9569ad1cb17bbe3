package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/tests/faults/crowd"
	"github.com/geniemq/geniemq/tests/faults/history"
	"github.com/geniemq/geniemq/wire"
)

// burst queries are published at once, so that batches have more than one.
const burst = 8

// askerRole publishes queries at a steady rate, each until it is acknowledged, whatever happens to the servers, and writes down those that were.
// When its standard input ends it publishes no new ones, and ends when all are acknowledged.
func askerRole(args []string) error {
	flags := pflag.NewFlagSet("asker", pflag.ContinueOnError)
	urls, dir := flags.String("urls", "", ""), flags.String("dir", "", "")
	seed, rate := flags.Uint64("seed", 0, ""), flags.Int("rate", 1, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	js, err := connect(*urls)
	if err != nil {
		return err
	}
	log, err := history.Open(*dir, history.AcceptedLog)
	if err != nil {
		return err
	}
	defer log.Close()
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until it ends
		close(over)
	}()
	var publishing sync.WaitGroup
	var mu sync.Mutex
	failed := make(chan error, 1)
	room := make(chan struct{}, 1000) // queries that wait for their acknowledgement: beyond it the asker waits too
	tick := time.NewTicker(burst * time.Second / time.Duration(*rate))
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-over:
			publishing.Wait()
			return nil
		case err := <-failed:
			return err
		case <-tick.C:
		}
		for range burst {
			room <- struct{}{}
			own := n
			publishing.Go(func() {
				defer func() { <-room }()
				a := publishUntilAcknowledged(js, *seed, own)
				mu.Lock()
				defer mu.Unlock()
				if _, err := log.WriteString(a.Line()); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			})
			n++
		}
	}
}

// publishUntilAcknowledged repeats a publish with the same id, as every client should.
func publishUntilAcknowledged(js jetstream.JetStream, seed uint64, n int) history.Accepted {
	q, _ := crowd.Question(seed, n)
	msg := nats.NewMsg(wire.Subjects{}.Query(crowd.IndexName))
	msg.Data = wire.AppendQuery(nil, wire.JSON, &q)
	msg.Header.Set(jetstream.MsgIDHeader, q.ID)
	a := history.Accepted{ID: q.ID, Began: time.Now()}
	for told := false; ; {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
		cancel()
		if err == nil {
			a.Stored = time.Now()
			return a
		}
		if !told && !errors.Is(err, context.DeadlineExceeded) {
			fmt.Fprintln(os.Stderr, q.ID, err)
			told = true
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// readerRole writes down every answer that the result stream ever had, under the stream's incarnation and its sequence there.
func readerRole(args []string) error {
	flags := pflag.NewFlagSet("reader", pflag.ContinueOnError)
	urls, dir := flags.String("urls", "", ""), flags.String("dir", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	js, err := connect(*urls)
	if err != nil {
		return err
	}
	log, err := history.Open(*dir, history.AnswersLog)
	if err != nil {
		return err
	}
	defer log.Close()
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until it ends
		close(over)
	}()
	var at place
	for {
		select {
		case <-over:
			return nil
		default:
		}
		if err := readOn(js, log, &at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// place is what was read of the result stream.
type place struct {
	incarnation string
	sequence    uint64 // of the last answer
}

// readOn takes what comes after a place, each answer once and in order. Nothing is acknowledged, so that no clock of a server decides when it comes again: what
// a connection took with it shows as a gap, and is read by the next call.
func readOn(js jetstream.JetStream, log *os.File, at *place) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, wire.Subjects{}.ResultStream())
	if err != nil {
		return fmt.Errorf("look at the results: %w", err)
	}
	if incarnation := fmt.Sprint(stream.CachedInfo().Created.UnixNano()); incarnation != at.incarnation {
		*at = place{incarnation: incarnation}
	}
	reader, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: time.Minute, MemoryStorage: true, Replicas: 1,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: at.sequence + 1})
	if err != nil {
		return fmt.Errorf("make the reader's consumer: %w", err)
	}
	defer func() { _ = stream.DeleteConsumer(ctx, reader.CachedInfo().Name) }() // or it goes in a minute
	next := uint64(1)
	for range 20 {
		batch, err := reader.Fetch(500, jetstream.FetchMaxWait(300*time.Millisecond))
		if err != nil {
			return fmt.Errorf("read results: %w", err)
		}
		for m := range batch.Messages() {
			info, err := m.Metadata()
			if err != nil {
				return err
			}
			if info.Sequence.Consumer != next {
				return fmt.Errorf("read results: the %dth came instead of the %dth", info.Sequence.Consumer, next)
			}
			next++
			r, err := wire.DecodeAnswer(wire.JSON, m.Data())
			if err != nil || len(r.Results) != 1 {
				return fmt.Errorf("an answer is no answer: %q: %w", m.Data(), err)
			}
			a := history.Answered{Incarnation: at.incarnation, Sequence: info.Sequence.Stream, Stored: info.Timestamp, Read: time.Now(),
				ID: r.Results[0].ID, Version: r.Results[0].Version, Answer: crowd.AnswerText(&r.Results[0])}
			if _, err := log.WriteString(a.Line()); err != nil {
				return err
			}
			at.sequence = info.Sequence.Stream
		}
		if err := batch.Error(); err != nil {
			return fmt.Errorf("read results: %w", err)
		}
	}
	return nil
}
