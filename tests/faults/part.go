package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// part is a process of this program in one of its roles. Its output is appended to a log in the run's folder.
type part struct {
	name, role, dir string
	program         string // what it runs; this program if empty
	args, env       []string
	input           *os.File // null if nil
	cmd             *exec.Cmd
	ended           chan struct{}
	meant           atomic.Bool // it was told to end, so its end is no failure
}

func (p *part) start() error {
	log, err := os.OpenFile(filepath.Join(p.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	program := p.program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return err
		}
	}
	p.cmd = exec.Command(program, p.args...)
	p.cmd.Env = append(append(os.Environ(), p.env...), roleVariable+"="+p.role)
	if p.input != nil {
		p.cmd.Stdin = p.input
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is for the conductor alone
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.meant.Store(false)
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
	return nil
}

// startWithInput starts it with a standard input that ends when what is returned is closed.
func (p *part) startWithInput() (io.Closer, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p.input = r
	return w, p.start()
}

func (p *part) signal(s syscall.Signal) {
	if s == syscall.SIGKILL || s == syscall.SIGTERM {
		p.meant.Store(true)
	}
	_ = p.cmd.Process.Signal(s) // one that has ended needs none
}

// kill ends it as a power switch does, and waits until it is gone.
func (p *part) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// running says whether it has not ended.
func (p *part) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// ports are those that servers of this run listen at, also while they are away: nobody else of it gets them. Safe for concurrent use.
type ports struct {
	mu    sync.Mutex
	given map[string]bool
}

// free is an address that nobody listens at. It lies below the ports that connections go out from, which would take it while its server is away.
func (p *ports) free() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given == nil {
		p.given = make(map[string]bool)
	}
	const lowest, highest = 20_000, 32_000
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest))
		if l, err := net.Listen("tcp", address); err == nil && !p.given[address] {
			p.given[address] = true
			return address, l.Close()
		} else if err == nil {
			l.Close()
		}
	}
	return "", fmt.Errorf("no free port from %d to %d", lowest, highest)
}
