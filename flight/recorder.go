package flight

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
	"github.com/tidings-go/tidings/internal/engine/tape"
)

// Options configure a [Recorder]. The zero value is ready.
type Options struct {
	// MaxBytes bounds the memory of the kept records, of all informers together; 0 means 16 MiB,
	// the least is 1 MiB, and the largest 1 GiB: Open reads no more. It is allocated as it is
	// needed.
	MaxBytes int64
	// MaxAge is the time for which a record is kept; 0 means 10 minutes, the least is a second.
	MaxAge time.Duration
	// Cut leaves fields out of the objects in recordings. A path names fields as JSON does,
	// joined by dots, as in "metadata.managedFields" or "spec.containers.env", and goes through
	// lists. It has to be in metadata, spec, status or another field than the identity of the
	// object. With a path, annotations that repeat an object are left out too. The content of
	// Secrets is left out in any case.
	Cut []string
	// Dir is the directory to which recordings are written when a handler panics or becomes stuck,
	// or when a server's versions went back; "" writes none. There is at most one a minute. The
	// oldest of more than 20 recordings in it is removed, that of an earlier process or of DumpFile
	// too. New makes the directory if it does not exist, and returns an error if nothing can be
	// written there.
	Dir string
	// Logger receives a line for each recording in Dir; nil means slog.Default().
	// slog.DiscardHandler is for silence.
	Logger *slog.Logger
}

const (
	defaultBytes = 16 << 20
	leastBytes   = 1 << 20
	defaultAge   = 10 * time.Minute

	// dumpInterval is the least time between two recordings in Options.Dir.
	dumpInterval = time.Minute
)

// Recorder keeps the answers and events that informers read. Use [New], and give it to them as
// Transport.Recorder.
type Recorder struct {
	o    Options
	cut  fieldpath.Tree
	ring *tape.Ring

	mu     sync.Mutex // guards the rest, and is held while a recording is written to Options.Dir
	dumped time.Time  // when the last one was written
}

// New returns a recorder that has kept nothing yet.
func New(o Options) (*Recorder, error) {
	switch {
	case o.MaxBytes != 0 && (o.MaxBytes < leastBytes || o.MaxBytes > maxBytes):
		return nil, fmt.Errorf("flight: New: Options.MaxBytes is %d: "+
			"give %d to %d, or 0 for 16 MiB", o.MaxBytes, leastBytes, maxBytes)
	case o.MaxAge != 0 && o.MaxAge < time.Second:
		return nil, fmt.Errorf("flight: New: Options.MaxAge is %v: "+
			"give a second or more, or 0 for 10 minutes", o.MaxAge)
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultBytes)
	o.MaxAge = cmp.Or(o.MaxAge, defaultAge)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	cut, err := fieldpath.Parse(o.Cut)
	if err != nil {
		return nil, fmt.Errorf("flight: New: Options.Cut: %w", err)
	}
	r := &Recorder{o: o, cut: cut}
	r.ring = tape.New(tape.Options{MaxBytes: o.MaxBytes, MaxAge: o.MaxAge, OnEvent: r.onEvent})
	if o.Dir != "" { // otherwise the first to know would be the recording of a fault
		name, err := r.DumpFile(o.Dir, "a check of the directory")
		if err == nil {
			err = os.Remove(name)
		}
		if err != nil {
			return nil, fmt.Errorf("flight: New: Options.Dir cannot be written: %w", err)
		}
	}
	return r, nil
}

// Ring is for the informers of this module, which write to it.
func (r *Recorder) Ring() *tape.Ring {
	if r == nil {
		return nil
	}
	return r.ring
}

// Bytes returns the memory of the kept records, by the count that Options.MaxBytes bounds.
func (r *Recorder) Bytes() int64 { return r.ring.Bytes() }

// Dump writes the records to w as a recording, with the reason. Informers go on meanwhile.
func (r *Recorder) Dump(w io.Writer, reason string) error {
	if err := write(w, r.ring.Take(), reason, r.cut); err != nil {
		return fmt.Errorf("flight: Dump: %w", err)
	}
	return nil
}

// DumpFile writes a recording to a new file in a directory, and returns its name. Only the user of
// the process may read it.
func (r *Recorder) DumpFile(dir, reason string) (name string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("flight: DumpFile: %w", err)
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	// A pattern without a directory, so that a reason cannot lead out of dir.
	at := time.Now().UTC().Format(fileTime)
	f, err := os.CreateTemp(dir, filePrefix+at+"-*"+partial)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // after an error, or a second time
	err = write(f, r.ring.Take(), reason, r.cut)
	if err == nil {
		err = f.Close()
	}
	name = strings.TrimSuffix(f.Name(), partial) + fileSuffix
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // what is left is a .part
		return "", err
	}
	return filepath.Clean(name), nil
}

// onEvent writes a recording to Options.Dir. After a panic, the process may end when it returns.
func (r *Recorder) onEvent(reason, informer string) {
	if r.o.Dir == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dumped.IsZero() && time.Since(r.dumped) < dumpInterval {
		return
	}
	r.dumped = time.Now()
	name, err := r.DumpFile(r.o.Dir, reason+" of informer "+informer)
	if err != nil {
		r.o.Logger.Error("no flight recording was written", "reason", reason,
			"informer", informer, "error", err)
		return
	}
	r.o.Logger.Warn("a flight recording was written", "file", name, "reason", reason,
		"informer", informer)
	prune(r.o.Dir)
}
