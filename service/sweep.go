package service

import (
	"context"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/service/intake"
	"github.com/geniemq/geniemq/wire"
)

// sweep runs the sweeper of a class until ctx ends.
func (s *Service) sweep(ctx context.Context, class wire.Class) {
	log := s.repeats.Logger(s.log)
	a := &intake.Unserved{Publishers: &s.carriers.Of(class).Publishers, Subjects: s.subjects, Replies: s.replies, Answers: s.answers, Log: log}
	consumer.NewSweeper(s.js, consumer.SweeperOptions{
		Subjects: s.subjects,
		Class:    class,
		Answer:   a.Answer,
		Alive:    s.set.Alive,
		Now:      s.clock.Server,
		OnSweep: func(swept int, err error) {
			if swept > 0 {
				s.metrics.DeadUnserved(swept)
				log.Warn("answered and removed queries for indexes that nobody serves", "messages", swept)
			}
			if err != nil {
				log.Warn("sweeping queries that nobody serves", "error", err)
			}
		},
	}).Run(ctx)
}
