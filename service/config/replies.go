package config

import (
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/wire"
)

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

// checkReplyAllow reports a pattern of ReplyAllow that means nothing.
func checkReplyAllow(pattern string) error {
	return wire.CheckSubjectPattern(strings.ReplaceAll(pattern, indexInPattern, "index"))
}

// checkDirectReplyAllow is the same for DirectReplyAllow.
func checkDirectReplyAllow(pattern string) error {
	if strings.Contains(pattern, indexInPattern) {
		return fmt.Errorf("subject pattern %q: %s is for reply-allow, an inbox belongs to no index", pattern, indexInPattern)
	}
	return wire.CheckSubjectPattern(pattern)
}
