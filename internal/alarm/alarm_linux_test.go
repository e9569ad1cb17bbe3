package alarm

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSleepersWake: a ring is heard, each time: whoever is woken reads what there is.
func TestSleepersWake(t *testing.T) {
	a := New(3)
	if a == nil {
		t.Fatal("no alarm")
	}
	defer a.Close()
	for range 100 {
		a.Ring()
		for heard := false; !heard; time.Sleep(10 * time.Microsecond) {
			raw, err := a.bell.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			if err := raw.Control(func(fd uintptr) {
				ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				if err != nil && err != unix.EINTR {
					t.Fatal(err)
				}
				heard = err == nil && ready == 0
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
