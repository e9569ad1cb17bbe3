package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
)

// embeddedFlags adds the settings that say whom this process lets in: at the embedded server, and at the admin address.
func (c *Config) embeddedFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.NATSListen, "nats-listen", c.NATSListen, "`address` of the embedded server; port 0 takes a free one")
	fs.StringVar(&c.NATSListenTokenFile, "nats-listen-token-file", c.NATSListenTokenFile, "`file` with the token that the embedded server asks for (default: none, it lets everybody in)")
	fs.StringVar(&c.NATSListenCert, "nats-listen-cert", c.NATSListenCert, "PEM `file` of the embedded server's certificate: it speaks TLS alone (default: none)")
	fs.StringVar(&c.NATSListenKey, "nats-listen-key", c.NATSListenKey, "PEM `file` of the key of --nats-listen-cert")
}

// AdminTokenFlag adds the setting of the admin server's token, which those who ask it share.
func (c *Config) AdminTokenFlag(fs *pflag.FlagSet) {
	fs.StringVar(&c.AdminTokenFile, "admin-token-file", c.AdminTokenFile, "`file` with the token that the admin server asks for, health checks apart (default: none)")
}

// faultsOfEmbedded reports what is wrong with them.
func (c *Config) faultsOfEmbedded(fault report) {
	if (c.NATSListenCert == "") != (c.NATSListenKey == "") {
		fault("nats-listen-cert", "nats-listen-cert and nats-listen-key belong together")
	}
	if !c.Embedded() && (c.NATSListenTokenFile != "" || c.NATSListenCert != "") {
		fault("nats-listen", "its token and certificate are those of the embedded server, and another one is used")
	}
	if c.Admin == Off && c.AdminTokenFile != "" {
		fault("admin-token-file", "the admin server is off")
	}
}

// Embedded says whether the service starts a server of its own.
func (c *Config) Embedded() bool { return c.NATS == "" && c.NATSContext == "" }

// ListenToken is the token that the embedded server asks for, "" for none.
func (c *Config) ListenToken() (string, error) {
	if c.NATSListenTokenFile == "" {
		return "", nil
	}
	return readSecret("nats-listen-token-file", "token", c.NATSListenTokenFile)
}

// ListenTLS is how the embedded server speaks TLS, nil where it does not. The files are read again for each connection, so that
// a certificate can be renewed; one that cannot be read leaves the last.
func (c *Config) ListenTLS() (*tls.Config, error) {
	if c.NATSListenCert == "" {
		return nil, nil
	}
	certificate, err := renewed(c.listenPair)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return new(certificate()), nil }}, nil
}

func (c *Config) listenPair() (tls.Certificate, error) {
	return readPair("nats-listen-cert", c.NATSListenCert, "nats-listen-key", c.NATSListenKey)
}

// AdminToken returns the token that the admin server asks for, as its file has it now; nil where it asks for none.
func (c *Config) AdminToken() (func() string, error) {
	if c.AdminTokenFile == "" {
		return nil, nil
	}
	return secretOf("admin-token-file", "token", c.AdminTokenFile)
}

// ReadAdminToken reads the token of --admin-token-file, "" where there is none.
func (c *Config) ReadAdminToken() (string, error) {
	token, err := c.AdminToken()
	if token == nil || err != nil {
		return "", err
	}
	return token(), nil
}

// embeddedOptions let the process into its own server. It knows the server by its certificate, whatever names and authority that has.
func (c *Config) embeddedOptions() (opts []nats.Option, err error) {
	if c.NATSListenTokenFile != "" {
		token, err := c.ListenToken()
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.Token(token)) // the server has what was there when it started
	}
	if c.NATSListenCert != "" {
		own, err := renewed(c.listenPair)
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.Secure(&tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: true, // names; the certificate itself is compared
			VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
				if ours := own(); len(raw) == 0 || !bytes.Equal(raw[0], ours.Certificate[0]) {
					return errors.New("the server at the embedded one's address has another certificate")
				}
				return nil
			},
		}))
	}
	return opts, nil
}
