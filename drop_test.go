package tidings_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// heavy returns a pod with fields that are to be left out, of every shape.
func heavy(name, state string) *corev1.Pod {
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "example.com/app:v1",
			Env:            []corev1.EnvVar{{Name: "A", Value: state}, {Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready"}}, PeriodSeconds: 3},
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"state": state},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "test", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{container("one"), container("two")}, NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: state},
	}
}

// droppedMetadata and leftOut are what the tests leave out. The annotations are also what
// marks the end of a streamed list.
var (
	droppedMetadata = []string{"metadata.managedFields", "metadata.annotations"}
	leftOut         = append([]string{"spec.containers.env", "spec.containers.readinessProbe.httpGet", "status"}, droppedMetadata...)
)

// The functions below take the fields away by hand.
func withoutMetadata(m metav1.Object) {
	m.SetManagedFields(nil)
	m.SetAnnotations(nil)
}

func podWithout(pod *corev1.Pod) {
	withoutMetadata(pod)
	pod.Status = corev1.PodStatus{}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Env = nil
		if c.ReadinessProbe != nil {
			c.ReadinessProbe.HTTPGet = nil
		}
	}
}

func partialWithout(m *metav1.PartialObjectMetadata) { withoutMetadata(m) }

func mapWithout(u *unstructured.Unstructured) {
	withoutMetadata(u)
	delete(u.Object, "status")
	for _, container := range u.Object["spec"].(map[string]any)["containers"].([]any) {
		c := container.(map[string]any)
		delete(c, "env")
		if probe, ok := c["readinessProbe"].(map[string]any); ok {
			delete(probe, "httpGet")
		}
	}
}

// asked is one form of the pods, whole and without fields.
type asked[T tidings.Object] struct {
	whole, less *tidings.Informer[T]
	without     func(T)
	told        map[string]T
}

func newAsked[T tidings.Object](t *testing.T, paths []string, without func(T), ask func(tidings.Selection) (*tidings.Informer[T], error)) *asked[T] {
	t.Helper()
	a := &asked[T]{without: without, told: map[string]T{}}
	var err error
	if a.whole, err = ask(tidings.Selection{}); err != nil {
		t.Fatal(err)
	}
	if a.less, err = ask(tidings.Selection{Drop: paths}); err != nil {
		t.Fatal(err)
	}
	_, err = a.less.AddHandler(tidings.HandlerFunc[T](func(e tidings.Event[T]) {
		if e.Type == tidings.Deleted {
			delete(a.told, e.Old.GetName())
		} else {
			a.told[e.New.GetName()] = e.New
		}
	}), tidings.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// check compares what is cached, and what the handler was told last, with the objects of
// the whole informer.
func (a *asked[T]) check(t *testing.T, names ...string) {
	t.Helper()
	if a.less.Lister().Len() != len(names) || len(a.told) != len(names) {
		t.Errorf("%s: cached are %d objects, told were %d, want %q", a.less.Name(), a.less.Lister().Len(), len(a.told), names)
	}
	for _, name := range names {
		whole, err := a.whole.Lister().Namespace("default").Get(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.less.Lister().Namespace("default").Get(name)
		if err != nil {
			t.Fatal(err)
		}
		want := whole.DeepCopyObject().(T)
		if len(whole.GetManagedFields()) == 0 || len(whole.GetAnnotations()) == 0 {
			t.Fatalf("%s: the whole object has nothing to leave out: %+v", a.whole.Name(), whole)
		}
		a.without(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: cached is\n%+v, want\n%+v", a.less.Name(), got, want)
		}
		if !reflect.DeepEqual(a.told[name], want) {
			t.Errorf("%s: told was\n%+v, want\n%+v", a.less.Name(), a.told[name], want)
		}
	}
}

// TestDrop reads pods in every form, by a streamed list and by pages, follows them, and
// lists them again.
func TestDrop(t *testing.T) {
	for _, paged := range []bool{false, true} {
		for _, sharing := range []tidings.Sharing{tidings.ShareAll, tidings.ShareNothing} {
			t.Run(fmt.Sprintf("paged %v sharing %d", paged, sharing), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, nil, tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: paged, Sharing: sharing}, DetectMutations: true}, apisim.Options{})
					defer w.end()
					dropEverywhere(t, w)
				})
			})
		}
	}
}

func dropEverywhere(t *testing.T, w *world) {
	typed := newAsked(t, leftOut, podWithout, func(s tidings.Selection) (*tidings.Informer[*corev1.Pod], error) {
		return tidings.For[*corev1.Pod](w.factory, s)
	})
	dynamic := newAsked(t, leftOut, mapWithout, func(s tidings.Selection) (*tidings.Informer[*unstructured.Unstructured], error) {
		return tidings.Dynamic(w.factory, podResource, s)
	})
	partial := newAsked(t, droppedMetadata, partialWithout, func(s tidings.Selection) (*tidings.Informer[*metav1.PartialObjectMetadata], error) {
		return tidings.Metadata(w.factory, podResource, s)
	})
	check := func(names ...string) {
		t.Helper()
		synctest.Wait()
		typed.check(t, names...)
		dynamic.check(t, names...)
		partial.check(t, names...)
	}
	write := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	write(w.server.Create(ctx, heavy("listed", "1")))
	write(w.server.Create(ctx, heavy("removed", "1")))
	w.start()
	check("listed", "removed")
	write(w.server.Create(ctx, heavy("watched", "1")))
	write(w.server.Update(ctx, heavy("listed", "2")))
	check("listed", "removed", "watched")
	write(w.server.Delete(ctx, podResource, "default", "removed"))
	check("listed", "watched")

	lists := typed.less.Health().Lists
	w.gate.set(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	w.server.CutConnections()
	write(w.server.Update(ctx, heavy("watched", "2")))
	write(w.server.Create(ctx, heavy("late", "1")))
	write(w.server.Delete(ctx, podResource, "default", "listed"))
	w.server.Compact()
	w.gate.set(nil)
	w.settle()
	check("late", "watched")
	if typed.less.Health().Lists == lists {
		t.Error("nothing was listed again")
	}
	if got := typed.less.Health().Name; got != "pods.v1 [without metadata.annotations,metadata.managedFields,spec.containers.env,spec.containers.readinessProbe.httpGet,status]" {
		t.Errorf("the informer is called %q", got)
	}
}

// TestDropAndTransform has a transform see the objects without the fields.
func TestDropAndTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		if _, err := w.server.Create(context.Background(), heavy("pod", "1")); err != nil {
			t.Fatal(err)
		}
		seen := 0
		mark := tidings.NewTransform(func(pod *corev1.Pod) (*corev1.Pod, error) {
			seen += len(pod.ManagedFields) + len(pod.Annotations)
			pod.Annotations = map[string]string{"by": "transform"}
			return pod, nil
		})
		pods, err := tidings.For[*corev1.Pod](w.factory, tidings.Selection{Drop: droppedMetadata, Transform: mark})
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		pod, err := pods.Lister().Namespace("default").Get("pod")
		if err != nil || seen != 0 || pod.Annotations["by"] != "transform" || pod.ManagedFields != nil {
			t.Errorf("the transform saw %d dropped values, cached is %+v, %v", seen, pod, err)
		}
	})
}

// TestDropIsPartOfWhatIsShared asks for the same and for other paths.
func TestDropIsPartOfWhatIsShared(t *testing.T) {
	f := offline(t, tidings.FactoryOptions{})
	ask := func(paths ...string) {
		t.Helper()
		if _, err := tidings.For[*corev1.Pod](f, tidings.Selection{Drop: paths}); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	ask([]string{}...)
	ask("spec.containers.env", "metadata.managedFields")
	ask("metadata.managedFields", "spec.containers.env", "spec.containers.env.value", "metadata.managedFields")
	ask("metadata.managedFields")
	var names []string
	for _, h := range f.Health() {
		names = append(names, h.Name)
	}
	want := []string{"pods.v1", "pods.v1 [without metadata.managedFields,spec.containers.env]", "pods.v1 [without metadata.managedFields]"}
	if !slices.Equal(names, want) {
		t.Errorf("the informers are\n%s, want\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
}
