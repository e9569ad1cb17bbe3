package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
)

// NATSSettings are the names of the settings that say which NATS server to use and as whom.
var NATSSettings = []string{"nats", "nats-creds", "nats-token-file", "nats-user", "nats-password-file", "nats-nkey-file", "nats-ca", "nats-cert", "nats-key"}

// NATSFlags adds the flags of NATSSettings, which all commands that connect share.
func (c *Config) NATSFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.NATS, "nats", c.NATS, "`URL` of the NATS server (default: start an embedded one)")
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

// faultsOfNATS are the faults of the settings of NATSSettings, in the manner of Validate. None quotes a value that may hold a secret.
func (c *Config) faultsOfNATS(fault report) {
	if err := CheckServers(c.NATS); err != nil {
		fault("nats", "%v", err)
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
	if len(ways) > 1 {
		fault(strings.Fields(ways[1])[0], "say once who is asking: there are %s", strings.Join(ways, ", "))
	}
	if (c.NATSUser == "") != (c.NATSPasswordFile == "") {
		fault("nats-user", "nats-user and nats-password-file belong together")
	}
	if (c.NATSCert == "") != (c.NATSKey == "") {
		fault("nats-cert", "nats-cert and nats-key belong together")
	}
	if c.NATS == "" && (len(ways) > 0 || c.NATSCA != "" || c.NATSCert != "" || c.NATSKey != "") {
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
	var opts []nats.Option
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
		last, err := c.certificate()
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.ClientTLSConfig(func() (tls.Certificate, error) {
			if now, err := c.certificate(); err == nil {
				last = now
			}
			return last, nil
		}, nil)) // which forgets authorities, so these come after it
	}
	if c.NATSCA != "" {
		opts = append(opts, nats.RootCAs(c.NATSCA))
	}
	return opts, nil
}

// certificate reads the certificate of this end, with its key.
func (c *Config) certificate() (tls.Certificate, error) {
	cert, err := readSecret("nats-cert", "certificate", c.NATSCert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readSecret("nats-key", "key", c.NATSKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		return pair, fmt.Errorf("nats-cert and nats-key: %w", err)
	}
	return pair, nil
}

// secretOf reads the secret that a file holds. What it returns reads it again, and is the last one that could be read.
func secretOf(setting, what, path string) (func() string, error) {
	secret, err := readSecret(setting, what, path)
	return func() string {
		if now, err := readSecret(setting, what, path); err == nil {
			secret = now
		}
		return secret
	}, err
}

// readSecret reads the secret that a file holds, without blanks and line ends around it. Its errors do not name the file:
// some people give the secret itself as the setting, and it would be in a log then.
func readSecret(setting, what, path string) (string, error) {
	content, err := os.ReadFile(path)
	var about *fs.PathError
	switch {
	case errors.As(err, &about):
		return "", fmt.Errorf("%s: %w (it takes the name of a file that holds the %s, not the %[3]s itself)", setting, about.Err, what)
	case err != nil:
		return "", fmt.Errorf("%s: the file cannot be read", setting)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("%s: the file is empty, it must hold the %s", setting, what)
	}
	return secret, nil
}
