package config

import (
	"errors"
	"net"
	"regexp"
	"strings"
)

// hidden stands where something secret was.
const hidden = "xxxxx"

var (
	urlScheme = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://`)
	nextURL   = regexp.MustCompile("[\\s,;\"'`=(<\\[]" + urlScheme.String())
	// An nkey's seed, and a JWT, which may be all that a bearer needs.
	secretWord = regexp.MustCompile(`\bS[A-Z][A-Z2-7]{56}\b|\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	// A host and what may follow it, of which nothing is secret. Whatever looks otherwise may be a part of a password.
	publicHost = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?\])(?::[0-9]{1,5})?/?$`)
)

// Redact returns a text, such as an error or a line of a log, without the secrets that it may quote: what a URL has before
// its @, be it a token, a password or a name (NATS takes a name alone for a token), seeds of nkeys, and JWTs.
//
// It does not parse URLs: those that do not parse are the ones that errors quote, and in them a password with an @, a
// slash or a blank is still a password. So everything from a scheme to the last @ before the next URL, or before the line's
// end, is hidden. That may hide too much, never too little. What it cannot know is what has no form of its own: the
// word that a token is, without a URL around it. So tokens and passwords of their own (Config.NATSTokenFile) are never
// made part of a text in the first place.
func Redact(text string) string {
	if strings.Contains(text, "://") {
		lines := strings.SplitAfter(text, "\n")
		for i, line := range lines {
			lines[i] = hideUserInfo(line)
		}
		text = strings.Join(lines, "")
	}
	return secretWord.ReplaceAllLiteralString(text, hidden)
}

// hideUserInfo hides what is between a scheme and the last @ before the next URL.
func hideUserInfo(text string) string {
	var out strings.Builder
	for {
		scheme := urlScheme.FindStringIndex(text)
		if scheme == nil {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:scheme[1]])
		text = text[scheme[1]:]
		end := len(text)
		if next := nextURL.FindStringIndex(text); next != nil {
			end = next[0]
		}
		if at := strings.LastIndexByte(text[:end], '@'); at >= 0 {
			out.WriteString(hidden)
			text, end = text[at:], end-at
		}
		out.WriteString(text[:end])
		text = text[end:]
	}
}

// RedactServers is Redact for the value of the setting nats, which is known to be a list of servers: it may lack schemes,
// and what of it is no host is hidden too.
func RedactServers(servers string) string {
	head := len(servers) // what comes before the first scheme
	if first := urlScheme.FindStringIndex(servers); first != nil {
		head = first[0]
	}
	if at := strings.LastIndexByte(servers[:head], '@'); at >= 0 {
		servers = hidden + servers[at:]
	}
	list := splitList(hideUserInfo(servers))
	for i, server := range list {
		scheme := urlScheme.FindString(server)
		host := strings.TrimPrefix(server, scheme)
		if rest, ok := strings.CutPrefix(host, hidden+"@"); ok {
			scheme, host = scheme+hidden+"@", rest
		}
		if !publicHost.MatchString(host) {
			host = hidden
		}
		list[i] = scheme + host
	}
	return secretWord.ReplaceAllLiteralString(strings.Join(list, ","), hidden)
}

// redactedError is an error whose text is redacted and which is otherwise the one it wraps.
type redactedError struct{ error }

// Error leaves out names that were looked up, too: a password with an @ and a comma or a question mark in it, in a list of servers
// without schemes, makes a host of a piece of it, which is written like any other.
func (e redactedError) Error() string {
	text := e.error.Error()
	if lookup, ok := errors.AsType[*net.DNSError](e.error); ok && lookup.Name != "" {
		text = strings.ReplaceAll(text, lookup.Name, "of the host")
	}
	return Redact(text)
}
func (e redactedError) Unwrap() error { return e.error }

// WithoutSecrets redacts an error's text.
func WithoutSecrets(err error) error {
	if err == nil {
		return nil
	}
	return redactedError{err}
}
