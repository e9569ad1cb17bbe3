package service

import (
	"context"
	"log/slog"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/wire"
)

// unservedAnswerer answers the messages that the sweeper finds on subjects that nobody serves.
type unservedAnswerer struct {
	publishers *publishers
	subjects   wire.Subjects
	allow      []string // reply subjects
	metrics    *metrics
	log        *slog.Logger
}

// answer tells the sender of a message that nobody serves its index, and returns when that is confirmed.
func (a *unservedAnswerer) answer(ctx context.Context, u *consumer.Unserved) error {
	result := wire.Result{Index: u.Index, Err: wire.Errorf(wire.UnknownIndex, "no worker serves index %q", u.Index)}
	answer := &wire.Answer{Results: []wire.Result{result}}
	codec, err := wire.ParseContentType(u.Header.Get(wire.HeaderContentType))
	if err != nil {
		codec = wire.JSON
	}
	reply := u.Header.Get(wire.HeaderReply)
	if wire.ValidateReplySubject(reply, a.allow) != nil {
		reply = a.subjects.Result(u.Index)
	}
	confirmed := make(chan error, 1)
	a.publishers.next().Publish(ctx, producer.Outgoing{
		Subject: reply,
		MsgID:   partID(resultID(u.Index, u.Header, u.StreamCreated, u.Sequence), 1),
		Header:  resultHeader(u.Header, u.Sequence, codec, answer),
		Body:    wire.AppendAnswer(nil, codec, answer),
	}, func(err error) { confirmed <- err })
	if err := <-confirmed; err != nil {
		return err
	}
	a.metrics.dead.WithLabelValues(string(wire.UnknownIndex)).Inc()
	return nil
}

// sweep runs a sweeper until ctx ends.
func (s *Service) sweep(ctx context.Context) {
	a := &unservedAnswerer{publishers: &s.publishers, subjects: s.subjects, allow: s.cfg.replyAllow(), metrics: s.metrics, log: s.log}
	consumer.NewSweeper(s.js, consumer.SweeperOptions{
		Subjects: s.subjects,
		Answer:   a.answer,
		OnSweep: func(swept int, err error) {
			if swept > 0 {
				s.log.Warn("answered and removed queries for indexes that nobody serves", "messages", swept)
			}
			if err != nil {
				s.log.Warn("sweeping queries that nobody serves", "error", err)
			}
		},
	}).Run(ctx)
}
