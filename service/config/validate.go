package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/gpuexec"
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
	c.faultsOfEmbedded(faults.add)
	c.faultsOfAddresses(faults.add)
	if _, err := c.EngineOptions(); err != nil {
		faults = append(faults, err)
	}
	c.faultsOfBounds(faults.add)
	c.faultsOfReplies(faults.add)
	c.Fairness.faults(faults.add)
	c.Streams.faults(faults.add)
	c.Server.faults(faults.add, !c.Embedded())
	c.faultsOfLog(faults.add)
	return WithoutSecrets(errors.Join(faults...))
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
		if name, pushed := source.Pushed(); pushed {
			if c.NATS == "" {
				fault("index", "%q is kept in a NATS server: give --nats too", source.String())
			}
			if err := wire.CheckIndexName(name); err != nil {
				fault("index", "%q: write name=nats: or name=nats:PUSHED-NAME", source.String())
			}
		}
		if source.Name == "" {
			continue
		}
		if err := wire.CheckIndexName(source.Name); err != nil {
			fault("index", "%s", wire.AsError(err).Message)
		}
		if seen[source.Name] {
			fault("index", "%q is given twice", source.Name)
		}
		seen[source.Name] = true
	}
}

// minToken is the least length of a token: what can be guessed is none.
const minToken = 16

func (c *Config) faultsOfAddresses(fault report) {
	if err := checkListen(c.NATSListen); err != nil {
		fault("nats-listen", "%v", err)
	}
	if c.Admin != Off {
		if err := checkListen(c.Admin); err != nil {
			fault("admin", "%v, or %q for none", err, Off)
		}
	}
	if c.HTTP != Off {
		if err := checkListen(c.HTTP); err != nil {
			fault("http", "%v, or %q for none", err, Off)
		}
		if len(c.HTTPToken) < minToken {
			fault("http", "set the environment variable %s to a token of at least %d characters, which those show who ask", HTTPTokenEnv, minToken)
		}
	}
	if _, err := wire.NewSubjects(c.Prefix); err != nil {
		fault("prefix", "%v", err)
	}
}

func atLeast[T int | time.Duration](fault report, setting string, value, least T) {
	if value < least {
		fault(setting, "%v must be at least %v", value, least)
	}
}

func (c *Config) faultsOfBounds(fault report) {
	atLeast(fault, "batch-size", c.BatchSize, 0)
	atLeast(fault, "workers", c.Workers, 1)
	atLeast(fault, "max-pending", c.MaxPending, 1)
	atLeast(fault, "direct-queue", c.DirectQueue, 1)
	atLeast(fault, "max-body", c.MaxBody, 1024)
	for _, user := range c.ObjectUsers {
		if err := wire.CheckUser(user); err != nil {
			fault("object-users", "%v", err)
		}
	}
	atLeast(fault, "max-queries", c.MaxQueries, 1)
	atLeast(fault, "max-items", c.MaxItems, 1)
	atLeast(fault, "certify-limit", c.CertifyLimit, 1)
	atLeast(fault, "engine-timeout", c.EngineTimeout, time.Millisecond)
	atLeast(fault, "batch-linger", c.BatchLinger, 0)
	atLeast(fault, "ack-wait", c.AckWait, time.Second)
	atLeast(fault, "drain-timeout", c.DrainTimeout, 0)
	atLeast(fault, "slow-query", c.SlowQuery, 0)

	if c.Memory < memory.MinMemory {
		fault("memory", "%v must be at least %s", c.Memory, human.Bytes(memory.MinMemory))
	}
}

func (c *Config) faultsOfLog(fault report) {
	if u, err := url.Parse(c.Traces); c.Traces != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		fault("traces", "it is not a URL like http://127.0.0.1:4318")
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) {
		fault("log-level", "%q is none of debug, info, warn, error", c.LogLevel)
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		fault("log-format", "%q is neither text nor json", c.LogFormat)
	}
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

// SlogLevel is LogLevel, which Validate has seen, for package slog.
func (c *Config) SlogLevel() (level slog.Level) {
	_ = level.UnmarshalText([]byte(c.LogLevel))
	return level
}

// EngineFlags adds the flags of the settings that say which engine runs and on what: those of Flags that also concern
// who opens an engine without a service.
func (c *Config) EngineFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Engine, "engine", c.Engine, "auto, cpu or cuda")
	fs.IntVar(&c.EngineThreads, "engine-threads", c.EngineThreads, "cores of this host that the engine uses (default: all)")
	fs.StringVar(&c.Devices, "devices", c.Devices, "CUDA `devices` to use: ordinals like 0,1, or all (default: the first one)")
	fs.StringVar(&c.DeviceMode, "device-mode", c.DeviceMode, "how several devices share the work: replica (each has the whole index) or capacity (each has a part of it)")
	fs.Var(&c.GPUMemory, "gpu-memory", "`memory` per device that the CUDA engine may use, like 16GiB (default: nine tenths of what is free)")
}

// EngineOptions are the options for open.Engine of these settings, which goes with Engine as the kind. The error
// reports every fault of theirs, as Validate does.
func (c *Config) EngineOptions() (gpuexec.Options, error) {
	var faults faults
	if !slices.Contains([]string{gpuexec.Auto, gpuexec.CPU, gpuexec.CUDA}, c.Engine) {
		faults.add("engine", "%q is none of auto, cpu, cuda", c.Engine)
	}
	if c.EngineThreads < 0 {
		faults.add("engine-threads", "%d must be at least 0", c.EngineThreads)
	}
	devices, err := gpuexec.ParseDevices(c.Devices)
	if err != nil {
		faults.add("devices", "%v", err)
	}
	if c.Engine == gpuexec.CPU && (c.Devices != "" || c.GPUMemory != 0) {
		faults.add("engine", "cpu takes neither devices nor gpu-memory: use auto or cuda, or leave these out")
	}
	mode := gpuexec.DeviceMode(c.DeviceMode)
	if !slices.Contains(gpuexec.DeviceModes(), mode) {
		faults.add("device-mode", "%q is neither replica nor capacity", c.DeviceMode)
	}
	return gpuexec.Options{
		CPU:  gpuexec.CPUOptions{Workers: c.EngineThreads},
		CUDA: gpuexec.CUDAOptions{Devices: devices, Mode: mode, Memory: int64(c.GPUMemory), Workers: c.EngineThreads},
	}, errors.Join(faults...)
}

// The worker publishes answers under its own permissions, to subjects that askers name. An asker may not be permitted to publish
// there. So the worker publishes only to subjects that match these lists. docs/security.md says what the lists cannot prevent.

// indexInPattern stands for the name of the query's index in a pattern of ReplyAllow.
const indexInPattern = "{index}"

// StoredReplies are the patterns of which the reply subject of a stored query for an index must match one: ReplyAllow, or its
// default, which depends on the prefix.
func (c *Config) StoredReplies(index string) []string {
	patterns := c.ReplyAllow
	if len(patterns) == 0 {
		results := c.Prefix + ".result." + indexInPattern
		patterns = []string{"_INBOX.>", results, results + ".>"}
	}
	allow := make([]string, len(patterns))
	for i, pattern := range patterns {
		allow[i] = strings.ReplaceAll(pattern, indexInPattern, index)
	}
	return allow
}

// DirectReplies are the patterns of which the reply subject of a direct request must match one. The defaults are inboxes and the
// two subjects that servers put in the place of an inbox. Between accounts (service imports) that subject names an inbox that
// only servers know and that a user cannot guess. Between clusters (gateways) it contains the inbox.
func (c *Config) DirectReplies() []string {
	if len(c.DirectReplyAllow) > 0 {
		return c.DirectReplyAllow
	}
	return []string{"_INBOX.>", "_R_.>", "_GR_.*.*._INBOX.>"}
}

// faultsOfReplies reports patterns that mean nothing.
func (c *Config) faultsOfReplies(fault report) {
	for _, pattern := range c.ReplyAllow {
		if err := wire.CheckSubjectPattern(strings.ReplaceAll(pattern, indexInPattern, "index")); err != nil {
			fault("reply-allow", "%v", err)
		}
	}
	for _, pattern := range c.DirectReplyAllow {
		if strings.Contains(pattern, indexInPattern) {
			fault("direct-reply-allow", "subject pattern %q: %s is for reply-allow, an inbox belongs to no index", pattern, indexInPattern)
		} else if err := wire.CheckSubjectPattern(pattern); err != nil {
			fault("direct-reply-allow", "%v", err)
		}
	}
}
