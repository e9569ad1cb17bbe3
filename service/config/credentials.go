package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
)

// NATSSettings are the names of the settings that say which NATS server to use and as whom.
var NATSSettings = []string{"nats", "context", "js-domain", "nats-creds", "nats-token-file", "nats-user", "nats-password-file", "nats-nkey-file", "nats-ca", "nats-cert", "nats-key"}

// NATSFlags adds the flags of NATSSettings, which all commands that connect share.
func (c *Config) NATSFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.NATS, "nats", c.NATS, "`URL` of the NATS server (default: start an embedded one)")
	fs.StringVar(&c.NATSContext, "context", c.NATSContext, "`name` of a context of the nats command, or the absolute path of its file, in place of the settings of the server")
	fs.StringVar(&c.Streams.Domain, "js-domain", c.Streams.Domain, "JetStream `domain` of the streams (default: that of the context, or of the server)")
	fs.StringVar(&c.NATSCreds, "nats-creds", c.NATSCreds, "credentials `file` (JWT and seed) for the NATS server")
	fs.StringVar(&c.NATSTokenFile, "nats-token-file", c.NATSTokenFile, "`file` with the token for the NATS server")
	fs.StringVar(&c.NATSUser, "nats-user", c.NATSUser, "`name` of the user at the NATS server")
	fs.StringVar(&c.NATSPasswordFile, "nats-password-file", c.NATSPasswordFile, "`file` with the password of --nats-user")
	fs.StringVar(&c.NATSNKeyFile, "nats-nkey-file", c.NATSNKeyFile, "`file` with the seed of the user's nkey")
	fs.StringVar(&c.NATSCA, "nats-ca", c.NATSCA, "PEM `file` of the authorities that sign the server's certificate")
	fs.StringVar(&c.NATSCert, "nats-cert", c.NATSCert, "PEM `file` of the certificate to show to a server that asks for one")
	fs.StringVar(&c.NATSKey, "nats-key", c.NATSKey, "PEM `file` of the key of --nats-cert")
}

// CommandLineSecret says whether the value of --nats holds a secret. Every user of the machine can read it in the list of
// processes when it is given on a command line.
func CommandLineSecret(servers string) bool { return strings.Contains(servers, "@") }

// ValidateNATS is Validate for the settings of NATSSettings alone, for commands that ask.
func (c *Config) ValidateNATS() error {
	var faults faults
	c.faultsOfNATS(faults.add)
	return WithoutSecrets(errors.Join(faults...))
}

// ValidateAsked is ValidateNATS for a command that asks a server and never starts one; flags are its own, taken from the environment too. The default of nats
// stands in where nothing says which server, and stands back where a context does: a default is no second wish.
func (c *Config) ValidateAsked(flags *pflag.FlagSet) error {
	if c.NATSContext == "" {
		c.NATS = cmp.Or(c.NATS, nats.DefaultURL)
	} else if !flags.Changed("nats") {
		c.NATS = ""
	}
	return c.ValidateNATS()
}

// WithoutNATS is c without the settings of NATSSettings, for a command that starts a server of its own and must not be led to another by the environment.
func (c *Config) WithoutNATS() Config {
	own := *c
	own.NATS, own.NATSContext, own.Streams.Domain, own.NATSCreds, own.NATSTokenFile, own.NATSUser = "", "", "", "", "", ""
	own.NATSPasswordFile, own.NATSNKeyFile, own.NATSCA, own.NATSCert, own.NATSKey = "", "", "", "", ""
	return own
}

// faultsOfNATS are the faults of the settings of NATSSettings, in the manner of Validate. None quotes a value that may hold a secret.
func (c *Config) faultsOfNATS(fault report) {
	if err := CheckServers(c.NATS); err != nil {
		fault("nats", "%v", err)
	}
	if strings.ContainsAny(c.Streams.Domain, ". *>\t") {
		fault("js-domain", "%q is no name of a domain", c.Streams.Domain)
	}
	var ways []string
	for _, way := range []struct {
		setting string
		given   bool
	}{
		{"nats (before the @ of a URL)", CommandLineSecret(c.NATS)},
		{"nats-creds", c.NATSCreds != ""},
		{"nats-token-file", c.NATSTokenFile != ""},
		{"nats-user", c.NATSUser != "" || c.NATSPasswordFile != ""},
		{"nats-nkey-file", c.NATSNKeyFile != ""},
	} {
		if way.given {
			ways = append(ways, way.setting)
		}
	}
	external := len(ways) > 0 || c.NATSCA != "" || c.NATSCert != "" || c.NATSKey != ""
	if c.NATSContext != "" && (external || c.NATS != "") {
		fault("context", "it says which server and who is asking: leave out nats and what begins with nats-")
	}
	if len(ways) > 1 {
		fault(strings.Fields(ways[1])[0], "say once who is asking: there are %s", strings.Join(ways, ", "))
	}
	if (c.NATSUser == "") != (c.NATSPasswordFile == "") {
		fault("nats-user", "nats-user and nats-password-file belong together")
	}
	if (c.NATSCert == "") != (c.NATSKey == "") {
		fault("nats-cert", "nats-cert and nats-key belong together")
	}
	if c.Embedded() && external {
		fault("nats", "credentials, certificates and authorities are for an external server: give its URL")
	}
}

var errNoServer = errors.New("no address of a server")

// CheckServers checks a list of servers without quoting what may be a secret, as the errors of net/url do. What passes is
// understood by the NATS client in the same way, so that its errors name hosts and nothing else.
func CheckServers(servers string) error {
	schemes := false
	for i, server := range splitList(servers) {
		scheme := strings.Contains(server, "://")
		text := server
		if !scheme {
			text = "nats://" + server // as the client does
		}
		u, err := url.Parse(text)
		at := strings.Contains(server, "@")
		if err == nil && (u.RawQuery != "" || u.Fragment != "" || at && u.User.Username() == "") { // pieces of a password, not of an address
			err = errNoServer
		}
		switch {
		case err == nil && u.Hostname() != "" && (scheme || u.Port() != "" || at) && at == (u.User != nil) && !(at && schemes && !scheme):
			schemes = schemes || scheme
		case at || strings.Contains(servers, "@"):
			return fmt.Errorf("server %d of %s is not a URL like nats://127.0.0.1:4222. In a user's name, a token or a password write %%40 for @, "+
				"%%2F for /, %%3A for :, %%2C for a comma, %%25 for %%, or better keep them in a file (nats-token-file, nats-password-file)",
				i+1, RedactServers(servers))
		default:
			return fmt.Errorf("%q is not a URL like nats://127.0.0.1:4222", RedactServers(server))
		}
	}
	return nil
}

// NATSOptions are the options for a connection with the credentials of c. Files are read now, so that a fault in them is an
// error here, and again whenever the connection is made anew, so that their contents may change.
func (c *Config) NATSOptions() ([]nats.Option, error) {
	opts, err := c.embeddedOptions()
	if err != nil {
		return nil, err
	}
	if c.NATSCreds != "" {
		opts = append(opts, nats.UserCredentials(c.NATSCreds))
	}
	if c.NATSTokenFile != "" {
		token, err := secretOf("nats-token-file", "token", c.NATSTokenFile)
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.TokenHandler(token))
	}
	if c.NATSUser != "" {
		user := c.NATSUser
		password, err := secretOf("nats-password-file", "password", c.NATSPasswordFile)
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.UserInfoHandler(func() (string, string) { return user, password() }))
	}
	if c.NATSNKeyFile != "" {
		if _, err := readSecret("nats-nkey-file", "seed", c.NATSNKeyFile); err != nil {
			return nil, err
		}
		nkey, err := nats.NkeyOptionFromSeed(c.NATSNKeyFile)
		if err != nil {
			return nil, fmt.Errorf("nats-nkey-file: %w", err)
		}
		opts = append(opts, nkey)
	}
	if c.NATSCert != "" {
		certificate, err := renewed(func() (tls.Certificate, error) {
			return readPair("nats-cert", c.NATSCert, "nats-key", c.NATSKey)
		})
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.ClientTLSConfig(func() (tls.Certificate, error) { return certificate(), nil }, nil)) // which forgets authorities, so these come after it
	}
	if c.NATSCA != "" {
		opts = append(opts, nats.RootCAs(c.NATSCA))
	}
	return opts, nil
}

// renewed reads a certificate or a secret. What it returns reads it again, and is the last one that could be read; it may be called from many goroutines.
func renewed[T any](read func() (T, error)) (func() T, error) {
	first, err := read()
	var last atomic.Pointer[T]
	last.Store(&first)
	return func() T {
		if now, err := read(); err == nil {
			last.Store(&now)
		}
		return *last.Load()
	}, err
}

// readPair reads a certificate with its key, from the files of two settings.
func readPair(certSetting, certFile, keySetting, keyFile string) (tls.Certificate, error) {
	cert, err := readSecret(certSetting, "certificate", certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readSecret(keySetting, "key", keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		return pair, fmt.Errorf("%s and %s: %w", certSetting, keySetting, err)
	}
	return pair, nil
}

// secretOf is the secret that a file holds, renewed.
func secretOf(setting, what, path string) (func() string, error) {
	return renewed(func() (string, error) { return readSecret(setting, what, path) })
}

// readSecret reads the secret that a file holds, without blanks and line ends around it. Its errors do not name the file:
// some people give the secret itself as the setting, and it would be in a log then.
func readSecret(setting, what, path string) (string, error) {
	content, err := os.ReadFile(path)
	if about, ok := errors.AsType[*fs.PathError](err); ok { // as all errors of ReadFile are
		return "", fmt.Errorf("%s: %w (it takes the name of a file that holds the %s, not the %[3]s itself)", setting, about.Err, what)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("%s: the file is empty, it must hold the %s", setting, what)
	}
	return secret, nil
}
