package config

import (
	"fmt"
	"strings"
)

// faults are what is wrong with settings.
type faults []error

// report is add of faults, for what looks for some.
type report func(setting, format string, args ...any)

// add adds a fault: a sentence about the setting, which its name begins.
func (f *faults) add(setting, format string, args ...any) {
	*f = append(*f, fmt.Errorf("%s: %s", setting, fmt.Sprintf(format, args...)))
}

func splitList(s string) []string {
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
