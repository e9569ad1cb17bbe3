package service

import (
	"errors"
	"time"

	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
)

// served is one index and what answers its queries.
type served struct {
	name    string
	index   *generation.Index
	metrics *metrics.Index
	observe *observe.Index
	direct  *directIntake
	stored  []*storedIntake // one for each class
}

// pending is how many messages of all classes are not answered.
func (x *served) pending() (n int64) {
	for _, intake := range x.stored {
		n += intake.pending()
	}
	return n
}

// redelivered is how many messages of all classes came again.
func (x *served) redelivered() (n uint64) {
	for _, intake := range x.stored {
		n += intake.consumer.Stats().Redelivered
	}
	return n
}

// storedFault says why no stored messages come in, or nil.
func (x *served) storedFault(now time.Time) error {
	var faults []error
	for _, intake := range x.stored {
		faults = append(faults, intake.fault(now))
	}
	return errors.Join(faults...)
}

// hold holds stored messages back, or lets them come again.
func (x *served) hold(hold bool) {
	for _, intake := range x.stored {
		intake.consumer.Hold(hold)
	}
}
