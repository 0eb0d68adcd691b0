package cache_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// listedPods are pods of two namespaces, one a prefix of the other, with labels that
// many, few and none have, and owners.
func listedPods() []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range 120 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: []string{"team", "team-b"}[i%2], Name: fmt.Sprintf("pod-%03d", i), ResourceVersion: fmt.Sprint(i + 1),
			Labels: map[string]string{"app": fmt.Sprint("app-", i%7), "tier": []string{"web", "db", ""}[i%3]},
		}}
		if i%10 == 0 {
			pod.Labels = nil
		}
		for n := range i % 3 {
			pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{UID: types.UID(fmt.Sprint((i + n) % 5)), Controller: new(n == 1)})
		}
		pods = append(pods, pod)
	}
	return pods
}

var listSelectors = []string{
	"", "app=app-1", "app in (app-1,app-5,none)", "tier=", "tier in (web,db),app in (app-3,app-4)", "app!=app-1", "app", "!app", "tier=web,!app", "other=x",
}

// notSelector and orSelector are selectors of a program, which promise Empty and Matches alone.
// They take a labels.Set, which client-go gives.
type (
	notSelector struct{ labels.Selector }
	orSelector  struct {
		labels.Selector
		or labels.Selector
	}
)

func (n notSelector) Matches(l labels.Labels) bool { return !n.Selector.Matches(l.(labels.Set)) }

func (o orSelector) Matches(l labels.Labels) bool { return o.Selector.Matches(l) || o.or.Matches(l) }

// keysOf returns the keys of the objects of a list, ascending.
func keysOfAll[T any](found []T) []string {
	keys := []string{}
	for _, obj := range found {
		keys = append(keys, keyOf(obj))
	}
	slices.Sort(keys)
	return keys
}

// TestListsAreClientGosLists: this package's lists and listers find the same objects in any
// cache, with any indexes, as client-go's functions in client-go's caches.
func TestListsAreClientGosLists(t *testing.T) {
	byNamespace := clientgo.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	// A program may have an index function of its own for namespaces.
	byPrefix := clientgo.Indexers{cache.NamespaceIndex: func(obj any) ([]string, error) {
		namespace := obj.(metav1.Object).GetNamespace()
		return []string{namespace[:min(4, len(namespace))]}, nil
	}}
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		for name, indexes := range map[string]struct {
			indexers clientgo.Indexers
			labels   []string
			owners   bool
		}{
			"none": {}, "namespace": {indexers: byNamespace}, "a namespace of the program": {indexers: byPrefix},
			"labels": {labels: []string{"app", "tier"}}, "all": {byNamespace, []string{"app", "tier"}, true},
		} {
			want := clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc, clientgo.Indexers{})
			if name == "a namespace of the program" {
				must(t, want.AddIndexers(byPrefix))
			}
			informer := newInformer(newSource(t), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{}})
			must(t, informer.AddIndexers(indexes.indexers))
			if _, ours := cache.HealthOf(informer); ours {
				must(t, cache.IndexLabels(informer, indexes.labels...))
				if indexes.owners {
					must(t, cache.IndexOwners(informer))
				}
			}
			got := informer.GetIndexer()
			for _, pod := range listedPods() {
				must(t, want.Add(pod))
				must(t, got.Add(pod))
			}
			for _, namespace := range []string{"", "team", "team-b", "tea"} {
				for _, text := range listSelectors {
					selector, err := labels.Parse(text)
					must(t, err)
					compareLists(t, fmt.Sprintf("%s indexed: %q of namespace %q", name, text, namespace), want, got, namespace, selector)
				}
				compareLists(t, name+" indexed: nothing", want, got, namespace, labels.Nothing())
				red := labels.SelectorFromSet(labels.Set{"app": "app-1"})
				for _, own := range []labels.Selector{notSelector{red}, notSelector{labels.Nothing()}, orSelector{red, labels.SelectorFromSet(labels.Set{"tier": "web"})}, labels.Set{"app": "app-1"}.AsSelectorPreValidated()} {
					compareLists(t, fmt.Sprintf("%s indexed: %T of %v", name, own, own), want, got, namespace, own)
				}
				if name != "a namespace of the program" {
					compareOwners(t, name, got, namespace)
				}
			}
		}
	})
}

func compareLists(t *testing.T, what string, want, got clientgo.Indexer, namespace string, selector labels.Selector) {
	t.Helper()
	var listed, all, found, foundAll []any
	must(t, clientgo.ListAllByNamespace(want, namespace, selector, func(obj any) { listed = append(listed, obj) }))
	must(t, clientgo.ListAll(want, selector, func(obj any) { all = append(all, obj) }))
	must(t, cache.ListAllByNamespace(got, namespace, selector, func(obj any) { found = append(found, obj) }))
	must(t, cache.ListAll(got, selector, func(obj any) { foundAll = append(foundAll, obj) }))
	lister := cache.NewGenericLister(got, schema.GroupResource{Resource: "pods"})
	of, err := lister.List(selector)
	must(t, err)
	ofNamespace, err := lister.ByNamespace(namespace).List(selector)
	must(t, err)
	wanted, wantedAll := keysOfAll(listed), keysOfAll(all)
	for name, keys := range map[string][]string{
		"ListAllByNamespace": keysOfAll(found),
		"Select":             keysOfAll(slices.Collect(cache.Select[*corev1.Pod](got, namespace, selector))),
		"the lister":         keysOfAll(ofNamespace),
	} {
		if !slices.Equal(keys, wanted) {
			t.Errorf("%s: %s has %q, want %q", what, name, keys, wanted)
		}
	}
	if !slices.Equal(keysOfAll(foundAll), wantedAll) || !slices.Equal(keysOfAll(of), wantedAll) {
		t.Errorf("%s: ListAll has %q, the lister %q, want %q", what, keysOfAll(foundAll), keysOfAll(of), wantedAll)
	}
}

func compareOwners(t *testing.T, what string, got clientgo.Indexer, namespace string) {
	t.Helper()
	for _, uid := range []types.UID{"0", "3", "5", ""} {
		owned, controlled := []string{}, []string{}
		for _, pod := range listedPods() {
			if namespace != "" && pod.Namespace != namespace {
				continue
			}
			if slices.ContainsFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == uid }) {
				owned = append(owned, keyOf(pod))
			}
			if c := metav1.GetControllerOf(pod); c != nil && c.UID == uid {
				controlled = append(controlled, keyOf(pod))
			}
		}
		slices.Sort(owned)
		slices.Sort(controlled)
		if keys := keysOfAll(slices.Collect(cache.Owned[*corev1.Pod](got, namespace, uid))); !slices.Equal(keys, owned) {
			t.Errorf("%s indexed: owned by %q in %q are %q, want %q", what, uid, namespace, keys, owned)
		}
		if keys := keysOfAll(slices.Collect(cache.Controlled[*corev1.Pod](got, namespace, uid))); !slices.Equal(keys, controlled) {
			t.Errorf("%s indexed: controlled by %q in %q are %q, want %q", what, uid, namespace, keys, controlled)
		}
	}
}

// TestIndexersAreShared: indexes of labels and owners may be added by several users of an
// informer, and are used from then on.
func TestIndexersAreShared(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&script{}, &corev1.Pod{}, 0, clientgo.Indexers{})
	for _, pod := range listedPods() {
		must(t, informer.GetStore().Add(pod))
	}
	for range 2 {
		must(t, cache.IndexLabels(informer, "app"))
		must(t, cache.IndexOwners(informer))
	}
	theirs := clientgo.NewSharedIndexInformer(&script{}, &corev1.Pod{}, 0, clientgo.Indexers{})
	if err := errors.Join(cache.IndexLabels(theirs, "app"), cache.IndexOwners(theirs)); err == nil {
		t.Error("the informer of client-go has an index of ours")
	}
	selector := labels.SelectorFromSet(labels.Set{"app": "app-1"})
	looked := 0
	candidates, _ := informer.GetIndexer().(interface {
		Candidates(string, labels.Selector) (iter.Seq2[string, any], bool)
	}).Candidates("", selector)
	for range candidates {
		looked++
	}
	if n := len(slices.Collect(cache.Select[*corev1.Pod](informer.GetIndexer(), "", selector))); n == 0 || looked != n {
		t.Errorf("%d objects were looked at to find %d", looked, n)
	}
}

// TestListsOfWhatHasNoMetadata: a selector cannot match an object without metadata, which a
// transform may have made. ListAll returns an error for it, as client-go's does. Select leaves it
// out.
func TestListsOfWhatHasNoMetadata(t *testing.T) {
	bubble(t, func(t *testing.T) {
		informer := cache.NewSharedIndexInformer(newSource(t, "a", "b"), &corev1.Pod{}, 0, clientgo.Indexers{})
		must(t, cache.IndexLabels(informer, "n"))
		must(t, informer.SetTransform(func(obj any) (any, error) {
			if pod, ok := obj.(*corev1.Pod); !ok || pod.Name == "b" {
				return obj, nil
			}
			return &bare{}, nil
		}))
		runSynced(t, informer)
		without, err := labels.Parse("!n")
		must(t, err)
		if err := cache.ListAll(informer.GetStore(), without, func(any) {}); err == nil {
			t.Error("ListAll has found what has no labels by its labels")
		}
		if n := len(slices.Collect(cache.Select[runtime.Object](informer.GetIndexer(), "", without))); n != 1 {
			t.Errorf("Select finds %d, want the one that can have labels", n)
		}
		if n := len(slices.Collect(cache.Select[runtime.Object](informer.GetIndexer(), "", nil))); n != 2 {
			t.Errorf("Select finds %d of 2", n)
		}
	})
}

// bare is an object without metadata.
type bare struct{ runtime.Object }
