package apisim

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// TestOnWrite compares the versions of a server's changes with those of the objects.
func TestOnWrite(t *testing.T) {
	var got, want []string
	server := Options{OnWrite: func(gvr schema.GroupVersionResource, version string) {
		if gvr == configMaps {
			got = append(got, version)
		}
	}}.Start(t)
	note := func(obj *corev1.ConfigMap, err error) *corev1.ConfigMap {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, obj.ResourceVersion)
		return obj
	}
	created := note(Create(t.Context(), server, configMap("a")))
	created.Data = map[string]string{"a": "b"}
	updated := note(Update(t.Context(), server, created))
	if _, err := Update(t.Context(), server, updated); err != nil { // it changes nothing
		t.Fatal(err)
	}
	last, err := server.Delete(t.Context(), configMaps, "default", "a")
	if err != nil {
		t.Fatal(err)
	}
	note(last.(*corev1.ConfigMap), nil)
	if !slices.Equal(got, want) {
		t.Errorf("the versions are %q, want %q", got, want)
	}
}

// TestServerKeepsItsObjects changes every object that a call takes or returns.
func TestServerKeepsItsObjects(t *testing.T) {
	for name, test := range map[string]struct {
		given object
		gvr   schema.GroupVersionResource
	}{
		"Go type": {configMap("a"), configMaps},
		"map":     {widget("v1", "a"), widgetsV1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				b.define()
				keeps := func(call string, objects ...runtime.Object) {
					b.Helper()
					for _, obj := range objects {
						obj.(object).SetLabels(map[string]string{"changed": "true"})
					}
					r, err := b.server.find(test.gvr)
					b.must(err)
					stored, err := b.server.get(r, "default", "a")
					if b.must(err); len(stored.GetLabels()) > 0 {
						b.Errorf("%s shares an object with the server: %v", call, stored)
					}
				}
				given := clone(test.given)
				given.SetFinalizers([]string{"example.com/one"})
				again := clone(given)
				again.SetAnnotations(map[string]string{"n": "1"})
				made, err := b.server.Create(b.ctx, given)
				b.must(err)
				keeps("Create", given, made)
				updated, err := b.server.Update(b.ctx, again)
				b.must(err)
				same, err := b.server.Update(b.ctx, clone(updated.(object)))
				b.must(err)
				keeps("Update", again, updated, same)
				got, err := b.server.Get(b.ctx, test.gvr, "default", "a")
				b.must(err)
				keeps("Get", got)
				listed, _, err := b.server.List(b.ctx, test.gvr, "")
				b.must(err)
				keeps("List", listed...)
				marked, err := b.server.Delete(b.ctx, test.gvr, "default", "a")
				b.must(err)
				keeps("Delete", marked)
			})
		})
	}
}

// TestReadsDoNotWrite reads an object in each encoding: a stored object is read by several
// goroutines at a time.
func TestReadsDoNotWrite(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		limit := apiresource.NewQuantity(5, apiresource.DecimalSI)
		given := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		given.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: limit},
		}}}
		_, err := Create(b.ctx, b.server, given)
		b.must(err)
		stored, err := Get[*corev1.Pod](b.ctx, b.server, "default", "a")
		b.must(err)
		for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			typed, err := kubernetes.NewForConfig(config(b.server, encoding))
			b.must(err)
			b.done(typed.CoreV1().Pods("default").List(b.ctx, metav1.ListOptions{}))
		}
		read, err := Get[*corev1.Pod](b.ctx, b.server, "default", "a")
		b.must(err)
		if !reflect.DeepEqual(read, stored) {
			b.Errorf("the stored object was written to:\n got %#v\nwant %#v", read, stored)
		}
	})
}

// gadget is a Go type that client-go does not know.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	copied := *g
	g.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func TestTypedCalls(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		made, err := Create(b.ctx, b.server, d)
		b.must(err)
		made.Spec.Replicas = new(int32(3))
		updated, err := Update(b.ctx, b.server, made)
		if b.must(err); updated.Generation != 2 {
			b.Errorf("updated %+v", updated)
		}
		got, err := Get[*appsv1.Deployment](b.ctx, b.server, "default", "web")
		if b.must(err); *got.Spec.Replicas != 3 {
			b.Errorf("got %+v", got)
		}
		if none, err := Get[*corev1.Node](b.ctx, b.server, "", "n"); !apierrors.IsNotFound(err) || none != nil {
			b.Errorf("a missing object: %v, %v", none, err)
		}
		if none, err := Create(b.ctx, b.server, d); !apierrors.IsAlreadyExists(err) || none != nil {
			b.Errorf("an object that exists: %v, %v", none, err)
		}
		last, err := Delete(b.ctx, b.server, d)
		if b.must(err); *last.Spec.Replicas != 3 || last.UID != made.UID {
			b.Errorf("deleted %+v", last)
		}
		if none, err := Delete(b.ctx, b.server, d); !apierrors.IsNotFound(err) || none != nil {
			b.Errorf("an object that is gone: %v, %v", none, err)
		}
	})
}

// TestCreateWithoutItsNamespace: the error is that of a client's request, and has the remedy.
func TestCreateWithoutItsNamespace(t *testing.T) {
	server := Start(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	_, err := Create(t.Context(), server, pod)
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(),
		`namespaces "shop" not found: create the Namespace first, or add the object with Load`) {
		t.Errorf("the error is %v", err)
	}
}

func TestTypedCallsOfOtherTypes(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.must(b.server.Register(Resource{Group: "example.com", Version: "v1", Name: "gadgets", Kind: "Gadget", Namespaced: true}))
		g := &gadget{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Gadget"}}
		g.Namespace, g.Name, g.Spec.Size = "default", "a", 3
		made, err := Create(b.ctx, b.server, g)
		if b.must(err); made.Spec.Size != 3 || made.UID == "" || made.Kind != "Gadget" {
			b.Errorf("created %+v", made)
		}
		if last, err := Delete(b.ctx, b.server, g); err != nil || last.Spec.Size != 3 {
			b.Errorf("deleted %+v, %v", last, err)
		}
		pod := b.fromYAML("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}}")
		asMap, err := Create(b.ctx, b.server, pod)
		if b.must(err); asMap.GetKind() != "Pod" || asMap.GetUID() == "" {
			b.Errorf("created %v", asMap)
		}
		const says = "apisim: Get knows no resource of *apisim.gadget: use Server.Get, which takes the resource"
		if _, err := Get[*gadget](b.ctx, b.server, "default", "a"); err == nil || err.Error() != says {
			b.Errorf("%v, want %s", err, says)
		}
		for _, err := range []error{
			second(Get[*unstructured.Unstructured](b.ctx, b.server, "default", "a")),
			second(Get[runtime.Object](b.ctx, b.server, "default", "a")),
		} {
			if err == nil {
				b.Error("an object of a type without a resource was returned")
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
