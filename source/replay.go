package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// ReplayOptions configure the replay of a recording. The zero value plays it as fast as it was
// recorded.
type ReplayOptions struct {
	// Speed is the factor by which it is played faster than recorded; 0 means 1, and math.Inf(1)
	// waits only where an informer would see something else.
	//
	// At 1, the informer has to notice the recorded silences itself, and a replay waits until it
	// does. At another speed, to which the timers of the informer do not fit, a request that the
	// recorded informer ended ends with the recorded error. A watch that lasted for a second does
	// so at any speed, and so does an outage of 10 seconds after which the informer checked the
	// server: informers take shorter ones for something else.
	Speed float64
	// Whole is an object of the API type if T is a view of it, for example new(corev1.Pod), and nil
	// for a view of a kind without a Go type. Otherwise it is not used.
	Whole runtime.Object
}

const (
	// leastWatch is the age below which informers take the end of a watch for a failure, and
	// leastOutage that from which an outage makes them check the server's version.
	leastWatch, leastOutage = time.Second, 10 * time.Second
)

// Replayed is a [Source] that plays a track of a recording. Use [Replay].
//
// It answers each request as it was answered, after the same time. A request that was not recorded
// at this place is answered from the records that have been played: a list with the objects as they
// were, a watch with the events that follow, or those of the next recorded watch.
// [Replayed.Unplanned] counts these.
//
// Objects that the recording has as identities have no fields beside their name, namespace, UID
// and version, and so no labels: a replay ignores selectors. When all has been played, it is
// silent: it does not answer lists, nor anything if the last record is a failure, so that the
// informer stays in the state in which it was recorded.
//
// One informer may use it, once. Done and Unplanned may be called from any goroutine.
type Replayed[T Object] struct {
	rest      *REST[T] // decodes
	track     *tape.Track
	speed     float64
	done      chan struct{} // closed when all was played
	unplanned atomic.Int64

	// The goroutine that calls List and Watch uses the rest.

	next    int                // of track.Records
	from    moment             // from which waits count
	contact moment             // when the server last brought something
	objects map[string]Item[T] // as they were at the record before next
	version string             // that was reached there
	listed  map[string]Item[T] // of a list whose last page has not been played
}

// Replay returns a source that plays a track: with testing/synctest in no time. empty returns an
// empty object of the type to decode into, for example new(corev1.Pod), or an
// *unstructured.Unstructured for custom types. Objects that were recorded in protobuf are decoded
// into the Go type of the resource only, or into *metav1.PartialObjectMetadata.
//
//	recording, err := flight.Open("testdata/rewind.zip")
//	…
//	track, err := recording.Track("pods.v1")
//	…
//	pods, err := source.Replay(track, func() *corev1.Pod { return new(corev1.Pod) },
//		source.ReplayOptions{})
func Replay[T Object](
	track *tape.Track, empty func() T, o ReplayOptions,
) (*Replayed[T], error) {
	if o.Speed < 0 || o.Speed != o.Speed {
		return nil, fmt.Errorf("source: Replay: ReplayOptions.Speed is %v: "+
			"give how many times faster, or 0 for as fast as recorded", o.Speed)
	}
	if o.Speed == 0 {
		o.Speed = 1
	}
	r := &Replayed[T]{
		track: track, speed: o.Speed, done: make(chan struct{}), version: track.BaseVersion,
		objects: map[string]Item[T]{}, from: moment{played: time.Now()},
	}
	if len(track.Records) > 0 {
		r.from.recorded = track.Records[0].At
	}
	r.contact = r.from
	var err error
	if r.rest, err = replayDecoder(track, empty, o.Whole); err != nil {
		return nil, fmt.Errorf("source: Replay of %s: %w", track, err)
	}
	for _, o := range track.Base {
		if r.objects[o.Key], err = r.item(o); err != nil {
			return nil, fmt.Errorf("source: Replay of %s: object %s of the base: %w",
				track, BoundText(o.Key), err)
		}
	}
	return r, nil
}

func replayDecoder[T Object](
	t *tape.Track, empty func() T, whole runtime.Object,
) (*REST[T], error) {
	resource := Resource{Group: t.Group, Version: t.Version, Name: t.Resource, Kind: t.Kind}
	var rest any
	switch any(empty()).(type) {
	case *unstructured.Unstructured:
		rest = NewDynamic(nil, resource, RESTOptions{})
	case *metav1.PartialObjectMetadata:
		rest = NewMetadata(nil, resource, RESTOptions{})
	case runtime.Object:
		return NewTyped(nil, resource, empty, RESTOptions{}), nil
	default:
		return replayedView(t, resource, empty, whole)
	}
	decoder, ok := rest.(*REST[T])
	if !ok {
		return nil, fmt.Errorf("the empty object is a %T as another type: return it as what it is", empty())
	}
	return decoder, nil
}

// replayedView returns the decoder of a view. A recording of another view does not have its fields.
func replayedView[T Object](
	t *tape.Track, resource Resource, empty func() T, whole runtime.Object,
) (*REST[T], error) {
	view := reflect.TypeOf(empty())
	if err := CheckView(view, whole); err != nil {
		return nil, fmt.Errorf("%w (ReplayOptions.Whole is %T)", err, whole)
	}
	for _, field := range DeclaredFields(view) {
		if t.View != nil && !slices.Contains(t.View, field) {
			return nil, fmt.Errorf("it is of a view with the fields %s, and %v declares %q: "+
				"replay it as that view, or as the whole type",
				strings.Join(t.View, ", "), view, field)
		}
	}
	if t.Metadata && !isOfMetadata(view) {
		return nil, fmt.Errorf("it is of metadata alone, and %v declares more: "+
			"replay it as *metav1.PartialObjectMetadata", view)
	}
	return newView(nil, resource, empty, whole, RESTOptions{}, t.Metadata), nil
}

// Done is closed when all has been played, with the silence at its end, and the informer has taken
// it.
func (r *Replayed[T]) Done() <-chan struct{} { return r.done }

// Unplanned returns the number of requests that were not those that were recorded. The first one is
// not counted: it is that of an informer that had a cache when the recording begins. Requests after
// the end of the recording are not counted either.
func (r *Replayed[T]) Unplanned() int { return int(r.unplanned.Load()) }

func (r *Replayed[T]) countUnplanned() {
	if r.next > 0 && r.peek() != nil {
		r.unplanned.Add(1)
	}
}

func (r *Replayed[T]) peek() *tape.Record {
	if r.next == len(r.track.Records) {
		return nil
	}
	return &r.track.Records[r.next]
}

// moment is a time of a replay, and the time of the recording that it stands for.
type moment struct {
	played   time.Time
	recorded time.Duration
}

func momentOf(record *tape.Record) moment { return moment{time.Now(), record.At} }

// left returns how long a replay has to wait for a later time of the recording.
func (m moment) left(at time.Duration, speed float64) time.Duration {
	left := time.Duration(math.MaxInt64)
	if wait := max(float64(at-m.recorded)/speed, 0); wait < math.MaxInt64 {
		left = time.Duration(wait)
	}
	return left - time.Since(m.played)
}

// atLeast returns how long it has to wait for least to have passed, if it had in the recording. The
// reader measures it from a little later.
func (m moment) atLeast(least, at time.Duration) time.Duration {
	if at-m.recorded < least {
		return 0
	}
	return least + least/100 - time.Since(m.played)
}

// isOver reports whether a request is not answered because all has been played: see [Replayed].
func (r *Replayed[T]) isOver(list bool) bool {
	n := len(r.track.Records)
	if n == 0 || r.next < n {
		return false
	}
	switch r.track.Records[n-1].Kind {
	case tape.Begun, tape.Page, tape.Listed, tape.Event:
		return list
	default:
		return true
	}
}

// wait returns the cause of ctx if that ends before d has passed.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// waitForReader waits until the reader ends the request.
func (r *Replayed[T]) waitForReader(ctx context.Context) error {
	if r.peek() == nil {
		if err := wait(ctx, r.from.left(r.track.End, r.speed)); err != nil {
			return err
		}
		select {
		case <-r.done:
		default:
			close(r.done)
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (r *Replayed[T]) request(op string) request {
	return request{op: op, resource: r.rest.asked.String(), namespace: r.track.Namespace}
}

// List answers a request for a page.
func (r *Replayed[T]) List(ctx context.Context, o ListOptions) (Page[T], error) {
	active(o.OnActivity)
	if r.isOver(o.Limit != 1) {
		return Page[T]{}, r.request("list").fail(Connecting, r.waitForReader(ctx))
	}
	record := r.peek()
	if record == nil || record.Kind != tape.List || !isSameList(record.More.Request, o) {
		r.countUnplanned()
		return r.present(o.IsCached), nil
	}
	r.next++
	r.from = momentOf(record)
	answer := r.peek()
	if answer == nil || answer.Kind != tape.Page && answer.Kind != tape.Failed {
		return Page[T]{}, r.request("list").fail(Connecting, r.waitForReader(ctx))
	}
	if err := r.answer(ctx, "list", answer, 0); err != nil {
		return Page[T]{}, err
	}
	active(o.OnActivity)
	r.contact = momentOf(answer)
	page := Page[T]{
		Version: answer.Version, Continue: answer.More.Continue, Remaining: answer.More.Remaining,
	}
	err := r.readPage(&page, answer, record.More.Request, o.IsCached)
	return page, err
}

// answer waits for the answer of a request, at least for a time, and returns its error.
func (r *Replayed[T]) answer(
	ctx context.Context, op string, answer *tape.Record, atLeast time.Duration,
) error {
	r.next++
	failed := answer.Kind == tape.Failed
	if failed && r.speed == 1 && isReaders(answer.More.Failure) {
		<-ctx.Done()
		phase := Phase(answer.More.Failure.Phase)
		return r.request(op).fail(phase, context.Cause(ctx))
	}
	if err := wait(ctx, max(r.from.left(answer.At, r.speed), atLeast)); err != nil {
		return r.request(op).fail(Connecting, err)
	}
	if failed {
		return failure(answer.More.Failure, r.request(op))
	}
	return nil
}

// isSameList reports whether a request is the one that was recorded: a list of one object, which
// is a check of the server's version, is no list of all.
func isSameList(recorded *tape.Request, o ListOptions) bool {
	return (recorded.Limit == 1) == (o.Limit == 1) &&
		(recorded.Continue == "") == (o.Continue == "")
}

// present returns the objects as they are at this place, in the order of their keys.
func (r *Replayed[T]) present(isCached IsCached) Page[T] {
	page := Page[T]{Version: r.version}
	for _, key := range slices.Sorted(maps.Keys(r.objects)) {
		item := r.objects[key]
		if isCached == nil || !isCached(item.Key, item.Version, item.UID) {
			page.Items = append(page.Items, item)
		}
	}
	return page
}

// readPage adds the objects of a record to a page.
func (r *Replayed[T]) readPage(
	page *Page[T], record *tape.Record, asked *tape.Request, isCached IsCached,
) error {
	order, err := resourceversion.CompareResourceVersion(record.Version, r.version)
	if asked.Limit != 1 && err == nil && order < 0 {
		clear(r.objects) // the server went back: equal versions are not equal states
	}
	items, err := r.items(record.Data)
	if err != nil {
		return r.request("list").fail(Decoding, err)
	}
	r.noteList(items, record, asked)
	for _, item := range items {
		if item.Err == nil && isCached != nil && isCached(item.Key, item.Version, item.UID) {
			continue
		}
		page.Items = append(page.Items, item)
	}
	return nil
}

// noteList notes the objects of a page. A list of one object is a check.
func (r *Replayed[T]) noteList(items []Item[T], page *tape.Record, asked *tape.Request) {
	switch {
	case asked.Limit == 1:
		return
	case asked.Continue == "":
		r.listed = map[string]Item[T]{}
	case r.listed == nil:
		return // its first page is not in the recording
	}
	for _, item := range items {
		if item.Key != "" {
			r.listed[item.Key] = item
		}
	}
	if page.More.Continue == "" {
		r.objects, r.listed, r.version = r.listed, nil, page.Version
	}
}

func (r *Replayed[T]) items(identities []byte) ([]Item[T], error) {
	var items []Item[T]
	for o, err := range tape.Identities(identities) {
		if err != nil {
			return nil, err
		}
		item, err := r.item(o)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// item returns an object: as it is known, as it is encoded, or its identity.
func (r *Replayed[T]) item(o tape.Object) (Item[T], error) {
	if o.Err != "" {
		err := errors.New(o.Err)
		if o.Key != "" {
			err = &UndecodableError{err}
		}
		return Item[T]{Key: o.Key, Version: o.Version, UID: o.UID, Err: err}, nil
	}
	known, ok := r.objects[o.Key]
	if ok && o.Data == nil && known.Version == o.Version && known.UID == o.UID {
		return known, nil
	}
	data := o.Data
	if data == nil {
		data = r.identity(o)
	}
	obj, err := r.rest.decoder.json(data, schema.GroupVersionKind{})
	if err != nil {
		return Item[T]{}, err
	}
	return Item[T]{Key: o.Key, Version: o.Version, UID: o.UID, Object: obj}, nil
}

// identity returns an object in JSON that has an identity alone.
func (r *Replayed[T]) identity(o tape.Object) []byte {
	namespace, name := splitKey(o.Key)
	object := map[string]any{"metadata": metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(o.UID), ResourceVersion: o.Version,
	}}
	if _, ok := any(r.rest.decoder).(*dynamicDecoder); ok {
		gvk := r.rest.decoder.wants()
		if gvk.Kind == "" {
			gvk.Kind = "Unknown"
		}
		object["apiVersion"], object["kind"] = gvk.ToAPIVersionAndKind()
	}
	data, _ := json.Marshal(object) // metadata has a form in JSON
	return data
}

// DecodingStats counts the objects that were decoded.
func (r *Replayed[T]) DecodingStats() DecodingStats { return r.rest.DecodingStats() }
