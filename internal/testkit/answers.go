package testkit

import (
	"errors"

	"github.com/geniemq/geniemq/wire"
)

// DecodeResult decodes a body that holds one result.
func DecodeResult(ct wire.ContentType, body []byte) (*wire.Result, error) {
	a, err := wire.DecodeAnswer(ct, body)
	switch {
	case err != nil:
		return nil, err
	case a.Batch:
		return nil, errors.New("the body answers a batch")
	}
	return &a.Results[0], nil
}
