package factory_test

import (
	"bytes"
	"log/slog"
	"maps"
	"math"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

// TestRecorder records an informer of a factory, and replays the recording to a native informer,
// which caches the same objects. Frames are recorded as they came, decoded objects are encoded.
func TestRecorder(t *testing.T) {
	eachOfOurs(t, func(t *testing.T, l library, w world) {
		recorder := newRecorder(t)
		w.create(t, widget("a", "one", "red"))
		w.create(t, widget("b", "hidden", "red"))
		informer := started(t, l, w, settings{namespace: "a", recorder: recorder})
		w.create(t, widget("a", "two", "red"))
		synctest.Wait()
		w.update(t, widget("a", "two", "blue"))
		synctest.Wait()
		w.create(t, widget("a", "three", "red"))
		synctest.Wait()
		w.remove(t, "a", "three")
		synctest.Wait()

		recording := readBack(t, recorder)
		if len(recording.Tracks) != 1 {
			t.Fatalf("the tracks are %v", recording.Tracks)
		}
		track := recording.Tracks[0]
		resource := widgets.Resource
		if l.form == typedForm {
			resource = twin(widgets).Resource
		}
		if track.Resource != resource || track.Namespace != "a" {
			t.Errorf("the track is of %q in %q", track.Resource, track.Namespace)
		}
		events := 0
		for _, r := range track.Records {
			if r.Kind != tape.Event || r.Type == uint8(source.Bookmark) || r.Type == uint8(source.InitialEventsEnd) {
				continue
			}
			events++
			if (r.Form == tape.Encoded) == l.own || r.Form == tape.Identity || r.LeftOut {
				t.Errorf("an event of %s has the form %v", r.Key, r.Form)
			}
		}
		if events != 4 {
			t.Errorf("%d events are recorded, want 4", events)
		}
		want := colours(informer.GetStore())
		want["a/one"] = "" // the recording has it as an identity
		if got := played(t, l, track); !maps.Equal(got, want) {
			t.Errorf("the replay caches %v, want %v", got, want)
		}
	})
}

// TestRecorderOfSecrets records informers of Secrets: the recording has only identities.
func TestRecorderOfSecrets(t *testing.T) {
	eachOfOurs(t, func(t *testing.T, l library, w world) {
		server, ok := w.(*httpWorld)
		if !ok {
			return // fakes of this test have no Secrets of all three forms
		}
		recorder := newRecorder(t)
		f := l.factory(w.clients(t), settings{namespace: "a", recorder: recorder})
		secrets := newWidgets // Secrets are their typed twin
		if l.form != typedForm {
			secrets = corev1.SchemeGroupVersion.WithResource("secrets")
		}
		informer := f.ForResource(secrets).Informer()
		start(t, f)
		const planted = "planted"
		server.add(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "a", Name: "one", Annotations: map[string]string{"copy": planted},
			},
			StringData: map[string]string{"password": planted},
		})
		synctest.Wait()
		if n := len(informer.GetStore().List()); n != 1 {
			t.Fatalf("%d Secrets are cached", n)
		}
		named := false
		for _, track := range readBack(t, recorder).Tracks {
			for _, r := range track.Records {
				named = named || r.Key == "a/one"
				if bytes.Contains(r.Data, []byte(planted)) || r.Form != 0 && r.Form != tape.Identity {
					t.Errorf("a record has the form %v and the bytes %q", r.Form, r.Data)
				}
			}
		}
		if !named {
			t.Error("the Secret is not in the recording: the test sees nothing")
		}
	})
}

func newRecorder(t *testing.T) *flight.Recorder {
	t.Helper()
	recorder, err := flight.New(flight.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return recorder
}

// readBack writes the recording of a recorder to a file, and returns the recording that is read
// from it.
func readBack(t *testing.T, recorder *flight.Recorder) *flight.Recording {
	t.Helper()
	var file bytes.Buffer
	must(t, recorder.Dump(&file, "a test"))
	recording, err := flight.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	must(t, err)
	return recording
}

// colours returns the label of each cached object.
func colours(store cache.Store) map[string]string {
	labels := map[string]string{}
	for _, obj := range store.List() {
		o := obj.(metav1.Object)
		labels[source.Key(o.GetNamespace(), o.GetName())] = o.GetLabels()["color"]
	}
	return labels
}

// played returns the labels of the objects that an informer of a replay caches.
func played(t *testing.T, l library, track *flight.Track) map[string]string {
	t.Helper()
	switch l.form {
	case typedForm:
		return play(t, track, func() *corev1.Pod { return new(corev1.Pod) })
	case unstructuredForm:
		return play(t, track, func() *unstructured.Unstructured { return new(unstructured.Unstructured) })
	default:
		return play(t, track, func() *metav1.PartialObjectMetadata { return new(metav1.PartialObjectMetadata) })
	}
}

func play[T tidings.Object](t *testing.T, track *flight.Track, empty func() T) map[string]string {
	t.Helper()
	replayed, err := source.Replay(track, empty, source.ReplayOptions{Speed: math.Inf(1)})
	must(t, err)
	informer, err := tidings.NewInformer(replayed, tidings.InformerOptions[T]{
		Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	go informer.Run(t.Context()) //nolint:errcheck // it ends with the test
	<-replayed.Done()
	synctest.Wait()
	labels := map[string]string{}
	for key, o := range informer.Lister().All() {
		labels[key] = o.GetLabels()["color"]
	}
	return labels
}
