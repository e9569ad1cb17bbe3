package connection

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
)

// What is wrong is said, and nothing else: a file that is missing is not a server that does not listen.
func TestConnectSaysWhatIsWrong(t *testing.T) {
	server := testkit.StartBroker(t)
	url := server.URL()
	missing := filepath.Join(t.TempDir(), "missing")
	log := slog.New(slog.DiscardHandler)
	const listening = "is a nats-server listening"
	for name, cfg := range map[string]config.Config{"creds": {NATSCreds: missing}, "authorities": {NATSCA: missing}} {
		_, _, err := Stay(url, "test", &cfg, log)
		if err == nil || !strings.Contains(err.Error(), missing) || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), listening) {
			t.Errorf("missing %s: %v", name, err)
		}
	}
	server.Stop()
	if _, _, err := Stay(url, "test", &config.Config{}, log); err == nil || !strings.Contains(err.Error(), listening) {
		t.Errorf("no server: %v", err)
	}
}
