package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/wire"
)

// Validate reports every fault of c at once, each as a sentence that begins with the setting's name.
// It looks at values only and touches neither files nor the network.
func (c *Config) Validate() error {
	var faults faults
	c.faultsOfIndexes(faults.add)
	c.faultsOfNATS(faults.add)
	c.faultsOfAddresses(faults.add)
	if _, err := c.EngineOptions(); err != nil {
		faults = append(faults, err)
	}
	c.faultsOfBounds(faults.add)
	c.faultsOfReplies(faults.add)
	c.faultsOfLog(faults.add)
	return WithoutSecrets(errors.Join(faults...))
}

// faults are what is wrong with settings.
type faults []error

// report is add of faults, for what looks for some.
type report func(setting, format string, args ...any)

// add adds a fault: a sentence about the setting, which its name begins.
func (f *faults) add(setting, format string, args ...any) {
	*f = append(*f, fmt.Errorf("%s: %s", setting, fmt.Sprintf(format, args...)))
}

func (c *Config) faultsOfIndexes(fault report) {
	if len(c.Indexes) == 0 {
		fault("index", "no index to serve: give at least one, like adult=adult.gmq")
	}
	seen := make(map[string]bool)
	for _, source := range c.Indexes {
		if source.Path == "" {
			fault("index", "%q has no path: write name=path, like adult=adult.gmq", source.String())
		}
		if source.Name == "" {
			continue
		}
		if err := wire.CheckIndexName(source.Name); err != nil {
			fault("index", "%s", messageOf(err))
		}
		if seen[source.Name] {
			fault("index", "%q is given twice", source.Name)
		}
		seen[source.Name] = true
	}
}

func (c *Config) faultsOfAddresses(fault report) {
	if err := checkListen(c.NATSListen); err != nil {
		fault("nats-listen", "%v", err)
	}
	if c.Admin != Off {
		if err := checkListen(c.Admin); err != nil {
			fault("admin", "%v, or %q for none", err, Off)
		}
	}
	if _, err := wire.NewSubjects(c.Prefix); err != nil {
		fault("prefix", "%v", err)
	}
}

func (c *Config) faultsOfBounds(fault report) {
	atLeast := func(setting string, value, least int) {
		if value < least {
			fault(setting, "%d must be at least %d", value, least)
		}
	}
	atLeast("batch-size", c.BatchSize, 0)
	atLeast("workers", c.Workers, 1)
	atLeast("max-pending", c.MaxPending, 1)
	atLeast("direct-queue", c.DirectQueue, 1)
	atLeast("max-body", c.MaxBody, 1024)
	atLeast("max-queries", c.MaxQueries, 1)
	atLeast("max-items", c.MaxItems, 1)
	durationAtLeast := func(setting string, value, least time.Duration) {
		if value < least {
			fault(setting, "%v must be at least %v", value, least)
		}
	}
	atLeast("certify-limit", c.CertifyLimit, 1)
	durationAtLeast("engine-timeout", c.EngineTimeout, time.Millisecond)
	durationAtLeast("batch-linger", c.BatchLinger, 0)
	durationAtLeast("ack-wait", c.AckWait, time.Second)
	durationAtLeast("drain-timeout", c.DrainTimeout, 0)

	if c.Memory < memory.MinMemory {
		fault("memory", "%v must be at least %s", c.Memory, human.Bytes(memory.MinMemory))
	}
}

func (c *Config) faultsOfReplies(fault report) {
	for _, pattern := range c.ReplyAllow {
		if err := checkReplyAllow(pattern); err != nil {
			fault("reply-allow", "%v", err)
		}
	}
	for _, pattern := range c.DirectReplyAllow {
		if err := checkDirectReplyAllow(pattern); err != nil {
			fault("direct-reply-allow", "%v", err)
		}
	}
}

func (c *Config) faultsOfLog(fault report) {
	if _, err := parseLogLevel(c.LogLevel); err != nil {
		fault("log-level", "%v", err)
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		fault("log-format", "%q is neither text nor json", c.LogFormat)
	}
}

// messageOf is what an error of wire says, without its code.
func messageOf(err error) string {
	var known *wire.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}

func checkListen(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not an address like 127.0.0.1:4222", addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q has no port between 0 and 65535", addr)
	}
	if strings.ContainsAny(host, " /") {
		return fmt.Errorf("%q has no host name or address before the port", addr)
	}
	return nil
}

// SlogLevel is LogLevel for package slog.
func (c *Config) SlogLevel() slog.Level {
	level, _ := parseLogLevel(c.LogLevel) // Validate has seen it
	return level
}

func parseLogLevel(s string) (slog.Level, error) {
	switch s {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("%q is none of debug, info, warn, error", s)
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
