package source

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// TestReplayRefuses has tracks that cannot be replayed.
func TestReplayRefuses(t *testing.T) {
	track := &tape.Track{Name: "pods.v1", Collection: tape.Collection{Version: "v1", Kind: "Pod"}}
	pod := func() *corev1.Pod { return new(corev1.Pod) }
	for _, speed := range []float64{-1, math.NaN(), math.Inf(-1)} {
		_, err := Replay(track, pod, ReplayOptions{Speed: speed})
		if err == nil || !strings.Contains(err.Error(), "ReplayOptions.Speed") {
			t.Errorf("speed %v: %v", speed, err)
		}
	}
	asObject := func() Object { return new(unstructured.Unstructured) }
	if _, err := Replay(track, asObject, ReplayOptions{}); err == nil ||
		!strings.Contains(err.Error(), "return it as what it is") {
		t.Errorf("an object of another type: %v", err)
	}
	other := &tape.Track{Name: "pods.v1", Collection: tape.Collection{Namespace: "b"}}
	recording := &tape.Recording{Tracks: []*tape.Track{track, other}}
	for name, want := range map[string]*tape.Track{
		"": nil, "pods.v1": nil, "nodes.v1": nil, "pods.v1 in b": other,
	} {
		if got, err := recording.Track(name); got != want || (err == nil) != (want != nil) {
			t.Errorf("the track %q is %v: %v", name, got, err)
		}
	}
}

// TestReplayOfEndsByTheReader records watches that their reader ends after a minute, and replays
// them: a reader that is silent there gets the recorded end, but for silences at speed 1.
func TestReplayOfEndsByTheReader(t *testing.T) {
	quiet := errors.New("it was quiet")
	for name, test := range map[string]struct {
		because error
		alone   bool // the reader of a replay at speed 1 has to end it
		is      error
		says    string
	}{
		"silence":         {because: ErrSilent, alone: true, is: ErrSilent, says: "canceled"},
		"a torn watch":    {because: errors.Join(quiet, tape.ErrTorn), alone: true, is: tape.ErrTorn, says: "it was quiet"},
		"another reason":  {because: quiet, is: io.EOF, says: "EOF"},
		"an ended reader": {because: context.Canceled, alone: true, says: "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				err := (request{op: "watch"}).fail(Streaming, context.Canceled)
				if test.because == ErrSilent {
					err = (request{op: "watch"}).fail(Streaming, errors.Join(context.Canceled, ErrSilent))
				}
				cancel(test.because)
				end := failed(ctx, err)
				end.At = time.Minute
				track := &tape.Track{Name: "pods.v1", Records: []tape.Record{
					{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{}}}, {Kind: tape.Begun}, end,
				}}
				for _, speed := range []float64{1, 2, math.Inf(1)} {
					played, err := Replay(track, func() *corev1.Pod { return new(corev1.Pod) }, ReplayOptions{Speed: speed})
					if err != nil {
						t.Fatal(err)
					}
					reader, stop := context.WithTimeout(t.Context(), time.Hour)
					stream, err := played.Watch(reader, WatchOptions{})
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					_, err = stream.Next()
					took := map[float64]time.Duration{1: time.Minute, 2: 30 * time.Second}[speed]
					if math.IsInf(speed, 1) {
						took = 1010 * time.Millisecond // an informer does not take it for a short watch
					}
					if test.alone && speed == 1 {
						took = time.Hour
					} else if !strings.Contains(err.Error(), test.says) || !errors.Is(err, test.is) && test.is != nil {
						t.Errorf("at speed %v it ends with %v", speed, err)
					}
					if d := time.Since(began); d != took {
						t.Errorf("at speed %v it ends after %v, want %v", speed, d, took)
					}
					stop()
				}
			})
		})
	}
}

// TestReplayAtTheSlowestSpeed waits for the longest time, and does not take it for none.
func TestReplayAtTheSlowestSpeed(t *testing.T) {
	began := moment{played: time.Now()}
	if left := began.left(time.Second, math.SmallestNonzeroFloat64); left < math.MaxInt64/2 {
		t.Errorf("a second takes %v", left)
	}
	if left := began.left(math.MinInt64, math.SmallestNonzeroFloat64); left > 0 {
		t.Errorf("an earlier time is %v away", left)
	}
}

// identitiesOf returns identities in a form of a record.
func identitiesOf(objects ...tape.Object) (data []byte) {
	for _, o := range objects {
		data = tape.AppendIdentity(data, o.Key, o.Version, o.UID, o.Err)
	}
	return data
}

func replayed(t *testing.T, track *tape.Track, o ReplayOptions) *Replayed[*corev1.Pod] {
	t.Helper()
	track.Version, track.Resource, track.Kind = "v1", "pods", "Pod"
	r, err := Replay(track, func() *corev1.Pod { return new(corev1.Pod) }, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// known is an object that is in the base of a track.
var known = tape.Object{
	Key: "default/a", Version: "1", UID: "u",
	Data: []byte(`{"metadata":{"namespace":"default","name":"a"},"spec":{"nodeName":"n1"}}`),
}

// describeItems writes the key of each object, its node and its error.
func describeItems(items []Item[*corev1.Pod]) (text string) {
	for _, item := range items {
		text += item.Key
		if item.Object != nil && item.Object.Spec.NodeName != "" {
			text += " on " + item.Object.Spec.NodeName
		}
		if item.Err != nil {
			text += " " + item.Err.Error()
		}
		text += "; "
	}
	return text
}

// TestReplayOfPages replays a list in two pages. An object that is known has its content, and another
// one of its name and version has not.
func TestReplayOfPages(t *testing.T) {
	asked := func(token string) tape.Record {
		return tape.Record{Kind: tape.List, More: &tape.More{Request: &tape.Request{Limit: 2, Continue: token}}}
	}
	other := tape.Object{Key: known.Key, Version: known.Version, UID: "v"}
	for name, test := range map[string]struct {
		first tape.Object
		want  string
	}{
		"the same object":       {known, "default/a on n1; default/b it is damaged; "},
		"another of its name":   {other, "default/a; default/b it is damaged; "},
		"a later state of it":   {tape.Object{Key: known.Key, Version: "2", UID: known.UID}, "default/a; default/b it is damaged; "},
		"one that is not known": {tape.Object{Key: "default/0", Version: "1"}, "default/0; default/b it is damaged; "},
	} {
		r := replayed(t, &tape.Track{Base: []tape.Object{known}, BaseVersion: "9", Records: []tape.Record{
			asked(""), {
				Kind: tape.Page, Form: tape.Identity, Version: "9", More: &tape.More{Continue: "next", Remaining: 1},
				Data: identitiesOf(test.first, tape.Object{Key: "default/b", Version: "3", Err: "it is damaged"}),
			},
			asked("next"), {
				Kind: tape.Page, Form: tape.Identity, Version: "9", More: &tape.More{},
				Data: identitiesOf(tape.Object{Key: "default/c", Version: "4"}),
			},
			{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{}}}, {Kind: tape.Begun},
		}}, ReplayOptions{})
		first, err := r.List(t.Context(), ListOptions{Limit: 2})
		got := describeItems(first.Items)
		if err != nil || got != test.want || first.Remaining != 1 || first.Continue != "next" {
			t.Errorf("%s: the first page is %q, %d are to come: %v", name, got, first.Remaining, err)
		}
		isA := func(key, _, _ string) bool { return key == test.first.Key }
		second, err := r.List(t.Context(), ListOptions{Limit: 2, Continue: "next", IsCached: isA})
		if got := describeItems(second.Items); err != nil || got != "default/c; " {
			t.Errorf("%s: the second page is %q, %v", name, got, err)
		}
		// No list was recorded here: it brings what is known, but for what is cached.
		again, err := r.List(t.Context(), ListOptions{IsCached: isA})
		if got := describeItems(again.Items); err != nil || got != "default/b it is damaged; default/c; " {
			t.Errorf("%s: the list of what is known is %q, %v", name, got, err)
		}
	}
}

// TestReplayOfDamage has tracks with objects that cannot be read.
func TestReplayOfDamage(t *testing.T) {
	bad := known
	bad.Data = []byte(`{"metadata":`)
	_, err := Replay(&tape.Track{Name: "pods.v1", Base: []tape.Object{bad}},
		func() *corev1.Pod { return new(corev1.Pod) }, ReplayOptions{})
	if err == nil || !strings.Contains(err.Error(), "object default/a of the base") {
		t.Errorf("a base with a damaged object: %v", err)
	}
	r := replayed(t, &tape.Track{Records: []tape.Record{
		{Kind: tape.List, More: &tape.More{Request: &tape.Request{}}},
		{Kind: tape.Page, Form: tape.Identity, More: &tape.More{}, Data: []byte{200}},
	}}, ReplayOptions{})
	if page, err := r.List(t.Context(), ListOptions{}); err == nil {
		t.Errorf("a damaged page is %+v", page)
	}
}

// TestReplayOfAnIdleWatch: the silence at the end of a recording is played too, and what the reader
// ends meanwhile, and after, ends with its reason.
func TestReplayOfAnIdleWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("the informer stops")
		began := time.Now()
		r := replayed(t, &tape.Track{Base: []tape.Object{known}, End: time.Minute}, ReplayOptions{})
		ctx, stop := context.WithCancelCause(t.Context())
		stream, err := r.Watch(ctx, WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-r.Done()
			if d := time.Since(began); d != time.Minute {
				t.Errorf("all has been played after %v", d)
			}
			stop(stopped)
		}()
		if events, err := stream.Next(); !errors.Is(err, context.Canceled) && !errors.Is(err, stopped) {
			t.Errorf("the watch ends with %v, %v", events, err)
		}
	})
}

// TestReplayAfterItsEnd: a reader that checks the version is answered, and one that lists all over
// again waits, as the recording does not say what comes.
func TestReplayAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := replayed(t, &tape.Track{Base: []tape.Object{known}, Records: []tape.Record{
			{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{}}}, {Kind: tape.Begun},
		}}, ReplayOptions{})
		if _, err := r.Watch(t.Context(), WatchOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		page, err := r.List(ctx, ListOptions{Limit: 1})
		if err != nil || describeItems(page.Items) != "default/a on n1; " {
			t.Errorf("a check is answered with %v, %v", page, err)
		}
		began := time.Now()
		page, err = r.List(ctx, ListOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("a list is answered with %v, %v after %v", page, err, time.Since(began))
		}
	})
}

// TestReplayIsEndedByItsReader: the answer of a list and the event of a watch are a minute away.
func TestReplayIsEndedByItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expect := func(what string, ask func(context.Context) error) {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			began := time.Now()
			if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("%s ends with %v after %v", what, err, time.Since(began))
			}
		}
		list := replayed(t, &tape.Track{Records: []tape.Record{
			{Kind: tape.List, More: &tape.More{Request: &tape.Request{}}},
			{Kind: tape.Page, At: time.Minute, Form: tape.Identity, More: &tape.More{}},
		}}, ReplayOptions{})
		expect("a list", func(ctx context.Context) error {
			_, err := list.List(ctx, ListOptions{})
			return err
		})
		watch := replayed(t, &tape.Track{Records: []tape.Record{
			{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{}}}, {Kind: tape.Begun},
			{Kind: tape.Listed, At: time.Minute, Form: tape.Identity, Data: identitiesOf(known)},
		}}, ReplayOptions{})
		expect("a watch", func(ctx context.Context) error {
			stream, err := watch.Watch(ctx, WatchOptions{})
			if err == nil {
				_, err = stream.Next()
			}
			return err
		})
	})
}

// TestReplayOfAListToAWatch: of a list that was streamed, a watch that asks for none gets what it does
// not know.
func TestReplayOfAListToAWatch(t *testing.T) {
	other := tape.Object{Key: known.Key, Version: known.Version, UID: "v"}
	for want, o := range map[string]tape.Object{"default/b; ": known, "default/a; default/b; ": other} {
		r := replayed(t, &tape.Track{Base: []tape.Object{known}, Records: []tape.Record{
			{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{SendInitialEvents: true}}}, {Kind: tape.Begun},
			{Kind: tape.Listed, Form: tape.Identity, Data: identitiesOf(o, tape.Object{Key: "default/b", Version: "2"})},
		}}, ReplayOptions{})
		stream, err := r.Watch(t.Context(), WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		events, err := stream.Next()
		var items []Item[*corev1.Pod]
		for _, e := range events {
			items = append(items, e.Item)
		}
		if got := describeItems(items); err != nil || got != want {
			t.Errorf("the watch brings %q, %v, want %q", got, err, want)
		}
	}
}
