package tests

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/program"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	dir  string
	name string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: dir, name: name}
	a.issue(name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes a certificate for a name and its key, and returns their files. The first one is the authority's own.
func (a *authority) issue(name string, template *x509.Certificate) (cert, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.made++
	template.SerialNumber, template.Subject = big.NewInt(a.made), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.cert == nil {
		a.key = private
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	write := func(kind, suffix string, bytes []byte) string {
		return writeFile(a.t, a.dir, a.name+"-"+name+suffix, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return write("CERTIFICATE", ".crt", der), write("PRIVATE KEY", ".key", pkcs)
}

// client issues a certificate for a client.
func (a *authority) client(name string) (cert, key string) {
	return a.issue(name, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// A server that speaks TLS alone, verifies its clients and takes their certificates for who they are: a worker and those who ask are let in by theirs, and by no other
// and not without. A certificate is read again when a connection is made anew, and no key is shown.
func TestTLSByCertificate(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	dir := t.TempDir()
	ours, others := newAuthority(t, dir, "ours"), newAuthority(t, dir, "others")
	serverCert, serverKey := ours.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	ca := filepath.Join(dir, "ours-ours.crt")
	cert, key := ours.client("worker")
	strangerCert, strangerKey := ours.client("stranger")
	otherCert, otherKey := others.client("worker")
	server := startServer(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify_and_map: true }\nauthorization { users: [ { user: \"CN=worker\" } ] }", serverCert, serverKey, ca))
	index := buildFile(t, dir, "people.csv", peopleSchema, peopleData)
	secret, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Split(string(secret), "\n")[1]

	by := func(cert, key string) []string {
		return []string{"--nats", server.url, "--nats-ca", ca, "--nats-cert", cert, "--nats-key", key}
	}
	worker := runWith(t, nil, append([]string{"serve", "--index", index, "--admin", "off", "--log-level", "debug"}, by(cert, key)...)...)
	worker.says("NATS")
	ask := func(flags ...string) (out string, code int) {
		query := exec.CommandContext(within(t), program.Path(t), append(append([]string{"query", "--index", "people", "--timeout", "20s"}, flags...), `{"row":{"age":30}}`)...)
		text, _ := query.CombinedOutput()
		return string(text), query.ProcessState.ExitCode()
	}
	for _, way := range [][]string{nil, {"--direct"}} {
		if out, code := ask(append(by(cert, key), way...)...); code != 0 || !strings.Contains(out, `"key":"ann"`) {
			t.Errorf("query %v ends with %d: %s", way, code, out)
		}
	}
	for name, flags := range map[string][]string{
		"no certificate":          {"--nats", server.url, "--nats-ca", ca},
		"nobody's":                by(otherCert, otherKey),
		"somebody else's":         by(strangerCert, strangerKey),
		"the key of another":      by(cert, strangerKey),
		"a key in place of names": by(cert, line),
		"an unknown authority":    {"--nats", server.url, "--nats-ca", filepath.Join(dir, "others-others.crt"), "--nats-cert", cert, "--nats-key", key},
		"a certificate alone":     {"--nats", server.url, "--nats-cert", cert},
	} {
		if out, code := ask(flags...); code == 0 || strings.Contains(out, `"key"`) || strings.Contains(out, line) || len(strings.TrimSpace(out)) == 0 {
			t.Errorf("with %s it ends with %d: %s", name, code, out)
		}
	}

	// The authority is another one from now on, and so are the certificates in the same files.
	server.kill()
	renewed := newAuthority(t, dir, "renewed")
	newCert, newKey := renewed.client("worker")
	newServerCert, newServerKey := renewed.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	for from, to := range map[string]string{newCert: cert, newKey: key, newServerCert: serverCert, newServerKey: serverKey, filepath.Join(dir, "renewed-renewed.crt"): ca} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	server.start()
	testkit.Eventually(t, func() error {
		if out, code := ask(append(by(cert, key), "--direct")...); code != 0 || !strings.Contains(out, `"key":"ann"`) {
			return fmt.Errorf("the worker is not back: %d %s", code, out)
		}
		return nil
	})
	if said := []byte(worker.stderr.String()); bytes.Contains(said, []byte(line)) {
		t.Error("the log shows the key")
	}
}
