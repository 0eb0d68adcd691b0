package view

import (
	"bufio"
	"io"
	"sync"

	"golang.org/x/term"
)

// Keyboard reads the keys of a terminal, which does not echo them meanwhile.
type Keyboard struct {
	fd     int
	before *term.State
	keys   chan rune
	closed chan struct{}
	close  sync.Once
}

// OpenKeyboard returns the keyboard of a terminal. It returns nil if in is not a terminal, or if
// this process runs in the background of it. The keyboard's goroutine ends at the first key after Close: reading a terminal cannot be ended.
func OpenKeyboard(in io.Reader) (*Keyboard, error) {
	file := terminalFile(in)
	if file == nil || !isForeground(int(file.Fd())) {
		return nil, nil
	}
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, err
	}
	k := &Keyboard{
		fd: int(file.Fd()), before: before, keys: make(chan rune), closed: make(chan struct{}),
	}
	go k.read(bufio.NewReader(file))
	return k, nil
}

func (k *Keyboard) read(in *bufio.Reader) {
	for {
		key, _, err := in.ReadRune()
		if err != nil {
			return
		}
		select {
		case k.keys <- key:
		case <-k.closed:
			return
		}
	}
}

// Keys returns the channel of the keys.
func (k *Keyboard) Keys() <-chan rune { return k.keys }

// Close restores the terminal. It may be called more than once.
func (k *Keyboard) Close() (err error) {
	k.close.Do(func() {
		close(k.closed)
		err = term.Restore(k.fd, k.before)
	})
	return err
}
