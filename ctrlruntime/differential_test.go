package ctrlruntime_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/ctrlruntime"
)

var (
	configMapKind     = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	widgetKind        = widgetVersion.WithKind("Widget")
	configMapResource = corev1.SchemeGroupVersion.WithResource("configmaps")
	widgetResource    = widgetVersion.WithResource("widgets")

	allowListKind     = widgetVersion.WithKind("AllowList")
	allowListResource = widgetVersion.WithResource("allowed")
)

// TestSameAsControllerRuntime runs the same operations on the cache of controller-runtime and on
// that of NewCache. All objects, errors, events and requests are equal.
func TestSameAsControllerRuntime(t *testing.T) {
	red := labels.SelectorFromSet(labels.Set{"color": "red"})
	named := func(name string) fields.Selector {
		return fields.OneTermEqualSelector(metav1.ObjectNameField, name)
	}
	for name, o := range map[string]cache.Options{
		"defaults":   {},
		"namespaces": {DefaultNamespaces: map[string]cache.Config{"shop": {}, "blog": {LabelSelector: red}}},
		"all namespaces but one": {DefaultNamespaces: map[string]cache.Config{
			cache.AllNamespaces: {LabelSelector: red}, "shop": {}}},
		"by object": {ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}:  {Label: red, Transform: withoutData},
			&Widget{}:            {Field: named("front")},
			&appsv1.Deployment{}: {Namespaces: map[string]cache.Config{"shop": {}}},
			&corev1.Namespace{}:  {Field: named("shop")},
		}},
		"field of the namespace": {DefaultFieldSelector: fields.OneTermEqualSelector("metadata.namespace", "shop")},
		"label and transform":    {DefaultLabelSelector: red, DefaultTransform: cache.TransformStripManagedFields()},
		"without UIDs":           {DefaultTransform: leavingOut(true, false, false)},
		"without versions":       {DefaultTransform: leavingOut(false, true, false)},
		"without labels":         {DefaultTransform: leavingOut(false, false, true)},
		"with none of them":      {DefaultTransform: leavingOut(true, true, true)},
		"selector of a program":  {DefaultLabelSelector: inverted{red}},
		"no deep copies":         {DefaultUnsafeDisableDeepCopy: new(true)},
		"missing informers":      {ReaderFailOnMissingInformer: true},
		"resyncs":                {SyncPeriod: new(time.Hour)},
		"wrong namespaces":       {ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Namespaces: map[string]cache.Config{"shop": {}}}}},
		"unknown type":           {ByObject: map[client.Object]cache.ByObject{&unregistered{}: {}}},
	} {
		t.Run(name, func(t *testing.T) { both(t, o, seed, readEverything) })
	}
	for name, change := range map[string]func(*rest.Config){
		"timeout": func(c *rest.Config) { c.Timeout = 20 * time.Minute },
		"limit":   func(c *rest.Config) { c.QPS, c.Burst = 1, 1 },
		"a limit for all": func(c *rest.Config) {
			c.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(20, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func(w *world) {
				change(w.config)
				seed(w)
			}
			both(t, cache.Options{}, prepare, readEverything)
		})
	}
}

// ownList is a list of maps of a program's own Go type.
type ownList struct{ unstructured.UnstructuredList }

// unregistered is a type that the scheme does not have.
type unregistered struct{ corev1.ConfigMap }

// seed creates objects of a few types.
func seed(w *world) {
	for i, namespace := range []string{"shop", "blog", "attic"} {
		w.create(configMap(namespace, "red", map[string]string{"color": "red", "shade": fmt.Sprint(i)}))
		w.create(configMap(namespace, "plain", nil))
		w.create(widget(namespace, "front", int64(i), map[string]string{"color": "red"}))
		w.create(widget(namespace, "back", int64(i), nil))
		w.create(custom(allowListKind, namespace, "front", int64(i), map[string]string{"color": "red"}))
		w.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "key"},
			Data:       map[string][]byte{"password": []byte("secret")},
		})
		w.create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web", Labels: map[string]string{"color": "red"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget", Name: "front", UID: "u"}},
		}})
	}
	w.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"color": "red"}}})
}

// kinds returns an object and a list of each type and form.
func kinds() map[string]func() (client.Object, client.ObjectList) {
	return map[string]func() (client.Object, client.ObjectList){
		"ConfigMap":  func() (client.Object, client.ObjectList) { return &corev1.ConfigMap{}, &corev1.ConfigMapList{} },
		"Deployment": func() (client.Object, client.ObjectList) { return &appsv1.Deployment{}, &appsv1.DeploymentList{} },
		"Secret":     func() (client.Object, client.ObjectList) { return &corev1.Secret{}, &corev1.SecretList{} },
		"Node":       func() (client.Object, client.ObjectList) { return &corev1.Node{}, &corev1.NodeList{} },
		"Namespace":  func() (client.Object, client.ObjectList) { return &corev1.Namespace{}, &corev1.NamespaceList{} },
		"Widget":     func() (client.Object, client.ObjectList) { return &Widget{}, &WidgetList{} },
		"AllowList":  func() (client.Object, client.ObjectList) { return &AllowList{}, &AllowListList{} },
		"allow maps": func() (client.Object, client.ObjectList) { return untypedOf(allowListKind) },
		"allow meta": func() (client.Object, client.ObjectList) { return metadataOf(allowListKind) },
		"own maps": func() (client.Object, client.ObjectList) {
			obj, list := untypedOf(widgetKind)
			return obj, &ownList{*list.(*unstructured.UnstructuredList)}
		},
		"widget maps": func() (client.Object, client.ObjectList) { return untypedOf(widgetKind) },
		"maps":        func() (client.Object, client.ObjectList) { return untypedOf(configMapKind) },
		"widget meta": func() (client.Object, client.ObjectList) { return metadataOf(widgetKind) },
		"meta":        func() (client.Object, client.ObjectList) { return metadataOf(configMapKind) },
		"no kind":     func() (client.Object, client.ObjectList) { return untypedOf(schema.GroupVersionKind{}) },
		"unknown kind": func() (client.Object, client.ObjectList) {
			return untypedOf(widgetVersion.WithKind("Gadget"))
		},
		"unregistered": func() (client.Object, client.ObjectList) { return &unregistered{}, &corev1.EventList{} },
	}
}

// each calls f for each kind, in the order of their names.
func each(f func(newObject func() (client.Object, client.ObjectList))) {
	all := kinds()
	for _, name := range []string{"ConfigMap", "Deployment", "Secret", "Node", "Namespace", "Widget",
		"AllowList", "allow maps", "allow meta", "own maps", "widget maps", "maps", "widget meta", "meta", "no kind", "unknown kind", "unregistered"} {
		f(all[name])
	}
}

// readEverything reads each type and form in many ways, through its changes.
func readEverything(w *world) {
	each(func(of func() (client.Object, client.ObjectList)) { readKind(w, of) })
	for _, of := range []client.Object{&corev1.ConfigMap{}, &Widget{}} {
		w.follow(of)
	}
	untyped, _ := untypedOf(widgetKind)
	partial, _ := metadataOf(configMapKind)
	w.follow(untyped)
	w.follow(partial)
	w.note("index: %v", w.cache.IndexField(w.Context(), &corev1.ConfigMap{}, "shade", shade))
	w.note("index again: %v", w.cache.IndexField(w.Context(), &corev1.ConfigMap{}, "shade", shade))

	w.at(20 * time.Minute)
	w.update(configMap("shop", "red", map[string]string{"color": "red", "shade": "new"}))
	w.update(configMap("blog", "red", map[string]string{"color": "blue", "shade": "new"}))
	w.update(widget("shop", "front", 9, map[string]string{"color": "green"}))
	w.update(custom(allowListKind, "shop", "front", 9, map[string]string{"color": "green"}))
	w.settle()
	w.remove(configMapResource, "shop", "plain")
	w.remove(widgetResource, "blog", "back")
	w.create(configMap("shop", "late", map[string]string{"color": "red"}))
	w.settle()
	each(func(of func() (client.Object, client.ObjectList)) { readKind(w, of) })

	w.list(&corev1.ConfigMapList{}, client.MatchingFields{"shade": "new"})
	w.list(&corev1.ConfigMapList{}, client.MatchingFields{"shade": "new"}, client.InNamespace("shop"))
	w.list(&corev1.ConfigMapList{}, client.MatchingFields{"shade": "new"}, client.MatchingLabels{"color": "red"})
	w.list(&corev1.ConfigMapList{}, client.MatchingFields{"other": "new"}, client.MatchingLabels{"color": "red"})
	w.list(&corev1.ConfigMapList{}, client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("shade", "new")})

	w.at(40 * time.Minute)
	w.note("remove: %v", w.cache.RemoveInformer(w.Context(), &Widget{}))
	w.settle()
	w.update(widget("shop", "front", 10, nil))
	w.settle()
	w.list(&WidgetList{})
	w.at(90 * time.Minute) // after one resync of the shortest period
}

// readKind reads objects of one type and form.
func readKind(w *world, of func() (client.Object, client.ObjectList)) {
	object := func() client.Object { obj, _ := of(); return obj }
	list := func() client.ObjectList { _, list := of(); return list }
	for _, name := range []string{"shop/red", "blog/red", "attic/red", "shop/front", "blog/web", "/node", "/shop", "shop/node"} {
		w.get(object(), name)
	}
	w.get(object(), "shop/red", client.UnsafeDisableDeepCopy)
	w.list(list())
	w.list(list(), client.UnsafeDisableDeepCopy)
	w.count(list(), client.Limit(1))
	w.list(list(), client.Continue("next"))
	for _, namespace := range []string{"", "shop", "attic", "missing"} {
		in := client.InNamespace(namespace)
		w.list(list(), in)
		for _, selector := range []string{"color=red", "color in (red,blue),shade=0", "color!=red", "color=red,!shade"} {
			parsed, err := labels.Parse(selector)
			if err != nil {
				w.Fatal(err)
			}
			w.list(list(), in, client.MatchingLabelsSelector{Selector: parsed})
			w.list(list(), in, client.MatchingLabelsSelector{Selector: inverted{parsed}})
		}
		w.count(list(), in, client.MatchingLabels{"color": "red"}, client.Limit(1))
		w.list(list(), in, client.MatchingLabels{"color": "no label, because of the spaces"})
		w.list(list(), in, client.MatchingLabelsSelector{Selector: labels.Nothing()})
		w.list(list(), in, client.MatchingLabelsSelector{})
		w.list(list(), in, client.MatchingLabels{"color": "red"}, client.MatchingFields{"missing": "x"})
	}
}

// inverted is a selector of a program's own: it embeds one of apimachinery's and selects the
// others.
type inverted struct{ labels.Selector }

func (n inverted) Matches(l labels.Labels) bool { return !n.Selector.Matches(l) }

// shade is an index of ConfigMaps by a label.
func shade(obj client.Object) []string {
	if shade, ok := obj.GetLabels()["shade"]; ok {
		return []string{shade}
	}
	return nil
}

// withoutData is a transform of ConfigMaps.
func withoutData(obj any) (any, error) {
	m, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return obj, nil // maps and metadata
	}
	m.Data = nil
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, "data", "left out")
	return m, nil
}

// leavingOut returns a transform that leaves out parts of the metadata.
func leavingOut(uid, version, labels bool) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		m, ok := obj.(client.Object)
		if !ok {
			return obj, nil
		}
		if uid {
			m.SetUID("")
		}
		if version {
			m.SetResourceVersion("")
		}
		if labels {
			m.SetLabels(nil)
		}
		return obj, nil
	}
}

// TestWithoutBookmarks: the end of a streamed list is a bookmark, so that the watch asks for
// bookmarks there. controller-runtime's cache does not sync with EnableWatchBookmarks false where
// lists are streamed.
func TestWithoutBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, cache.Options{DefaultEnableWatchBookmarks: new(false)})
		seed(w)
		w.make(ctrlruntime.NewCache)
		w.start()
		w.count(&corev1.NodeList{})
		w.server.CutConnections()
		time.Sleep(time.Minute)
		w.count(&corev1.NodeList{})
		want := []string{
			"synced: true", "count *v1.NodeList: 1, <nil>", "count *v1.NodeList: 1, <nil>",
		}
		compare(t, "lines", want, w.lines)
		compare(t, "requests", []string{
			"/api/v1/nodes?allowWatchBookmarks=true&sendInitialEvents=true&watch=true protobuf",
			"/api/v1/nodes?watch=true protobuf",
		}, w.asked)
	})
}
