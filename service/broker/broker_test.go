package broker

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/lock"
)

func TestBroker(t *testing.T) {
	dir := t.TempDir()
	start := func() (*Broker, *nats.Conn) {
		b, err := Start(t.Context(), Options{Listen: "127.0.0.1:0", DataDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		nc, err := nats.Connect(b.URL())
		if err != nil {
			t.Fatal(err)
		}
		return b, nc
	}
	b, nc := start()
	if nc.MaxPayload() != 8<<20+64<<10 {
		t.Errorf("max_payload is %d", nc.MaxPayload())
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}

	// A second server on the same folder would damage the streams.
	if _, err := Start(t.Context(), Options{Listen: "127.0.0.1:0", DataDir: dir}); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a folder in use is taken: %v", err)
	}
	// An address that is taken is an error that says so, at once.
	taken := strings.TrimPrefix(b.URL(), "nats://")
	if _, err := Start(t.Context(), Options{Listen: taken, DataDir: t.TempDir()}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("an address in use: %v", err)
	}
	nc.Close()
	if err := b.Shutdown(); err != nil {
		t.Fatal(err)
	}

	b, nc = start()
	defer b.Shutdown()
	defer nc.Close()
	if js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatalf("the stream did not survive: %v", err)
	}
	if m, err := stream.GetLastMsgForSubject(t.Context(), "s"); err != nil || string(m.Data) != "kept" {
		t.Errorf("the message did not survive: %v", err)
	}
}

// The lock ends with its process, however that ends: a file left behind keeps nobody out.
func TestBrokerLockEndsWithProcess(t *testing.T) {
	if dir := os.Getenv("GENIEMQ_TEST_LOCK"); dir != "" {
		if _, err := lockFolder(dir); err != nil {
			os.Exit(3)
		}
		os.WriteFile(filepath.Join(dir, "locked"), nil, 0o600)
		time.Sleep(time.Minute)
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestBrokerLockEndsWithProcess$")
	cmd.Env = append(os.Environ(), "GENIEMQ_TEST_LOCK="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "locked")); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := lockFolder(dir); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("the lock of another process is not respected: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	unlock, err := lockFolder(dir)
	if err != nil {
		t.Fatalf("the lock outlives its process: %v", err)
	}
	unlock()
}
