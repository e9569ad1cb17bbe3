package served

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/intake"
	"github.com/geniemq/geniemq/wire"
)

// endpointsWait bounds how long the server may take to hear of endpoints.
const endpointsWait = 30 * time.Second

// overlap is for how long the old endpoints stay when the server knows of the new ones. It finds out who listens and delivers in two steps: what it was
// about to deliver to an old endpoint alone would find nobody.
const overlap = 50 * time.Millisecond

// renew puts a micro service with the endpoints of those that listen in the place of the one that there is. When it returns, the server sends requests to no
// endpoint that is not among them, and all that it had sent to such have been taken in. An error that says so leaves what there was. Set.sharing is held.
func (s *Set) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endpointsWait)
	defer cancel()
	next, err := s.newService()
	if err != nil {
		return err
	}
	nc := s.link.NC
	if err := nc.FlushWithContext(ctx); err != nil { // the server knows of the endpoints before the old ones go
		return errors.Join(fmt.Errorf("adding the search endpoints: %w", err), next.Stop())
	}
	before := s.micro
	s.micro = next
	if before == nil {
		return nil
	}
	bell.Sleep(ctx, overlap)
	if err := s.retire(ctx, before); err != nil {
		return fmt.Errorf("ending the search endpoints that were there before: %w", err)
	}
	return nil
}

// retire ends a micro service. When it returns nil, the server sends its endpoints nothing any longer, and all that it had sent has been taken in. Set.sharing is held.
func (s *Set) retire(ctx context.Context, old micro.Service) error {
	if err := old.Stop(); err != nil {
		return err
	}
	nc := s.link.NC
	if nc.IsConnected() { // else nothing comes
		if err := nc.FlushWithContext(ctx); err != nil { // what the server has sent is here,
			return err
		}
	}
	taken := make(chan struct{})
	if err := nc.Barrier(func() { close(taken) }); err != nil { // and has been handed over
		return err
	}
	select {
	case <-taken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newService makes a micro service with the endpoints of those that listen.
func (s *Set) newService() (micro.Service, error) {
	takes := make(map[string]*intake.Direct) // by subject
	var listening []*Entry
	for _, e := range s.all() {
		if e.listens {
			listening = append(listening, e)
			for _, subject := range s.endpoints(e) {
				takes[subject[1]] = e.Direct
			}
		}
	}
	service, err := micro.AddService(s.link.NC, micro.Config{
		Name:        "geniemq",
		Version:     s.options.Version,
		Description: "top-k similarity search",
		Metadata:    map[string]string{"engine": s.engine.Info().Kind, "protocol": fmt.Sprint(wire.Version)},
		StatsHandler: func(e *micro.Endpoint) any {
			if direct := takes[e.Subject]; direct != nil {
				return direct.Stats()
			}
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the NATS service: %w", err)
	}
	for _, e := range listening {
		for _, named := range s.endpoints(e) {
			err := service.AddEndpoint(named[0], e.Direct,
				micro.WithEndpointSubject(named[1]),
				micro.WithEndpointMetadata(map[string]string{"index": e.Name, "kind": e.Index.Facts().Kind, wire.FieldsMetadata: strings.Join(wire.QueryFields(), " "),
					wire.AcceptsMetadata: wire.Reads().String()}),
				micro.WithEndpointPendingLimits(-1, intake.MaxUnread))
			if err != nil {
				return nil, errors.Join(fmt.Errorf("adding the search endpoint of %s: %w", e.Name, err), service.Stop())
			}
		}
	}
	return service, nil
}

// endpoints are the names and subjects of an index's endpoints.
func (s *Set) endpoints(e *Entry) [][2]string {
	all := [][2]string{{"search-" + e.Name, s.link.Subjects.Search(e.Name)}}
	if s.options.Config.Fairness.Serves(wire.ClassUsers) {
		all = append(all, [2]string{"search-" + e.Name + "-users", s.link.Subjects.UserSearch(e.Name, "*")})
	}
	return all
}
