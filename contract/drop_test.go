package contract_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
			Env: []corev1.EnvVar{{Name: "A", Value: state}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready"}},
				PeriodSeconds: 3,
			},
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"app": "web"},
			Annotations: map[string]string{"state": state},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "test", Operation: "Update", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
			}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container("one"), container("two")}, NodeName: "node-1",
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: state},
	}
}

// droppedMetadata and leftOut are the paths that the tests leave out. The annotations also mark the
// end of a streamed list.
var (
	droppedMetadata = []string{"metadata.managedFields", "metadata.annotations"}
	leftOut         = append([]string{
		"spec.containers.env", "spec.containers.readinessProbe.httpGet", "status",
	}, droppedMetadata...)
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

// droppedForm is one form of the pods, whole and without fields.
type droppedForm[T tidings.Object] struct {
	whole, less *tidings.Informer[T]
	without     func(T)
}

func newDropped[T tidings.Object](
	w *world, paths []string, without func(T),
	ask func(tidings.Selection) (*tidings.Informer[T], error),
) droppedForm[T] {
	whole, err := ask(tidings.Selection{})
	w.must(err)
	less, err := ask(tidings.Selection{Drop: paths})
	w.must(err)
	return droppedForm[T]{whole, less, without}
}

// check compares the cached objects with those of the whole informer.
func (d droppedForm[T]) check(w *world, names ...string) {
	w.Helper()
	if n := d.less.Lister().Len(); n != len(names) {
		w.Errorf("%s: cached are %d objects, want %q", d.less.Name(), n, names)
	}
	for _, name := range names {
		whole, err := d.whole.Lister().Namespace("default").Get(name)
		w.must(err)
		got, err := d.less.Lister().Namespace("default").Get(name)
		w.must(err)
		want := any(whole).(runtime.Object).DeepCopyObject().(T)
		if m := any(whole).(metav1.Object); len(m.GetManagedFields()) == 0 || len(m.GetAnnotations()) == 0 {
			w.Fatalf("%s: the object has nothing to leave out: %+v", d.whole.Name(), whole)
		}
		d.without(want)
		if !reflect.DeepEqual(got, want) {
			w.Errorf("%s: cached is\n%+v, want\n%+v", d.less.Name(), got, want)
		}
	}
}

// TestDrop reads pods in every form, by a streamed list and by pages, follows them, and
// lists them again. The server may leave the managed fields out itself.
func TestDrop(t *testing.T) {
	for _, paged := range []bool{false, true} {
		for _, sharing := range []tidings.Sharing{tidings.ShareAll, tidings.ShareNothing} {
			for _, byServer := range []bool{false, true} {
				name := fmt.Sprintf("paged %v sharing %d by the server %v", paged, sharing, byServer)
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						transport := tidings.Transport{NoStreamedLists: paged, Sharing: sharing}
						w := newWorld(t, nil, tidings.FactoryOptions{
							Transport: transport, DetectMutations: true,
						}, apisim.Options{ManagedFieldsOptOut: byServer})
						defer w.end()
						dropEverywhere(w)
					})
				})
			}
		}
	}
}

// TestServerDrops counts the bytes of lists and events, with managed fields and without them. A
// server with the feature does not send fields that are left out, unless Transport turns that off.
func TestServerDrops(t *testing.T) {
	const objects, events = 5, 3
	managed := heavy("", "").ManagedFields[0].Size() // in protobuf; more in JSON
	for _, paged := range []bool{false, true} {
		read := func(drop []string, byServer, off bool) (all []tidings.Health) {
			synctest.Test(t, func(t *testing.T) {
				o := tidings.FactoryOptions{
					Transport: tidings.Transport{NoStreamedLists: paged, NoServerDrop: off},
				}
				w := newWorld(t, nil, o, apisim.Options{ManagedFieldsOptOut: byServer, Seed: 1})
				defer w.end()
				s := tidings.Selection{Drop: drop}
				_, err1 := tidings.For[*corev1.Pod](w.factory, s)
				_, err2 := tidings.Dynamic(w.factory, podResource, s)
				_, err3 := tidings.Metadata(w.factory, podResource, s)
				_, err4 := tidings.View[*phaseView, *corev1.Pod](w.factory, tidings.Selection{})
				w.must(errors.Join(err1, err2, err3, err4))
				for n := range objects {
					_, err := w.server.Create(w.Context(), heavy(fmt.Sprint("pod-", n), "1"))
					w.must(err)
				}
				w.start()
				for n := range events {
					_, err := w.server.Update(w.Context(), heavy("pod-0", fmt.Sprint("event-", n)))
					w.must(err)
				}
				synctest.Wait()
				all = w.factory.Health()
			})
			return all
		}
		for _, drop := range [][]string{nil, {"metadata.annotations"}, {"metadata.managedFields"}, droppedMetadata} {
			for _, byServer := range []bool{false, true} {
				got, whole := read(drop, byServer, false), read(drop, byServer, true)
				for i, h := range got {
					less := whole[i].Bytes - h.Bytes // may be below 0, which is a large number then
					view := i == 3                   // which does not declare them
					want := byServer && (view || slices.Contains(drop, "metadata.managedFields"))
					enough := less > uint64((objects+events)*managed) && less < whole[i].Bytes
					if want && !enough || !want && less != 0 {
						t.Errorf("paged %v, by the server %v: %s: %d bytes of %d were not sent",
							paged, byServer, h.Name, int64(less), whole[i].Bytes)
					}
				}
				if len(got) != 4 {
					t.Errorf("there are %d informers", len(got))
				}
			}
		}
	}
}

func dropEverywhere(w *world) {
	typed := newDropped(w, leftOut, podWithout,
		func(s tidings.Selection) (*tidings.Informer[*corev1.Pod], error) {
			return tidings.For[*corev1.Pod](w.factory, s)
		})
	dynamic := newDropped(w, leftOut, mapWithout,
		func(s tidings.Selection) (*tidings.Informer[*unstructured.Unstructured], error) {
			return tidings.Dynamic(w.factory, podResource, s)
		})
	partial := newDropped(w, droppedMetadata, partialWithout,
		func(s tidings.Selection) (*tidings.Informer[*metav1.PartialObjectMetadata], error) {
			return tidings.Metadata(w.factory, podResource, s)
		})
	check := func(names ...string) {
		w.Helper()
		synctest.Wait()
		typed.check(w, names...)
		dynamic.check(w, names...)
		partial.check(w, names...)
	}
	write := func(_ any, err error) {
		w.Helper()
		w.must(err)
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
	w.away(func() {
		write(w.server.Update(ctx, heavy("watched", "2")))
		write(w.server.Create(ctx, heavy("late", "1")))
		write(w.server.Delete(ctx, podResource, "default", "listed"))
	})
	w.settle()
	check("late", "watched")
	if typed.less.Health().Lists == lists {
		w.Error("nothing was listed again")
	}
	if got := typed.less.Name(); got != "pods.v1 [without metadata.annotations,"+
		"metadata.managedFields,spec.containers.env,spec.containers.readinessProbe.httpGet,status]" {
		w.Errorf("the informer is called %q", got)
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
		pods, err := tidings.For[*corev1.Pod](w.factory,
			tidings.Selection{Drop: droppedMetadata, Transform: mark})
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		pod, err := pods.Lister().Namespace("default").Get("pod")
		if err != nil || seen != 0 || pod.Annotations["by"] != "transform" ||
			pod.ManagedFields != nil {
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
	ask("metadata.managedFields", "spec.containers.env", "spec.containers.env.value",
		"metadata.managedFields")
	ask("metadata.managedFields")
	var names []string
	for _, h := range f.Health() {
		names = append(names, h.Name)
	}
	want := []string{
		"pods.v1", "pods.v1 [without metadata.managedFields,spec.containers.env]",
		"pods.v1 [without metadata.managedFields]",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the informers are\n%s, want\n%s",
			strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
}
