package tape

import (
	"iter"
	"slices"
	"sync"
	"time"
)

// Options configure a [Ring]. All are required.
type Options struct {
	// MaxBytes bounds the memory of the ring.
	MaxBytes int64
	// MaxAge is the time for which a record is kept.
	MaxAge time.Duration
	// OnEvent is called with an event that may be a reason for a recording, and with the name of
	// the informer. It may be called from any goroutine.
	OnEvent func(reason, informer string)
}

const (
	// extraBytes is the memory of a record beside its head, its bytes and its texts.
	extraBytes = 256
	// objectBytes is the counted memory of an object that is not encoded.
	objectBytes = 4 << 10
	// segments is the least number of segments of a full ring.
	segments = 16
	// maxRoom bounds the room of a segment, which is allocated with its first record.
	maxRoom = 1 << 20
)

// Ring keeps the newest records.
type Ring struct {
	o     Options
	began time.Time
	room  int // of a segment, in bytes

	mu       sync.Mutex // guards the rest
	segments []*segment // the oldest first
	begun    int        // how many segments there have been
	bytes    int64
	spare    *segment         // an empty one, or nil
	writers  map[*Writer]bool // that have not ended
}

// Base is the state of a cache.
type Base struct {
	// Version is the version up to which the source was read.
	Version string
	// Objects yields the cached objects, in the order of keys.
	Objects iter.Seq[Object]
}

// WriterOptions configure a [Writer].
type WriterOptions struct {
	// Name is that of the informer.
	Name string
	// Base returns the state of the cache. It must not call the writer.
	Base func() Base
	// Collection describes the collection that the source reads; nil if that is not known.
	Collection func() Collection
	// Decode decodes the object of a frame; nil if there are no frames.
	Decode func(frame []byte, form Form) (any, error)
}

// Writer writes the records of one source.
type Writer struct {
	ring *Ring
	o    WriterOptions

	// Guarded by Ring.mu.
	segment int // the number of the newest segment that it has written to
	part    int // its number there
}

// New returns an empty ring.
func New(o Options) *Ring {
	room := int(min(o.MaxBytes/segments/2, maxRoom)) // bytes count twice
	return &Ring{o: o, began: time.Now(), room: room, writers: map[*Writer]bool{}}
}

// Event calls Options.OnEvent.
func (r *Ring) Event(reason, informer string) { r.o.OnEvent(reason, informer) }

// NewWriter returns a writer, which [Writer.End] ends.
func (r *Ring) NewWriter(o WriterOptions) *Writer {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &Writer{ring: r, o: o}
	r.writers[w] = true
	return w
}

// Write writes records that occurred now, and copies their Data.
func (w *Writer) Write(records ...Record) {
	r := w.ring
	now := time.Since(r.began)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range records {
		r.write(w, &records[i], now)
	}
}

func (r *Ring) write(w *Writer, record *Record, now time.Duration) {
	kept := *record
	kept.At = now
	if int64(len(kept.Data)) > r.o.MaxBytes/4 {
		kept.LeftOut, kept.Data = true, nil
	}
	s := r.newest(kept.size(), now)
	if w.segment != s.number {
		w.segment, w.part = s.number, len(s.parts)
		s.parts = append(s.parts, part{by: w, base: w.o.Base()})
	}
	s.add(&kept, w.part)
	count := int64(headBytes + kept.size() + len(kept.Data))
	if kept.More != nil || kept.Object != nil {
		count += int64(extraBytes + kept.More.texts())
	}
	if kept.Object != nil {
		count += 2 * objectBytes
	}
	s.last = now
	s.bytes += count
	r.bytes += count
	r.trim(now)
}

// newest returns the newest segment if it has room for size bytes, and is young enough that
// segments of one age can be dropped, or a new one.
func (r *Ring) newest(size int, now time.Duration) *segment {
	if n := len(r.segments); n > 0 {
		s := r.segments[n-1]
		full := len(s.buf)+size > cap(s.buf) || s.bytes >= int64(4*r.room)
		if !full && now-s.first < r.o.MaxAge/segments {
			return s
		}
	}
	s := r.spare
	r.spare = nil
	if s == nil || cap(s.buf) < size {
		s = &segment{buf: make([]byte, 0, max(size, r.room))}
	}
	r.begun++
	s.number, s.first = r.begun, now
	r.segments = append(r.segments, s)
	return s
}

// trim drops segments that are too old, and those that are too many, but for the newest.
func (r *Ring) trim(now time.Duration) {
	dropped := 0
	for ; dropped < len(r.segments); dropped++ {
		oldest, isNewest := r.segments[dropped], dropped == len(r.segments)-1
		if now-oldest.last <= r.o.MaxAge && (isNewest || r.bytes <= r.o.MaxBytes) {
			break
		}
		r.bytes -= oldest.bytes
		if !oldest.copied && cap(oldest.buf) == r.room {
			clear(oldest.extras)
			clear(oldest.parts)
			oldest.extras, oldest.parts = oldest.extras[:0], oldest.parts[:0]
			oldest.heads, oldest.buf, oldest.bytes = oldest.heads[:0], oldest.buf[:0], 0
			r.spare = oldest
		}
	}
	if dropped > 0 {
		n := copy(r.segments, r.segments[dropped:])
		clear(r.segments[n:])
		r.segments = r.segments[:n]
	}
}

// End drops the records of a writer that will write no more.
func (w *Writer) End() {
	r := w.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.writers, w)
	for _, s := range r.segments {
		at := slices.IndexFunc(s.parts, func(p part) bool { return p.by == w })
		if at < 0 {
			continue
		}
		s.parts[at] = part{}
		for i := range s.extras {
			if s.extras[i].part == at {
				s.extras[i] = extra{part: at} // its bytes go with the segment
			}
		}
	}
}

// Bytes returns the memory of the ring by its own count.
func (r *Ring) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// The reasons of events.
const (
	// ReasonPanic is a handler that panicked.
	ReasonPanic = "panic"
	// ReasonStuck is a handler that has become stuck.
	ReasonStuck = "stuck"
	// ReasonRewind is a server whose versions went back.
	ReasonRewind = "rewind"
)
