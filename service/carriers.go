package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/service/intake"
	"github.com/geniemq/geniemq/wire"
)

// openCarriers connects what stored queries come and their answers go on.
func (s *Service) openCarriers(context.Context) error {
	names, all := []string{"geniemq"}, []*intake.Carrier{&s.carriers.Asked}
	if slices.Contains(s.classes, wire.ClassBulk) {
		names, all = append(names, "geniemq bulk"), append(all, &s.carriers.Bulk)
	}
	for i, c := range all {
		nc, js, err := s.keep(s.url, names[i]+" queries")
		if err != nil {
			return err
		}
		s.denials.Watch(nc)
		c.JS = js
	}
	s.onEnd("settlements", s.set.Settle) // after the producers, whose confirmations begin them, and before that on which they go out
	for i, c := range all {
		for n := range intake.PublishConnections {
			p, err := s.openProducer(fmt.Sprintf("%s answers %d", names[i], n+1), len(all)*intake.PublishConnections)
			if err != nil {
				return err
			}
			c.Producers = append(c.Producers, p)
		}
	}
	return nil
}

// openProducer makes one of so many producers, on a connection of its own.
func (s *Service) openProducer(name string, of int) (*producer.Producer, error) {
	nc, js, err := s.keep(s.url, name)
	if err != nil {
		return nil, err
	}
	p, err := producer.New(nc, producer.Options{
		Subjects: s.subjects, JetStream: js, Share: of,
		OnState: func(state producer.State) {
			if state.Blocked {
				s.log.Warn("results do not get out, holding back", "error", state.Reason, "in_flight", state.InFlight)
			} else {
				s.log.Info("results get out again")
			}
		},
	})
	if err != nil {
		return nil, err
	}
	s.onStop("producer", p.Close)
	return p, nil
}
