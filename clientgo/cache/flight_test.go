package cache

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

// objectsOf lists objects of any type, and watches.
type objectsOf struct {
	listed []runtime.Object
	events *watch.FakeWatcher
}

func (o objectsOf) List(metav1.ListOptions) (runtime.Object, error) {
	list := &corev1.List{ListMeta: metav1.ListMeta{ResourceVersion: "50"}}
	for _, obj := range o.listed {
		list.Items = append(list.Items, runtime.RawExtension{Object: obj})
	}
	return list, nil
}

func (o objectsOf) Watch(metav1.ListOptions) (watch.Interface, error) { return o.events, nil }

// IsWatchListSemanticsUnSupported makes the informer read lists without streaming.
func (objectsOf) IsWatchListSemanticsUnSupported() bool { return true }

func newFlightRecorder(t *testing.T, o flight.Options) *flight.Recorder {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	recorder, err := flight.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return recorder
}

// startRecorded runs an informer until the end of the test.
func startRecorded(t *testing.T, informer SharedIndexInformer) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); informer.Run(stop) }()
	t.Cleanup(func() { close(stop); <-done })
	synctest.Wait()
}

// readBack writes the recording of a recorder to a file, and returns the recording that is read
// from it.
func readBack(t *testing.T, recorder *flight.Recorder) *flight.Recording {
	t.Helper()
	var file bytes.Buffer
	if err := recorder.Dump(&file, "a test"); err != nil {
		t.Fatal(err)
	}
	recording, err := flight.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return recording
}

// TestRecordedListerWatcher records a ListerWatcher of a program, reads the recording and replays
// it. The objects are encoded when it is written, and their records show that. They are encoded
// as the ListerWatcher returned them, before any transform.
func TestRecordedListerWatcher(t *testing.T) {
	for name, lwWith := range map[string]func(ListerWatcher, *flight.Recorder) ListerWatcher{
		"alone": func(lw ListerWatcher, r *flight.Recorder) ListerWatcher { return WithRecorder(lw, r) },
		"outside": func(lw ListerWatcher, r *flight.Recorder) ListerWatcher {
			return WithRecorder(WithSharing(lw, SharingOptions{AtMost: tidings.ShareNothing}), r)
		},
		"inside": func(lw ListerWatcher, r *flight.Recorder) ListerWatcher {
			return WithSharing(WithRecorder(lw, r), SharingOptions{AtMost: tidings.ShareNothing})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testRecordedListerWatcher(t, lwWith) })
		})
	}
}

func testRecordedListerWatcher(t *testing.T,
	lwWith func(ListerWatcher, *flight.Recorder) ListerWatcher) {
	lw := objectsOf{events: watch.NewFakeWithChanSize(10, false)}
	for n := range 3 {
		lw.listed = append(lw.listed, sharedPod(n))
	}
	recorder := newFlightRecorder(t, flight.Options{})
	informer := NewSharedIndexInformer(lwWith(lw, recorder), &corev1.Pod{}, 0, Indexers{})
	err := informer.SetTransform(func(obj any) (any, error) {
		obj.(*corev1.Pod).Labels = map[string]string{"by": "transform"}
		return obj, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	startRecorded(t, informer)
	moved := func(n, version int) *corev1.Pod {
		p := sharedPod(n)
		p.ResourceVersion, p.Spec.NodeName = fmt.Sprint(version), fmt.Sprint("node-", version)
		return p
	}
	deleted := sharedPod(1)
	deleted.ResourceVersion = "53"
	lw.events.Modify(moved(0, 51))
	lw.events.Add(moved(60, 52))
	synctest.Wait()
	time.Sleep(time.Minute)
	lw.events.Delete(deleted)
	synctest.Wait()

	track, err := readBack(t, recorder).Track("*v1.Pod")
	if err != nil {
		t.Fatal(err)
	}
	if track.Kind != "Pod" || track.Version != "v1" {
		t.Errorf("the track is of %+v", track.Collection)
	}
	var events []string
	for _, r := range track.Records {
		if r.Kind == tape.Event {
			events = append(events, fmt.Sprint(tape.EventTypes[r.Type], " ", r.Key, " ", r.Form))
		}
	}
	want := []string{
		"MODIFIED default/web-0 encoded", "ADDED default/web-60 encoded",
		"DELETED default/web-1 encoded",
	}
	if !slices.Equal(events, want) {
		t.Errorf("the events are %q, want %q", events, want)
	}

	played, err := source.Replay(track, func() *corev1.Pod { return new(corev1.Pod) },
		source.ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := tidings.NewInformer(played, tidings.InformerOptions[*corev1.Pod]{
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	go replayed.Run(t.Context()) //nolint:errcheck // it ends with the test
	<-played.Done()
	synctest.Wait()
	if n, keys := replayed.Lister().Len(), informer.GetStore().ListKeys(); n != 3 || len(keys) != 3 {
		t.Errorf("%d objects after the replay, and %v cached", n, keys)
	}
	for key, want := range map[string]*corev1.Pod{
		"default/web-0": moved(0, 51), "default/web-60": moved(60, 52),
	} {
		got, err := replayed.Lister().Get(key)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("after the replay %s is %v, %v", key, got, err)
		}
	}
	if h := replayed.Health(); played.Unplanned() > 0 || h.Dropped > 0 || h.Version != "53" {
		t.Errorf("%d unplanned requests, health %+v", played.Unplanned(), h)
	}
}

// slimSecret may have been decoded from a Secret.
type slimSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string][]byte `json:"data"`
}

func (s *slimSecret) DeepCopyObject() runtime.Object {
	copied := *s
	return &copied
}

// TestRecordedSecretsOfListerWatcher records Secrets, and objects that may be Secrets, in several
// forms: a recording has only their identities.
func TestRecordedSecretsOfListerWatcher(t *testing.T) {
	const planted = "planted"
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: "s", ResourceVersion: "51",
		Annotations: map[string]string{"copy": planted},
	}
	data := map[string][]byte{"password": []byte(planted)}
	secret := &corev1.Secret{ObjectMeta: meta, Data: data}
	for name, tt := range map[string]struct{ example, object runtime.Object }{
		"typed":        {&corev1.Secret{}, secret},
		"of any type":  {nil, secret},
		"a type of it": {&slimSecret{}, &slimSecret{ObjectMeta: meta, Data: data}},
		"metadata":     {&metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{ObjectMeta: meta}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lw := objectsOf{events: watch.NewFakeWithChanSize(10, false)}
				recorder := newFlightRecorder(t, flight.Options{})
				informer := NewSharedIndexInformer(WithRecorder(lw, recorder), tt.example, 0, Indexers{})
				startRecorded(t, informer)
				lw.events.Add(tt.object)
				synctest.Wait()
				if n := len(informer.GetStore().List()); n != 1 {
					t.Fatalf("%d objects are cached", n)
				}
				events := 0
				for _, r := range readBack(t, recorder).Tracks[0].Records {
					if bytes.Contains(r.Data, []byte(planted)) {
						t.Errorf("the recording has %q", r.Data)
					}
					if r.Kind == tape.Event {
						events++
						if r.Form != tape.Identity {
							t.Errorf("the event has the form %v", r.Form)
						}
					}
				}
				if events != 1 {
					t.Errorf("%d events", events)
				}
			})
		})
	}
}

// TestRecordingOfSurvivedPanic: a handler of an informer panics, and the process goes on. A
// recording is written.
func TestRecordingOfSurvivedPanic(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers }()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		lw := objectsOf{events: watch.NewFakeWithChanSize(10, false)}
		recorder := newFlightRecorder(t, flight.Options{Dir: dir})
		informer := NewSharedIndexInformer(WithRecorder(lw, recorder), &corev1.Pod{}, 0, Indexers{})
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { panic("a handler") },
		})
		if err != nil {
			t.Fatal(err)
		}
		startRecorded(t, informer)
		lw.events.Add(sharedPod(60))
		synctest.Wait()
		files, err := filepath.Glob(filepath.Join(dir, "*.zip"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the recordings are %v, %v", files, err)
		}
		recording, err := flight.Open(files[0])
		if err != nil || recording.Reason != "panic of informer *v1.Pod" {
			t.Errorf("the reason is %q, %v", recording.Reason, err)
		}
	})
}
