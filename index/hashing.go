package index

import (
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/metric"
)

// hashing is an encoder that hashes vectors, and lets an engine do so.
type hashing interface {
	HashBy(e lsh.Engine) (lsh.Hasher, error)
}

// HashBy lets an engine hash the vectors of records that come in many at a time (AddAll), before any is added. Files are the same to the byte. close
// frees what is on the engine's device, when the last has been added.
func (o *Objects) HashBy(e lsh.Engine) (close func() error, err error) {
	var hashers []lsh.Hasher
	close = func() error {
		var errs []error
		for _, h := range hashers {
			errs = append(errs, h.Close())
		}
		hashers = nil
		return errors.Join(errs...)
	}
	for i := range o.columns {
		column, ok := o.columns[i].encoder.(hashing)
		if !ok {
			continue
		}
		h, err := column.HashBy(e)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("laying hash functions out on a device: %w", err), close())
		}
		if h != nil {
			hashers = append(hashers, h)
		}
	}
	return close, nil
}

// finding is a builder of a structure that looks for nearest vectors, and lets an engine do so.
type finding interface {
	FindBy(e metric.Engine, note func(string))
}

// FindBy lets an engine find nearest vectors while the index is written, where access paths want that. Files are the same to the byte. note is told, once per structure, if the
// engine fails to and this machine's cores do it. The engine must be open as long as anything is written.
func (o *Objects) FindBy(e metric.Engine, note func(string)) {
	for _, family := range o.families {
		if f, ok := family.(finding); ok {
			f.FindBy(e, note)
		}
	}
}
