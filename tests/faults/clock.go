package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/geniemq/geniemq/tests/faults/crowd"
)

// clock is what a part takes for the time of day. Stepping it is what an operator or a time daemon does to a host: the wall clock of that one process jumps, at
// once and for all its readings, and its monotonic clock goes on as if nothing had happened. Modification times of files stay the kernel's.
//
// Go reads the time without asking the kernel, so nothing outside a program can change it. The program is built with a time.Now that adds what a file
// says, which the process has mapped into its memory.
type clock struct {
	file *os.File
	off  time.Duration
}

// clockVariable names the file, which has the step in nanoseconds, little endian.
const clockVariable = "GENIEMQ_FAULTS_CLOCK"

// largestStep is by how much a clock is set forward or back, at most: enough to use up the timeouts of queries that have one.
const largestStep = 2 * crowd.Timeout

//go:embed clock.step
var stepSource string

const (
	nowAnchor = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	nowStep   = "\tsec, nsec = step(sec, nsec)\n"
)

// steppedProgram is where buildStepped puts this program with clocks that can be stepped.
func steppedProgram(dir string) string { return filepath.Join(dir, "stepped") }

// buildStepped builds it. The first time takes a minute or two, since everything knows the time.
func buildStepped(ctx context.Context, dir string) error {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("stepped clocks need the go command: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	now, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return err
	}
	if strings.Count(string(now), nowAnchor) != 1 {
		return fmt.Errorf("time.Now of %s is not what it was: look at nowAnchor", runtime.Version())
	}
	replace := make(map[string]string)
	for name, text := range map[string]string{"time.go": strings.Replace(string(now), nowAnchor, nowAnchor+nowStep, 1), "step.go": stepSource} {
		own := filepath.Join(dir, "stepped-"+name)
		if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
			return err
		}
		replace[filepath.Join(folder, name)] = own
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o644); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", path, "-o", steppedProgram(dir), "github.com/geniemq/geniemq/tests/faults").CombinedOutput(); err != nil {
		return fmt.Errorf("build with a time.Now that can be stepped: %w\n%s", err, out)
	}
	return nil
}

// newClock makes the clock of a part that runs the program of buildStepped. It is right.
func newClock(p *part, program string) (*clock, error) {
	path := filepath.Join(p.dir, p.name+".clock")
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	c := &clock{file: file}
	p.program, p.env = program, append(p.env, clockVariable+"="+path)
	return c, c.set(0)
}

// set steps the clock to so much ahead of the true time.
func (c *clock) set(off time.Duration) error {
	var data [8]byte
	binary.LittleEndian.PutUint64(data[:], uint64(off))
	_, err := c.file.WriteAt(data[:], 0)
	c.off = off
	return err
}

// clockRole steps its own clock, and says what the time was, by how much the time of day changed, and what has passed.
func clockRole([]string) error {
	file, err := os.OpenFile(os.Getenv(clockVariable), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	c, before := clock{file: file}, time.Now()
	defer file.Close()
	if err := c.set(largestStep); err != nil {
		return err
	}
	after := time.Now()
	fmt.Println(before.UnixNano(), after.Round(0).Sub(before.Round(0)), after.Sub(before))
	return nil
}
