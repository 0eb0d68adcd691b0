package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo returns a server that sends back every byte.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			go func() {
				defer c.Close()
				io.Copy(c, c) //nolint:errcheck // the connection breaks
			}()
		}
	}()
	return "https://" + l.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp4", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a byte and reads the answer.
func ask(c net.Conn) (int, error) {
	if _, err := c.Write([]byte("x")); err != nil {
		return 0, err
	}
	return c.Read(make([]byte, 1))
}

// TestSilence checks that existing connections fall silent until the next cut, and new ones work.
func TestSilence(t *testing.T) {
	p, err := Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	old := dial(t, p)
	if n, err := ask(old); n != 1 {
		t.Fatalf("before the silence: %d bytes, %v", n, err)
	}
	p.Silence()
	answer := make(chan int, 1)
	go func() {
		n, _ := ask(old)
		answer <- n
	}()
	for range 100 {
		if n, err := ask(dial(t, p)); n != 1 {
			t.Fatalf("a new connection: %d bytes, %v", n, err)
		}
	}
	select {
	case n := <-answer:
		t.Fatalf("the old connection has ended, with %d bytes", n)
	default:
	}
	p.Cut()
	if n := <-answer; n != 0 {
		t.Errorf("the old connection received %d bytes", n)
	}
}

func TestCut(t *testing.T) {
	p, err := Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := dial(t, p)
	if n, err := ask(c); n != 1 {
		t.Fatalf("before the cut: %d bytes, %v", n, err)
	}
	p.Cut()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("after the cut: %d bytes, %v", n, err)
	}
	if n, err := ask(dial(t, p)); n != 1 {
		t.Errorf("a new connection: %d bytes, %v", n, err)
	}
}

// TestBalance checks that connections go to all servers in turn, past those that refuse them.
func TestBalance(t *testing.T) {
	gone, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	one, err := Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	p, err := Start(one.URL(), echo(t), "https://"+gone.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 6 {
		if n, err := ask(dial(t, p)); n != 1 {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	if n := one.next.Load(); n < 2 || n > 4 {
		t.Errorf("one of two servers has had %d of 6 connections", n)
	}
}

// TestPart checks that the bytes sent over a broken network arrive once it is whole, and that they
// are counted.
func TestPart(t *testing.T) {
	p, err := Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	old := dial(t, p)
	if n, err := ask(old); n != 1 {
		t.Fatalf("before: %d bytes, %v", n, err)
	}
	p.Part()
	answers := make(chan int, 2)
	for _, c := range []net.Conn{old, dial(t, p)} {
		go func() {
			n, _ := ask(c)
			answers <- n
		}()
	}
	whole := dial(t, p)
	if err := whole.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := ask(whole); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("while the network is broken: %d bytes, %v", n, err)
	}
	select {
	case <-answers:
		t.Error("a connection has an answer while the network is broken")
	default:
	}
	p.Heal()
	for range 2 {
		if n := <-answers; n != 1 {
			t.Errorf("after it was healed: %d bytes", n)
		}
	}
	if n := p.Bytes(); n < 6 || n > 8 {
		t.Errorf("%d bytes were passed on, want 6 to 8", n)
	}
}
