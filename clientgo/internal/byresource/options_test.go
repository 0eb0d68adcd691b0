package byresource_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/source"
)

// chosen are options of either package.
type chosen struct {
	namespace string
	tweak     func(*metav1.ListOptions)
	transform cache.TransformFunc
	sharing   tidings.Sharing
	among     *source.Table
	drop      []string
	dropFor   map[schema.GroupVersionResource][]string
}

func (c chosen) forDynamic() []dynamicinformer.SharedInformerOption {
	options := []dynamicinformer.SharedInformerOption{
		dynamicinformer.WithNamespace(c.namespace), dynamicinformer.WithTweakListOptions(c.tweak), dynamicinformer.WithTransform(c.transform),
		dynamicinformer.WithSharing(c.sharing), dynamicinformer.WithSharingAmong(c.among), dynamicinformer.WithDrop(c.drop...),
	}
	for gvr, paths := range c.dropFor {
		options = append(options, dynamicinformer.WithDropFor(gvr, paths...))
	}
	return options
}

func (c chosen) forMetadata() []metadatainformer.SharedInformerOption {
	options := []metadatainformer.SharedInformerOption{
		metadatainformer.WithNamespace(c.namespace), metadatainformer.WithTweakListOptions(c.tweak), metadatainformer.WithTransform(c.transform),
		metadatainformer.WithSharing(c.sharing), metadatainformer.WithSharingAmong(c.among), metadatainformer.WithDrop(c.drop...),
	}
	for gvr, paths := range c.dropFor {
		options = append(options, metadatainformer.WithDropFor(gvr, paths...))
	}
	return options
}

// reader is a package of ours with a client of one sort.
type reader struct {
	name string
	form form
	own  bool // with our source
	// factory makes one with options, and informer an informer of its own.
	factory  func(c clients, o chosen) factory
	informer func(c clients, gvr schema.GroupVersionResource, o chosen) informers.GenericInformer
}

var readers = []reader{
	{
		name: "dynamic",
		factory: func(c clients, o chosen) factory {
			return dynamicinformer.NewDynamicSharedInformerFactoryWithOptions(c.dynamic, 0, o.forDynamic()...)
		},
		informer: func(c clients, gvr schema.GroupVersionResource, o chosen) informers.GenericInformer {
			return dynamicinformer.NewDynamicInformerWithOptions(c.dynamic, gvr, 0, cache.Indexers{}, o.forDynamic()...)
		},
	},
	{
		name: "metadata", form: metadataForm,
		factory: func(c clients, o chosen) factory {
			return metadatainformer.NewSharedInformerFactoryWithOptions(c.metadata, 0, o.forMetadata()...)
		},
		informer: func(c clients, gvr schema.GroupVersionResource, o chosen) informers.GenericInformer {
			return metadatainformer.NewMetadataInformerWithOptions(c.metadata, gvr, 0, cache.Indexers{}, o.forMetadata()...)
		},
	},
	{
		name: "dynamic with our source", own: true,
		factory: func(c clients, o chosen) factory {
			return dynamicinformer.NewDynamicSharedInformerFactoryWithOptions(c.ownDynamic, 0, o.forDynamic()...)
		},
		informer: func(c clients, gvr schema.GroupVersionResource, o chosen) informers.GenericInformer {
			return dynamicinformer.NewDynamicInformerWithOptions(c.ownDynamic, gvr, 0, cache.Indexers{}, o.forDynamic()...)
		},
	},
	{
		name: "metadata with our source", form: metadataForm, own: true,
		factory: func(c clients, o chosen) factory {
			return metadatainformer.NewSharedInformerFactoryWithOptions(c.ownMetadata, 0, o.forMetadata()...)
		},
		informer: func(c clients, gvr schema.GroupVersionResource, o chosen) informers.GenericInformer {
			return metadatainformer.NewMetadataInformerWithOptions(c.ownMetadata, gvr, 0, cache.Indexers{}, o.forMetadata()...)
		},
	},
}

// eachReader runs a test with all of them, over HTTP and, where they can, with fakes.
func eachReader(t *testing.T, run func(t *testing.T, r reader, w world)) {
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) {
			t.Run("HTTP", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { run(t, r, newServer(t)) })
			})
			if !r.own {
				t.Run("fake", func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { run(t, r, newFakes(t)) })
				})
			}
		})
	}
}

func cached(t *testing.T, informer cache.SharedIndexInformer, key string) tidings.Object {
	t.Helper()
	obj, ok, err := informer.GetStore().GetByKey(key)
	if err != nil || !ok {
		t.Fatalf("%s is not cached: %v", key, err)
	}
	return obj.(tidings.Object)
}

// noted is a widget with annotations and a spec, and one of the gears.
func noted(kind, name string) *unstructured.Unstructured {
	o := object(kind, "a", name, "red")
	o.SetAnnotations(map[string]string{"note": name})
	return o
}

// TestDrop leaves fields out of the objects of all resources, and of those of one, listed
// and watched, in a factory and in an informer of its own.
func TestDrop(t *testing.T) {
	eachReader(t, func(t *testing.T, r reader, w world) {
		var saw atomic.Int64
		o := chosen{drop: []string{"metadata.annotations"}, transform: func(obj any) (any, error) {
			saw.Add(int64(len(obj.(tidings.Object).GetAnnotations())))
			return obj, nil
		}}
		own := "metadata.labels"
		if r.form == unstructuredForm {
			own = "spec.parts"
		}
		o.dropFor = map[schema.GroupVersionResource][]string{widgets: {own}}
		if _, fake := w.(*fakeWorld); !fake { // whose metadata has no annotations
			o.drop = append(o.drop, "metadata.managedFields")
		}
		w.create(t, widgets, noted("Widget", "listed"))
		w.create(t, gears, noted("Gear", "listed"))
		f := r.factory(w.clients(t), o)
		single := r.informer(w.clients(t), widgets, o).Informer()
		of := map[schema.GroupVersionResource][]cache.SharedIndexInformer{
			widgets: {f.ForResource(widgets).Informer(), single}, gears: {f.ForResource(gears).Informer()},
		}
		run(t, single)
		start(t, f)
		w.create(t, widgets, noted("Widget", "watched"))
		w.create(t, gears, noted("Gear", "watched"))
		synctest.Wait()
		for gvr, informers := range of {
			for _, informer := range informers {
				for _, key := range []string{"a/listed", "a/watched"} {
					checkDropped(t, cached(t, informer, key), gvr == widgets)
				}
			}
		}
		if saw.Load() != 0 {
			t.Error("the transform saw what is left out")
		}
	})
}

func checkDropped(t *testing.T, got tidings.Object, isWidget bool) {
	t.Helper()
	if got.GetAnnotations() != nil {
		t.Errorf("cached is %v, with annotations", got)
	}
	u, ok := got.(*unstructured.Unstructured)
	if !ok {
		if (got.GetLabels() == nil) != isWidget {
			t.Errorf("cached is %v, whose labels are %v", got, got.GetLabels())
		}
		return
	}
	parts, has, err := unstructured.NestedSlice(u.Object, "spec", "parts")
	if err != nil || has == isWidget || !isWidget && len(parts) != 2 {
		t.Errorf("cached is %v: parts %v (%v)", got, parts, err)
	}
	if u.Object["spec"].(map[string]any)["weight"] != 1.5 || got.GetLabels()["color"] != "red" {
		t.Errorf("cached is %v, which lacks what is not left out", got)
	}
}

// TestDropPanics: paths that are wrong for certain.
func TestDropPanics(t *testing.T) {
	for name, tt := range map[string]struct {
		option func()
		says   []string
	}{
		"not of every resource":    {func() { dynamicinformer.WithDrop("metadata.managedFields", "spec.x") }, []string{"dynamicinformer.WithDrop", `"spec.x"`, "WithDropFor"}},
		"dynamic, unknown":         {func() { dynamicinformer.WithDropFor(widgets, "metadata.managed") }, []string{"dynamicinformer.WithDropFor", "widgets", `"metadata.managed"`, "managedFields"}},
		"dynamic, identity":        {func() { dynamicinformer.WithDrop("metadata.uid") }, []string{`"metadata.uid"`, "told apart"}},
		"dynamic, no resource":     {func() { dynamicinformer.WithDropFor(schema.GroupVersionResource{}, "spec") }, []string{"no name"}},
		"dynamic, no path":         {func() { dynamicinformer.WithDropFor(widgets, "spec..x") }, []string{`"spec..x"`, "not a path"}},
		"metadata, not metadata":   {func() { metadatainformer.WithDrop("spec") }, []string{"metadatainformer.WithDrop", `"spec"`, "PartialObjectMetadata"}},
		"metadata, unknown":        {func() { metadatainformer.WithDropFor(widgets, "metadata.managed") }, []string{"metadatainformer.WithDropFor", "widgets", `"metadata.managed"`}},
		"metadata, identity":       {func() { metadatainformer.WithDrop("metadata.uid") }, []string{"told apart"}},
		"metadata, without a name": {func() { metadatainformer.WithDropFor(schema.GroupVersionResource{}, "metadata.labels") }, []string{"no name"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text := fmt.Sprint(recover())
				for _, says := range tt.says {
					if !strings.Contains(text, says) {
						t.Errorf("the panic %q does not say %q", text, says)
					}
				}
			}()
			tt.option()
		})
	}
}

// labelsOf is the identity of an object's labels in memory.
func labelsOf(t *testing.T, obj tidings.Object) uintptr {
	t.Helper()
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		return reflect.ValueOf(o.Object["metadata"].(map[string]any)["labels"]).Pointer()
	case *metav1.PartialObjectMetadata:
		return reflect.ValueOf(o.Labels).Pointer()
	}
	t.Fatalf("got a %T", obj)
	return 0
}

// TestWithSharing limits what objects have in common, with and without a transform that
// writes to them.
func TestWithSharing(t *testing.T) {
	write := func(obj any) (any, error) {
		o := obj.(tidings.Object)
		labels := o.GetLabels()
		labels["name"] = o.GetName()
		o.SetLabels(labels)
		return o, nil
	}
	for name, tt := range map[string]struct {
		o      chosen
		common bool
	}{
		"default":   {chosen{}, true},
		"all":       {chosen{sharing: tidings.ShareAll}, true},
		"strings":   {chosen{sharing: tidings.ShareStrings}, false},
		"nothing":   {chosen{sharing: tidings.ShareNothing}, false},
		"transform": {chosen{transform: write}, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachReader(t, func(t *testing.T, r reader, w world) {
				for n := range 8 {
					w.create(t, widgets, widget("a", fmt.Sprint("w", n), "red"))
				}
				f := r.factory(w.clients(t), tt.o)
				informer := f.ForResource(widgets).Informer()
				start(t, f)
				a, b := cached(t, informer, "a/w6"), cached(t, informer, "a/w7")
				if (labelsOf(t, a) == labelsOf(t, b)) != tt.common {
					t.Errorf("labels in common: %t", !tt.common)
				}
				if tt.o.transform != nil && (a.GetLabels()["name"] != "w6" || b.GetLabels()["name"] != "w7") {
					t.Errorf("a transform's writes are in several objects: %v, %v", a.GetLabels(), b.GetLabels())
				}
			})
		})
	}
}

// TestWithSharingAmong has two factories share, and two that have each a table of its own.
func TestWithSharingAmong(t *testing.T) {
	for _, table := range []*source.Table{new(source.Table), nil} {
		t.Run(fmt.Sprint("a table ", table != nil), func(t *testing.T) {
			eachReader(t, func(t *testing.T, r reader, w world) {
				for n := range 8 {
					w.create(t, widgets, widget("a", fmt.Sprint("w", n), "red"))
				}
				var labels []uintptr
				for range 2 {
					f := r.factory(w.clients(t), chosen{among: table})
					informer := f.ForResource(widgets).Informer()
					start(t, f)
					labels = append(labels, labelsOf(t, cached(t, informer, "a/w7")))
				}
				if (labels[0] == labels[1]) != (table != nil) {
					t.Errorf("the objects of two factories have labels in common: %t", labels[0] == labels[1])
				}
			})
		})
	}
}

// TestSecretsShareNothing: neither they nor their metadata, whatever is set.
func TestSecretsShareNothing(t *testing.T) {
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServer(t)
				for n := range 8 {
					secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("s", n), Labels: map[string]string{"color": "red"}}}
					if _, err := w.server.Create(t.Context(), secret); err != nil {
						t.Fatal(err)
					}
				}
				table := new(source.Table)
				f := r.factory(w.clients(t), chosen{sharing: tidings.ShareAll, among: table})
				informer := f.ForResource(secrets).Informer()
				start(t, f)
				if labelsOf(t, cached(t, informer, "a/s6")) == labelsOf(t, cached(t, informer, "a/s7")) {
					t.Error("two Secrets have labels in common")
				}
				health, _ := tidingscache.HealthOf(informer)
				if d := health.Decoding; d.Shared != 0 || d.After.Shared != 0 || table.Stats().Kept != 0 {
					t.Errorf("health has %+v, the table %+v", d, table.Stats())
				}
			})
		})
	}
}

// TestNamespaceAndTweakOptions: what the other constructors have as parameters.
func TestNamespaceAndTweakOptions(t *testing.T) {
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServer(t)
				w.create(t, widgets, widget("a", "one", "red"))
				w.create(t, widgets, widget("a", "two", "blue"))
				w.create(t, widgets, widget("b", "one", "red"))
				f := r.factory(w.clients(t), chosen{namespace: "a", tweak: func(o *metav1.ListOptions) { o.LabelSelector = "color=red" }})
				informer := f.ForResource(widgets).Informer()
				start(t, f)
				if keys := informer.GetStore().ListKeys(); !slices.Equal(keys, []string{"a/one"}) {
					t.Errorf("cached are %v, want a/one", keys)
				}
			})
		})
	}
}
