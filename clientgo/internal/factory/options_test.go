package factory_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/source"
)

func cached(t *testing.T, informer cache.SharedIndexInformer, key string) tidings.Object {
	t.Helper()
	obj, ok, err := informer.GetStore().GetByKey(key)
	if err != nil || !ok {
		t.Fatalf("%s is not cached: %v", key, err)
	}
	return obj.(tidings.Object)
}

// annotated returns an object with annotations.
func annotated(kind, name string) *unstructured.Unstructured {
	o := object(kind, "a", name, "red")
	o.SetAnnotations(map[string]string{"note": name})
	return o
}

// TestDrop leaves fields out of the objects of all resources, and of one resource, from lists and
// watches, in a factory and in an informer without one, before any transform.
func TestDrop(t *testing.T) {
	own := map[form]string{typedForm: "spec.containers.args", unstructuredForm: "spec.parts", metadataForm: "metadata.labels"}
	eachOfOurs(t, func(t *testing.T, l library, w world) {
		var saw atomic.Int64
		s := settings{drop: []string{"metadata.annotations", "metadata.managedFields"}, dropFor: []string{own[l.form]}}
		s.transform = func(obj any) (any, error) {
			saw.Add(int64(len(obj.(metav1.Object).GetAnnotations())))
			return obj, nil
		}
		w.create(t, annotated("Widget", "listed"))
		w.create(t, annotated("Gear", "listed"))
		f := l.factory(w.clients(t), s)
		single := l.informer(w.clients(t), s, nil)
		ofGears, ofWidgets := f.ForResource(gears).Informer(), f.ForResource(widgets).Informer()
		run(t, single)
		start(t, f)
		w.create(t, annotated("Widget", "watched"))
		w.create(t, annotated("Gear", "watched"))
		synctest.Wait()
		for n, informer := range []cache.SharedIndexInformer{single, ofWidgets, ofGears} {
			h := handle(t, l, informer)
			color := map[bool]string{true: "", false: "red"}[n < 2 && l.form == metadataForm]
			h.check("initial add a/listed "+color, "initial add a/watched "+color)
			for _, key := range []string{"a/listed", "a/watched"} {
				checkDropped(t, cached(t, informer, key).(metav1.Object), n < 2)
			}
		}
		if saw.Load() != 0 {
			t.Error("the transform received fields that are left out")
		}
	})
}

// checkDropped checks the fields of a widget or of another object.
func checkDropped(t *testing.T, got metav1.Object, isWidget bool) {
	t.Helper()
	wrong := got.GetAnnotations() != nil || got.GetManagedFields() != nil
	switch got := got.(type) {
	case *unstructured.Unstructured:
		spec := got.Object["spec"].(map[string]any)
		wrong = wrong || (spec["parts"] == nil) != isWidget || spec["weight"] != 1.5
	case *corev1.Pod:
		c := got.Spec.Containers[0]
		wrong = wrong || (c.Args == nil) != isWidget || c.Image == ""
	}
	if wrong {
		t.Errorf("cached is %v", got)
	}
}

// TestDropPanics has paths that are certainly wrong.
func TestDropPanics(t *testing.T) {
	for name, tt := range map[string]struct {
		option func()
		says   []string
	}{
		"typed, not of every type":     {func() { informers.WithDrop("metadata.managedFields", "spec.containers") }, []string{"informers.WithDrop", `"spec.containers"`, "WithDropFor"}},
		"typed, unknown metadata":      {func() { informers.WithDrop("metadata.managed") }, []string{`"metadata.managed"`, "managedFields"}},
		"typed, identity":              {func() { informers.WithDrop("metadata.uid") }, []string{`"metadata.uid"`, "told apart"}},
		"typed, unknown field":         {func() { informers.WithDropFor[*appsv1.Deployment]("spec.containers") }, []string{"informers.WithDropFor[*v1.Deployment]", `"spec.containers"`, "v1.DeploymentSpec", "template"}},
		"typed, into a map":            {func() { informers.WithDropFor[*corev1.Pod]("metadata.labels.app") }, []string{"*v1.Pod", "a map"}},
		"dynamic, not of every type":   {func() { dynamicinformer.WithDrop("metadata.managedFields", "spec.x") }, []string{"dynamicinformer.WithDrop", `"spec.x"`, "WithDropFor"}},
		"dynamic, unknown":             {func() { dynamicinformer.WithDropFor(widgets, "metadata.managed") }, []string{"dynamicinformer.WithDropFor", "widgets", `"metadata.managed"`, "managedFields"}},
		"dynamic, no resource":         {func() { dynamicinformer.WithDropFor(schema.GroupVersionResource{}, "spec") }, []string{"no name"}},
		"dynamic, no path":             {func() { dynamicinformer.WithDropFor(widgets, "spec..x") }, []string{`"spec..x"`, "not a path"}},
		"metadata, not metadata":       {func() { metadatainformer.WithDrop("spec") }, []string{"metadatainformer.WithDrop", `"spec"`, "PartialObjectMetadata"}},
		"metadata, unknown":            {func() { metadatainformer.WithDropFor(widgets, "metadata.managed") }, []string{"metadatainformer.WithDropFor", "widgets", `"metadata.managed"`}},
		"metadata, without a resource": {func() { metadatainformer.WithDropFor(schema.GroupVersionResource{}, "metadata.labels") }, []string{"no name"}},
		"sharing of cache":             {func() { tidingscache.WithSharing(&cache.ListWatch{}, tidingscache.SharingOptions{AtMost: 3}) }, []string{"cache.WithSharing", "ShareStrings"}},
		"sharing of informers":         {func() { informers.WithSharing(-1) }, []string{"informers.WithSharing", "ShareStrings"}},
		"sharing of dynamicinformer":   {func() { dynamicinformer.WithSharing(3) }, []string{"dynamicinformer.WithSharing", "ShareStrings"}},
		"sharing of metadatainformer":  {func() { metadatainformer.WithSharing(3) }, []string{"metadatainformer.WithSharing", "ShareStrings"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text := fmt.Sprint(recover())
				for _, says := range tt.says {
					if !strings.Contains(text, says) {
						t.Errorf("the panic %q does not have %q", text, says)
					}
				}
			}()
			tt.option()
		})
	}
}

// labelsOf returns the address of an object's labels.
func labelsOf(obj tidings.Object) uintptr {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return reflect.ValueOf(u.Object["metadata"].(map[string]any)["labels"]).Pointer()
	}
	return reflect.ValueOf(obj.GetLabels()).Pointer()
}

func createEight(t *testing.T, w world) {
	t.Helper()
	for n := range 8 {
		w.create(t, widget("a", fmt.Sprint("w", n), "red"))
	}
}

// TestWithSharing limits the parts that objects share, with and without a transform that
// writes to them.
func TestWithSharing(t *testing.T) {
	write := func(obj any) (any, error) {
		o := obj.(metav1.Object)
		labels := o.GetLabels()
		labels["name"] = o.GetName()
		o.SetLabels(labels)
		return o, nil
	}
	for name, tt := range map[string]struct {
		s      settings
		common bool
	}{
		"default":               {settings{}, true},
		"all":                   {settings{sharing: tidings.ShareAll}, true},
		"strings":               {settings{sharing: tidings.ShareStrings}, false},
		"nothing":               {settings{sharing: tidings.ShareNothing}, false},
		"transform":             {settings{transform: write}, false},
		"transform and nothing": {settings{transform: write, sharing: tidings.ShareNothing}, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachOfOurs(t, func(t *testing.T, l library, w world) {
				createEight(t, w)
				informer := started(t, l, w, tt.s)
				a, b := cached(t, informer, "a/w6"), cached(t, informer, "a/w7")
				if (labelsOf(a) == labelsOf(b)) != tt.common {
					t.Errorf("labels in common: %t", !tt.common)
				}
				if tt.s.transform != nil && (a.GetLabels()["name"] != "w6" || b.GetLabels()["name"] != "w7") {
					t.Errorf("the writes of a transform are in several objects: %v, %v", a.GetLabels(), b.GetLabels())
				}
				health, _ := tidingscache.HealthOf(informer)
				if d := health.Decoding; tt.s.sharing == tidings.ShareNothing && d.Shared+d.After.Shared != 0 {
					t.Errorf("health has %+v", d)
				}
			})
		})
	}
}

// TestWithSharingAmong: two factories and an informer without one share if they have a table in
// common.
func TestWithSharingAmong(t *testing.T) {
	for _, table := range []*source.Table{new(source.Table), nil} {
		t.Run(fmt.Sprint("a table ", table != nil), func(t *testing.T) {
			eachOfOurs(t, func(t *testing.T, l library, w world) {
				createEight(t, w)
				s := settings{table: table}
				single := l.informer(w.clients(t), s, nil)
				run(t, single)
				for range 2 {
					informer := started(t, l, w, s)
					if shared := labelsOf(cached(t, informer, "a/w7")) == labelsOf(cached(t, single, "a/w7")); shared != (table != nil) {
						t.Errorf("the objects of two informers have labels in common: %t", shared)
					}
				}
			})
		})
	}
}

// TestSecretsShareNothing: neither Secrets nor their metadata share parts, with any options.
func TestSecretsShareNothing(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
		if l.clientGo {
			return
		}
		for n := range 8 {
			w.add(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("s", n), Labels: map[string]string{"color": "red"}}})
		}
		table := new(source.Table)
		f := l.factory(w.clients(t), settings{sharing: tidings.ShareAll, table: table})
		informer := f.ForResource(corev1.SchemeGroupVersion.WithResource("secrets")).Informer()
		start(t, f)
		if labelsOf(cached(t, informer, "a/s6")) == labelsOf(cached(t, informer, "a/s7")) {
			t.Error("two Secrets have labels in common")
		}
		health, _ := tidingscache.HealthOf(informer)
		if d := health.Decoding; d.Shared != 0 || d.After.Shared != 0 || table.Stats().Kept != 0 {
			t.Errorf("health has %+v, the table %+v", d, table.Stats())
		}
	})
}

// TestOptions has a namespace, a selection and a transform as options, for a factory and for an
// informer without one.
func TestOptions(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
		if l.clientGo {
			return
		}
		w.create(t, widget("a", "one", "red"))
		w.create(t, widget("a", "two", "blue"))
		w.create(t, widget("b", "one", "red"))
		s := settings{namespace: "a", transform: paint, tweak: func(o *metav1.ListOptions) { o.LabelSelector = "color=red" }}
		single := l.informer(w.clients(t), s, nil)
		run(t, single)
		for _, informer := range []cache.SharedIndexInformer{single, started(t, l, w, s)} {
			handle(t, l, informer).check("initial add a/one green")
		}
	})
}
