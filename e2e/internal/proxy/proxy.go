// Package proxy is a TCP [Proxy] that cuts connections, and delays or swallows their bytes. Before
// several servers it balances: a connection is to the next one that accepts it.
//
//	client ──▶ Proxy ──▶ servers      Cut      breaks every connection
//	       ◀── delay ◀──              Delay    delays the server's bytes
//	                                  Swallow  withholds the server's bytes until Cut
//	                                  Silence  drops the bytes of the existing connections
//	                                  Part     withholds the bytes of both until Heal or Cut
//
// # Concurrency properties
//
// The methods may be called from any goroutine. Close returns when the last connection
// has ended.
package proxy

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is a proxy before one or more servers.
type Proxy struct {
	listener net.Listener
	targets  []string
	next     atomic.Uint64 // counts the connections
	bytes    atomic.Int64  // that were passed on
	running  sync.WaitGroup

	mu      sync.Mutex // guards the rest
	conns   map[net.Conn]bool
	closed  bool
	delay   time.Duration
	swallow chan struct{} // closed by Cut; nil while nothing is swallowed
	silence chan struct{} // closed when the existing connections fall silent
	parted  chan struct{} // closed by Heal and Cut; nil while the network is whole
}

// Start starts a proxy before the servers of some URLs.
func Start(servers ...string) (*Proxy, error) {
	var targets []string
	for _, server := range servers {
		u, err := url.Parse(server)
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		targets = append(targets, u.Host)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{listener: l, targets: targets, conns: map[net.Conn]bool{}, silence: make(chan struct{})}
	p.running.Go(p.accept)
	return p, nil
}

// URL returns the proxy's address. The server's certificate is valid for it: it names
// 127.0.0.1.
func (p *Proxy) URL() string { return "https://" + p.listener.Addr().String() }

// Cut breaks every connection, and ends Swallow.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *Proxy) cutLocked() {
	if p.swallow != nil {
		close(p.swallow)
		p.swallow = nil
	}
	p.healLocked()
	for c := range p.conns {
		c.Close() //nolint:errcheck // it breaks
	}
}

// Delay delays the server's bytes so long from now on; 0 ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Swallow withholds the server's bytes until Cut. The connections stay.
func (p *Proxy) Swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swallow == nil {
		p.swallow = make(chan struct{})
	}
}

// Silence drops the bytes of the existing connections from now on, in either direction. They
// stay open at both ends, as when a firewall forgets them, until Cut or Close. Later connections
// are not affected.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.silence)
	p.silence = make(chan struct{})
}

// Part withholds the bytes of all connections in both directions until Heal or Cut, like a network
// that is broken for some time. The bytes arrive after Heal, also if the sender has closed the
// connection meanwhile.
func (p *Proxy) Part() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parted == nil {
		p.parted = make(chan struct{})
	}
}

// Heal ends Part.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healLocked()
}

func (p *Proxy) healLocked() {
	if p.parted != nil {
		close(p.parted)
		p.parted = nil
	}
}

// Bytes returns the number of bytes that were passed on in both directions.
func (p *Proxy) Bytes() int64 { return p.bytes.Load() }

// Close ends the proxy.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.cutLocked()
	p.mu.Unlock()
	err := p.listener.Close()
	p.running.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // it is closed
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := p.dial()
	if err != nil {
		return // to the client it looks as if the server had refused
	}
	defer server.Close()
	silence := p.add(client, server)
	if silence == nil {
		return
	}
	defer p.remove(client, server)
	var both sync.WaitGroup
	both.Go(func() { p.pipe(client, server, false, silence) })
	both.Go(func() { p.pipe(server, client, true, silence) })
	both.Wait()
}

// dial connects to the next server, or to one after it if that refuses.
func (p *Proxy) dial() (server net.Conn, err error) {
	first := p.next.Add(1)
	for n := range p.targets {
		target := p.targets[(first+uint64(n))%uint64(len(p.targets))]
		if server, err = net.Dial("tcp4", target); err == nil {
			return server, nil
		}
	}
	return nil, err
}

// pipe copies until either end fails, and then breaks both. Once silent it only reads, to
// detect the end.
func (p *Proxy) pipe(from, to net.Conn, fromServer bool, silence <-chan struct{}) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.hold(fromServer)
		}
		if n > 0 && !isClosed(silence) {
			p.bytes.Add(int64(n))
			if _, werr := to.Write(buffer[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits for the end of Part, and for bytes of the server also as Delay and Swallow require.
func (p *Proxy) hold(fromServer bool) {
	p.mu.Lock()
	delay, swallow, parted := p.delay, p.swallow, p.parted
	p.mu.Unlock()
	if parted != nil {
		<-parted
	}
	if !fromServer {
		return
	}
	if swallow != nil {
		<-swallow
	}
	time.Sleep(delay)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// add registers connections and returns a channel that Silence closes; nil if the proxy is
// closed.
func (p *Proxy) add(all ...net.Conn) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	for _, c := range all {
		p.conns[c] = true
	}
	return p.silence
}

func (p *Proxy) remove(all ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		delete(p.conns, c)
	}
}
