//go:build !linux

package alarm

// Alarm is described in the package's essay.
type Alarm struct{}

// New makes none.
func New(int) *Alarm { return nil }

// Ring does nothing.
func (*Alarm) Ring() {}

// Close does nothing.
func (*Alarm) Close() error { return nil }
