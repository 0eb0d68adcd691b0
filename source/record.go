package source

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/engine/tape"
)

// Recorder keeps the answers and events of sources. A *flight.Recorder is one.
type Recorder interface {
	// Ring returns the ring that keeps the records.
	Ring() *tape.Ring
}

// Record returns a source that yields the same as src, and writes it to a ring until end is called.
// name is that of the informer. base returns the state of its cache, and must not call the source.
// Of Secrets the identity alone is written.
//
// An engine calls it for each source if [Transport] has a Recorder.
func Record[T any](src Source[T], ring *tape.Ring, name string,
	base func() tape.Base) (recorded Source[T], end func()) {
	r := &recordedSource[T]{Source: src}
	o := tape.WriterOptions{Name: name, Base: func() tape.Base { return r.withoutSecrets(base()) }}
	if described, ok := src.(described); ok {
		o.Collection, r.collection = described.Collection, described.Collection
	}
	if w, ok := src.(wired); ok {
		o.Decode = w.DecodeFrame
	}
	r.tape = ring.NewWriter(o)
	return r, r.tape.End
}

// described is implemented by sources that know their collection.
type described interface {
	// Collection describes the collection that is read, as far as it is known.
	Collection() tape.Collection
}

// wired is implemented by sources that read frames, and by those that convert their objects.
type wired interface {
	// DecodeFrame returns the object in a frame of a stream of the source.
	DecodeFrame(frame []byte, form tape.Form) (any, error)
}

// framed is implemented by the streams of such sources.
type framed interface {
	// Frames returns the frames of the events that Next has returned, until it is called again.
	Frames() ([][]byte, tape.Form)
}

// recordedSource writes the calls of a source, and their results. A source has one call at a time.
type recordedSource[T any] struct {
	Source[T]
	collection func() tape.Collection // nil if that is not known
	tape       *tape.Writer
}

// secrecy returns a function that reports whether an object may be a Secret. Of nil it reports
// whether any object may be one. A kind alone is that of a Go type, which may hold other objects.
func (r *recordedSource[T]) secrecy() func(object any) bool {
	var of tape.Collection
	if r.collection != nil {
		of = r.collection()
	}
	secret, known := dedup.IsSecret(of.Group, of.Resource, of.Kind), of.Resource != ""
	return func(object any) bool {
		if secret || object == nil {
			return secret || !known
		}
		return dedup.MayBeSecret(object, known)
	}
}

// withoutSecrets returns a base in which Secrets are identities.
func (r *recordedSource[T]) withoutSecrets(base tape.Base) tape.Base {
	objects := base.Objects
	base.Objects = func(yield func(tape.Object) bool) {
		mayBeSecret := r.secrecy()
		for o := range objects {
			if mayBeSecret(o.Object) {
				o.Object = nil
			}
			if !yield(o) {
				return
			}
		}
	}
	return base
}

// List writes the request, and the identities in the answer or its error.
func (r *recordedSource[T]) List(ctx context.Context, o ListOptions) (Page[T], error) {
	r.tape.Write(tape.Record{Kind: tape.List, More: &tape.More{Request: &tape.Request{
		Version: o.Version, Limit: o.Limit, Continue: o.Continue, ShardSelector: o.ShardSelector,
	}}})
	var listed identities
	o.IsCached = noteCached(o.IsCached, &listed)
	page, err := r.Source.List(ctx, o)
	if err != nil {
		r.tape.Write(failed(ctx, err))
		return page, err
	}
	for i := range page.Items {
		addItem(&listed, &page.Items[i])
	}
	records := listed.records(tape.Page)
	if len(records) == 0 {
		records = append(records, tape.Record{Kind: tape.Page, Form: tape.Identity})
	}
	last := len(records) - 1
	for i := range records[:last] {
		records[i].More = &tape.More{Partial: true}
	}
	records[last].Version = page.Version
	records[last].More = &tape.More{Continue: page.Continue, Remaining: page.Remaining}
	r.tape.Write(records...)
	return page, nil
}

// identities are those of listed objects, in parts of which each is a record: a ring leaves out the
// data of large records.
type identities [][]byte

// identityPart is the size from which a part takes no more.
const identityPart = 64 << 10

func (l *identities) add(key, version, uid, err string) {
	if n := len(*l); n == 0 || len((*l)[n-1]) >= identityPart {
		*l = append(*l, nil)
	}
	part := &(*l)[len(*l)-1]
	*part = tape.AppendIdentity(*part, key, version, uid, err)
}

// records returns a record of a kind for each part.
func (l identities) records(kind tape.Kind) (records []tape.Record) {
	for _, part := range l {
		records = append(records, tape.Record{Kind: kind, Form: tape.Identity, Data: part})
	}
	return records
}

// noteCached returns a function that calls isCached and notes the objects that are.
func noteCached(isCached IsCached, listed *identities) IsCached {
	if isCached == nil {
		return nil
	}
	return func(key, version, uid string) bool {
		cached := isCached(key, version, uid)
		if cached {
			listed.add(key, version, uid, "")
		}
		return cached
	}
}

func addItem[T any](listed *identities, item *Item[T]) {
	text := ""
	if item.Err != nil {
		text = item.Err.Error()
	}
	listed.add(item.Key, item.Version, item.UID, text)
}

func identityOf[T any](item *Item[T]) []byte {
	var one identities
	addItem(&one, item)
	return one[0]
}

// Watch writes the request, and its error if it fails.
func (r *recordedSource[T]) Watch(ctx context.Context, o WatchOptions) (Stream[T], error) {
	r.tape.Write(tape.Record{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{
		Version: o.Version, Timeout: o.Timeout, SendInitialEvents: o.SendInitialEvents,
		ShardSelector: o.ShardSelector,
	}}})
	s := &recordedStream[T]{tape: r.tape, ctx: ctx, listing: o.SendInitialEvents}
	o.IsCached = noteCached(o.IsCached, &s.listed)
	var err error
	if s.Stream, err = r.Source.Watch(ctx, o); err != nil {
		r.tape.Write(failed(ctx, err))
		return nil, err
	}
	s.mayBeSecret = r.secrecy() // after Watch, which may have asked for the resource
	r.tape.Write(tape.Record{Kind: tape.Begun})
	return s, nil
}

// recordedStream writes the events of a stream.
type recordedStream[T any] struct {
	Stream[T]
	tape        *tape.Writer
	ctx         context.Context
	mayBeSecret func(any) bool
	listing     bool       // a list is being streamed
	listed      identities // of it, that were not written
	ended       bool       // the end was written
	records     []tape.Record
}

// Next writes the events and the error of the stream.
func (s *recordedStream[T]) Next() ([]Event[T], error) {
	events, err := s.Stream.Next()
	clear(s.records)
	s.records = s.records[:0]
	var frames [][]byte
	var form tape.Form
	if f, ok := s.Stream.(framed); ok {
		frames, form = f.Frames()
	}
	for i := range events {
		e := &events[i]
		if s.listing && e.Type == Added {
			addItem(&s.listed, &e.Item)
			continue
		}
		s.listing = s.listing && e.Type != InitialEventsEnd
		s.flush()
		var frame []byte
		if i < len(frames) {
			frame = frames[i]
		}
		s.records = append(s.records, s.record(e, frame, form))
	}
	s.flush()
	if err != nil {
		s.ended = true
		s.records = append(s.records, failed(s.ctx, err))
	}
	s.tape.Write(s.records...)
	return events, err
}

func (s *recordedStream[T]) flush() {
	s.records = append(s.records, s.listed.records(tape.Listed)...)
	s.listed = nil
}

// record describes an event. frame is nil if the stream has none.
func (s *recordedStream[T]) record(e *Event[T], frame []byte, form tape.Form) tape.Record {
	record := tape.Record{Kind: tape.Event, Type: uint8(e.Type), Key: e.Key, Version: e.Version}
	switch {
	case e.Type == Bookmark || e.Type == InitialEventsEnd:
	case e.Unselected && (frame == nil || s.mayBeSecret(nil)): // it has a version alone
	case !e.Unselected && (e.Err != nil || s.mayBeSecret(e.Object)):
		record.Form, record.Data = tape.Identity, identityOf(&e.Item)
	case frame != nil:
		record.Form, record.Data = form, frame
	default:
		// A transform may change the object.
		if obj, ok := any(e.Object).(runtime.Object); ok {
			record.Form, record.Object = tape.Encoded, obj.DeepCopyObject()
			break
		}
		record.Form, record.Data = tape.Identity, identityOf(&e.Item)
	}
	return record
}

// Close writes that the stream was closed before its end.
func (s *recordedStream[T]) Close() error {
	if !s.ended {
		s.ended = true
		s.tape.Write(tape.Record{Kind: tape.Closed})
	}
	return s.Stream.Close()
}

// Collection describes the collection that the source reads. It does not wait for discovery.
func (s *REST[T]) Collection() tape.Collection {
	r := s.asked
	select {
	case s.lock <- struct{}{}:
		r = s.resource
		<-s.lock
	default:
	}
	return tape.Collection{
		Group: r.Group, Version: r.Version, Resource: r.Name, Kind: r.Kind,
		Metadata: s.decoder.wants() == metadataKind, View: s.declares,
		Namespace: s.options.Namespace, Labels: s.options.Labels, Fields: s.options.Fields,
	}
}

// DecodeFrame returns the object in a frame that a stream of the source has returned.
func (s *REST[T]) DecodeFrame(frame []byte, form tape.Form) (any, error) {
	event, err := s.streamOf(form).decode(frame)
	if err == nil {
		err = event.Err
	}
	return event.Object, err
}

// Frames returns the frames of the events that Next has returned.
func (s *restStream[T]) Frames() ([][]byte, tape.Form) { return s.encoded, s.form }
