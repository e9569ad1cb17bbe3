// Package proxy stands between a server and who dials it, and can cut, hold and watch what passes.
package proxy

import (
	"bytes"
	"net"
	"regexp"
	"sync"
	"time"
)

// A Proxy stands in front of one server, for its clients or for the other servers of its cluster, and can cut and hold what passes it. It knows who
// dialled: a worker because its proxies are its own, a server because it says its name in its first lines.
type Proxy struct {
	to       string // server, by address
	toName   string
	listener net.Listener

	mu    sync.Mutex
	links map[*link]bool
	// cut: a link whose either end is named here is closed, and new ones too. "": every link.
	cut map[string]bool
	// held links pass nothing on and stay open, as when packets are lost.
	held bool
	free chan struct{} // closed when nothing is held
	trap *Trap
}

type link struct {
	near, far net.Conn
	from      string // who dialled; "" until it is known
}

// A Trap waits for bytes on their way and does something, once. Bytes up to the pattern's message go on first or never.
type Trap struct {
	Pattern  []byte
	Upstream bool // on the way from who dialled to the server
	Forward  bool // the bytes with the pattern still go on
	Spring   func()
}

// New listens for links to a server at an address that may not be listened at yet.
func New(toName, to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{to: to, toName: toName, listener: l, links: make(map[*link]bool), cut: make(map[string]bool), free: make(chan struct{})}
	close(p.free)
	go p.accept()
	return p, nil
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends it and all that goes through it.
func (p *Proxy) Close() {
	p.listener.Close()
	p.SetCut("", true)
	p.Hold(false)
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.DialTimeout("tcp", p.to, time.Second)
		if err != nil {
			near.Close()
			continue
		}
		l := &link{near: near, far: far}
		p.mu.Lock()
		p.links[l] = true
		p.mu.Unlock()
		p.judge(l)
		go p.pass(l, near, far, true)
		go p.pass(l, far, near, false)
	}
}

// SetCut cuts, or no longer cuts, everything between this server and the one that dialled under a name.
func (p *Proxy) SetCut(name string, on bool) {
	p.mu.Lock()
	p.cut[name] = on
	all := make([]*link, 0, len(p.links))
	for l := range p.links {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		p.judge(l)
	}
}

// judge ends a link that must not be.
func (p *Proxy) judge(l *link) {
	p.mu.Lock()
	over := p.cut[""] || p.cut[p.toName] || l.from != "" && p.cut[l.from]
	p.mu.Unlock()
	if over {
		p.end(l)
	}
}

func (p *Proxy) end(l *link) {
	l.near.Close()
	l.far.Close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// Hold stops everything on its way, or lets it go on.
func (p *Proxy) Hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && !p.held:
		p.free = make(chan struct{})
	case !on && p.held:
		close(p.free)
	}
	p.held = on
}

// Set sets a trap in the place of the one that is set; nil is none.
func (p *Proxy) Set(t *Trap) {
	p.mu.Lock()
	p.trap = t
	p.mu.Unlock()
}

var nameOfServer = regexp.MustCompile(`"server_name":"([^"]*)"`)

// pass copies from one end to the other until either ends.
func (p *Proxy) pass(l *link, from, to net.Conn, upstream bool) {
	defer p.end(l)
	buf := make([]byte, 32<<10)
	var seen []byte // the end of what went by, since a pattern may come in two reads
	for first := 0; ; {
		n, err := from.Read(buf)
		if n == 0 || err != nil {
			return
		}
		p.mu.Lock()
		free, trap := p.free, p.trap
		p.mu.Unlock()
		<-free
		if upstream && first < 64<<10 && l.from == "" {
			first += n
			if m := nameOfServer.FindSubmatch(buf[:n]); m != nil {
				p.mu.Lock()
				l.from = string(m[1])
				p.mu.Unlock()
				p.judge(l)
			}
		}
		if trap != nil && trap.Upstream == upstream {
			seen = append(seen, buf[:n]...)
			if bytes.Contains(seen, trap.Pattern) && p.take(trap) {
				if trap.Forward {
					_, _ = to.Write(buf[:n])
				}
				trap.Spring()
				return
			}
			seen = append(seen[:0], seen[max(0, len(seen)-len(trap.Pattern)):]...)
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// take says whether the trap is still set, and removes it.
func (p *Proxy) take(t *Trap) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap != t {
		return false
	}
	p.trap = nil
	return true
}
