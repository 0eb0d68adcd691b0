package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

// Kind is the kind of an [Entry].
type Kind string

// The kinds of entries, with the fields that they have beside At and Member.
const (
	// Begin: a membership begins. Closed: its term is closed.
	Begin  Kind = "begin"
	Closed Kind = "closed"
	// Renew: a write of the own Lease is sent, with Number. Renewed: it has succeeded.
	Renew   Kind = "renew"
	Renewed Kind = "renewed"
	// Warm: the slots of Epochs, whose values are 0, are to be served later. Serve: the slots of
	// Epochs are served. Drain: no more calls begin for them. Drained: none runs, and the slots may
	// be given away. After a drain that is given up, Serve comes again.
	Warm    Kind = "warm"
	Serve   Kind = "serve"
	Drain   Kind = "drain"
	Drained Kind = "drained"
	// Call: a call of Key begins, with Number, and with an object of Version. Gone: the same, for
	// the end of an object. Return: it has returned.
	Call   Kind = "call"
	Gone   Kind = "gone"
	Return Kind = "return"
	// Write: the call with the number Call gives a write to its client, with Number. Sent: the
	// guard has let it pass. Answer: it has ended, with the Version that was written; 0 without
	// one.
	Write  Kind = "write"
	Sent   Kind = "sent"
	Answer Kind = "answer"
	// Request: any request is sent. Text is its verb and resource.
	Request Kind = "request"
)

// Entry is a line of a [Journal].
type Entry struct {
	At     time.Duration `json:"at"`
	Kind   Kind          `json:"kind"`
	Member string        `json:"member,omitempty"` // the identity of the membership
	// Number counts the calls, the writes, and the renewals of a process.
	Number  uint64         `json:"number,omitempty"`
	Call    uint64         `json:"call,omitempty"`
	Key     string         `json:"key,omitempty"`
	Version uint64         `json:"version,omitempty"`
	Epochs  map[int]uint64 `json:"epochs,omitempty"` // by slot
	Text    string         `json:"text,omitempty"`
}

// Now returns the present time.
func Now() time.Duration { return lease.NewClock().Boot() }

// Journal is a file of entries, which stay when its process is killed.
type Journal struct {
	mu   sync.Mutex // guards file, so that the entries are in the order of their times
	file *os.File
}

// Create creates a journal.
func Create(path string) (*Journal, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &Journal{file: file}, nil
}

// Note writes an entry with the present time. A process whose journal cannot be written must end.
func (j *Journal) Note(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.At = Now()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("journal: %v", err))
	}
}

// Process holds the entries of a replica.
type Process struct {
	Name    string
	Entries []Entry
	Faults  []Fault

	path    string
	offset  int64
	serving slot.Set
}

// Fault is a time in which a process cannot do its work. To is 0 if that never ends. With IsHeard
// its requests reach the server, and their answers are lost.
type Fault struct {
	Kind     string
	From, To time.Duration
	IsHeard  bool
}

// NewProcess returns a process whose journal is at a path.
func NewProcess(name, path string) *Process { return &Process{Name: name, path: path} }

// Read reads the entries that were written since the last call. A line without an end is left: the
// process was killed while it wrote it, or still writes it.
func (p *Process) Read() error {
	file, err := os.Open(p.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the process has not begun
	}
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	data, err := io.ReadAll(io.NewSectionReader(file, p.offset, 1<<62))
	if err != nil {
		return err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	p.offset += int64(len(data))
	for line := range bytes.Lines(data) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: %q: %w", p.path, line, err)
		}
		p.Entries = append(p.Entries, e)
		p.follow(e)
	}
	return nil
}

// Serving returns the slots that are served after the last entry that was read.
func (p *Process) Serving() slot.Set { return p.serving }

func (p *Process) follow(e Entry) {
	if e.Kind == Begin || e.Kind == Closed {
		p.serving = slot.Set{}
	}
	for n := range e.Epochs {
		switch e.Kind {
		case Serve:
			p.serving.Add(n)
		case Drain, Drained:
			p.serving.Remove(n)
		}
	}
}
