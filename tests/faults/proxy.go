package main

import (
	"bytes"
	"net"
	"regexp"
	"sync"
	"time"
)

// proxy stands in front of one server, for its clients or for the other servers of its cluster, and can cut and hold what passes it. It knows who
// dialled: a worker because its proxies are its own, a server because it says its name in its first lines.
type proxy struct {
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
	trap *trap
}

type link struct {
	near, far net.Conn
	from      string // who dialled; "" until it is known
}

// trap waits for bytes on their way and does something, once. Bytes up to the pattern's message go on first or never.
type trap struct {
	pattern  []byte
	upstream bool // on the way from who dialled to the server
	forward  bool // the bytes with the pattern still go on
	spring   func()
}

// newProxy listens for links to a server at an address that may not be listened at yet.
func newProxy(toName, to string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{to: to, toName: toName, listener: l, links: make(map[*link]bool), cut: make(map[string]bool), free: make(chan struct{})}
	close(p.free)
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	p.listener.Close()
	p.setCut("", true)
	p.hold(false)
}

func (p *proxy) accept() {
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

// setCut cuts, or no longer cuts, everything between this server and the one that dialled under a name.
func (p *proxy) setCut(name string, on bool) {
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
func (p *proxy) judge(l *link) {
	p.mu.Lock()
	over := p.cut[""] || p.cut[p.toName] || l.from != "" && p.cut[l.from]
	p.mu.Unlock()
	if over {
		p.end(l)
	}
}

func (p *proxy) end(l *link) {
	l.near.Close()
	l.far.Close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// hold stops everything on its way, or lets it go on.
func (p *proxy) hold(on bool) {
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

func (p *proxy) set(t *trap) {
	p.mu.Lock()
	p.trap = t
	p.mu.Unlock()
}

var nameOfServer = regexp.MustCompile(`"server_name":"([^"]*)"`)

// pass copies from one end to the other until either ends.
func (p *proxy) pass(l *link, from, to net.Conn, upstream bool) {
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
		if trap != nil && trap.upstream == upstream {
			seen = append(seen, buf[:n]...)
			if bytes.Contains(seen, trap.pattern) && p.take(trap) {
				if trap.forward {
					_, _ = to.Write(buf[:n])
				}
				trap.spring()
				return
			}
			seen = append(seen[:0], seen[max(0, len(seen)-len(trap.pattern)):]...)
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// take says whether the trap is still set, and removes it.
func (p *proxy) take(t *trap) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap != t {
		return false
	}
	p.trap = nil
	return true
}
