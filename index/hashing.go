package index

import (
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/index/lsh"
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
