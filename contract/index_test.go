package contract_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/engine/metaindex"
)

// labelled returns one of the config maps of these tests: they are in two namespaces, one a
// prefix of the other, with labels that many, few and no objects have, and with owners.
func labelled(i int) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: []string{"team", "team-b"}[i%2], Name: fmt.Sprintf("object-%03d", i),
		Labels: map[string]string{"app": fmt.Sprint("app-", i%7), "tier": []string{"web", "db", ""}[i%3]},
	}}
	switch i % 10 {
	case 3:
		o.Labels = nil
	case 4:
		o.Labels["canary"] = "true"
	}
	for n := range i % 3 {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: types.UID(fmt.Sprint("owner-", (i+n)%5)), Controller: new(n == 1),
		})
	}
	return o
}

// selectors are those of the lists.
var selectors = []string{
	"", "app=app-1", "app==app-2,tier=web", "app in (app-1,app-5,none)", "app in (app-6)", "app=none", "tier=",
	"tier in (,web)", "tier in (web,db),app in (app-3,app-4,app-5)", "app!=app-1", "app notin (app-1,app-2)",
	"canary", "!canary", "canary=true,app=app-4", "app", "!app", "app=app-1,app=app-2", "unindexed=x",
}

// notSelector is a selector of a program, which promises Empty and Matches alone: its requirements
// are those of the selector that it turns around. It takes a labels.Set, which client-go gives.
type notSelector struct{ labels.Selector }

func (n notSelector) Matches(l labels.Labels) bool { return !n.Selector.Matches(l.(labels.Set)) }

// queries yields the answers of a lister to every query of this test.
func queries[T tidings.Object](t *testing.T, l tidings.Lister[T], byTier *tidings.Index[T]) iter.Seq2[string, iter.Seq2[string, T]] {
	var all []labels.Selector
	for _, text := range selectors {
		s, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	large, err := labels.NewRequirement("app", selection.GreaterThan, []string{"1"})
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, nil, labels.Nothing(), labels.NewSelector().Add(*large), notSelector{all[1]}, notSelector{labels.Nothing()}, labels.Set{"app": "app-1"}.AsSelectorPreValidated())
	return func(yield func(string, iter.Seq2[string, T]) bool) {
		for _, namespace := range []string{"*", "", "team", "team-b", "tea"} {
			for n, s := range all {
				found := l.Namespace(namespace).Select(s)
				if namespace == "*" {
					found = l.Select(s)
				}
				if !yield(fmt.Sprintf("%s: %d, %v", namespace, n, s), found) {
					return
				}
			}
			for _, tier := range []string{"web", "db", "none"} {
				found := l.Namespace(namespace).ByIndex(byTier, tier)
				if namespace == "*" {
					found = l.ByIndex(byTier, tier)
				}
				if !yield(fmt.Sprintf("%s: of the tier %s", namespace, tier), found) {
					return
				}
			}
			for _, uid := range []types.UID{"owner-0", "owner-4", "owner-5", ""} {
				owned, controlled := l.Namespace(namespace).Owned(uid), l.Namespace(namespace).Controlled(uid)
				if namespace == "*" {
					owned, controlled = l.Owned(uid), l.Controlled(uid)
				}
				if !yield(fmt.Sprintf("%s: owned by %s", namespace, uid), owned) || !yield(fmt.Sprintf("%s: controlled by %s", namespace, uid), controlled) {
					return
				}
			}
		}
	}
}

// TestOwnersAndControllers lists the objects of an owner that is no controller.
func TestOwnersAndControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		obj := object("a", "1")
		obj.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner"},
			{APIVersion: "v1", Kind: "ConfigMap", Name: "controller", UID: "controller", Controller: new(true)},
		}
		if _, err := w.server.Create(context.Background(), obj); err != nil {
			t.Fatal(err)
		}
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		for uid, want := range map[types.UID][3]int{"owner": {1}, "controller": {1, 1, 1}, "other": {}} {
			var got [3]int
			for range i.Lister().Owned(uid) {
				got[0]++
			}
			for range i.Lister().Controlled(uid) {
				got[1]++
			}
			for range i.Lister().Namespace("default").Controlled(uid) {
				got[2]++
			}
			if got != want {
				t.Errorf("%s owns and controls %v, want %v", uid, got, want)
			}
		}
	})
}

// TestIndexesChangeNoAnswer: lists yield the same objects, in the same order, without indexes, with
// indexes that were there before the objects, and with indexes that came later.
func TestIndexesChangeNoAnswer(t *testing.T) {
	t.Run("typed", func(t *testing.T) { indexesChangeNoAnswer(t, tidings.For[*corev1.ConfigMap]) })
	t.Run("dynamic", func(t *testing.T) { indexesChangeNoAnswer(t, of(configMaps, tidings.Dynamic)) })
	t.Run("metadata", func(t *testing.T) { indexesChangeNoAnswer(t, of(configMaps, tidings.Metadata)) })
}

func of[R any, I any](resource R, ask func(*tidings.Factory, R, tidings.Selection) (I, error)) func(*tidings.Factory, tidings.Selection) (I, error) {
	return func(f *tidings.Factory, s tidings.Selection) (I, error) { return ask(f, resource, s) }
}

func indexesChangeNoAnswer[T tidings.Object](t *testing.T, ask func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		w.haveNamespaces("team", "team-b")
		for i := range 200 {
			if _, err := w.server.Create(context.Background(), labelled(i)); err != nil {
				t.Fatal(err)
			}
		}
		// Three informers, since equal selections would share one.
		var informers []*tidings.Informer[T]
		for _, s := range []string{"", "notthere!=a", "notthere!=b"} {
			i, err := ask(w.factory, tidings.Selection{Labels: s})
			if err != nil {
				t.Fatal(err)
			}
			informers = append(informers, i)
		}
		plain, early, late := informers[0], informers[1], informers[2]
		byTier := tidings.NewIndex("tier", func(obj T) []string {
			if obj.GetLabels()["app"] == "app-3" {
				panic("no index")
			}
			return []string{obj.GetLabels()["tier"], obj.GetLabels()["tier"]}
		})
		index := func(i *tidings.Informer[T]) {
			t.Helper()
			if err := errors.Join(i.IndexLabels("app", "tier"), i.IndexLabels("canary"), i.IndexOwners(), i.AddIndex(byTier)); err != nil {
				t.Fatal(err)
			}
		}
		index(early)
		w.start()
		index(late)
		for i := range 20 { // changes, after the indexes
			changed := labelled(i)
			changed.Labels = map[string]string{"app": "app-5", "canary": "true"}
			if _, err := w.server.Update(context.Background(), changed); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		answers := map[string][]string{}
		some := 0
		for question, found := range queries(t, plain.Lister(), byTier) {
			answers[question] = []string{}
			for key, obj := range found {
				answers[question] = append(answers[question], key+"@"+obj.GetResourceVersion())
			}
			some += len(answers[question])
		}
		if some == 0 {
			t.Fatal("nothing was found at all")
		}
		matched := 0
		for range plain.Lister().Select(notSelector{labels.Nothing()}) {
			matched++
		}
		if matched != 200 {
			t.Errorf("a selector of the program matches %d of 200 objects, want all", matched)
		}
		for name, i := range map[string]*tidings.Informer[T]{"early": early, "late": late} {
			for question, found := range queries(t, i.Lister(), byTier) {
				got := []string{}
				for key, obj := range found {
					got = append(got, key+"@"+obj.GetResourceVersion())
				}
				if !slices.Equal(got, answers[question]) {
					t.Fatalf("%s indexes, %s\n %q\nwithout indexes\n %q", name, question, got, answers[question])
				}
			}
		}
	})
}

// filled returns an informer that ran until it held the objects.
func filled(t testing.TB, objects ...*corev1.ConfigMap) *tidings.Informer[*corev1.ConfigMap] {
	t.Helper()
	i, err := tidings.NewInformer(&fakeSource{lists: [][]*corev1.ConfigMap{objects}}, tidings.InformerOptions[*corev1.ConfigMap]{Name: "fakes"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- i.Run(ctx) }()
	<-i.Synced()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return i
}

func labelledMaps(n int) []*corev1.ConfigMap {
	objects := make([]*corev1.ConfigMap, n)
	for i := range objects {
		objects[i] = labelled(i)
		objects[i].ResourceVersion = fmt.Sprint(i + 1)
	}
	return objects
}

// TestListsVisitWhatTheyYield: with the indexes, a list looks at no object that it does not
// yield, and allocates nothing per object.
func TestListsVisitWhatTheyYield(t *testing.T) {
	i := filled(t, labelledMaps(2_000)...)
	if err := errors.Join(i.IndexLabels("app"), i.IndexOwners()); err != nil {
		t.Fatal(err)
	}
	l := i.Lister()
	for _, text := range []string{"app=app-1", "app in (app-1,app-2)", "tier=web"} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for name, found := range map[string]func() iter.Seq2[string, *corev1.ConfigMap]{
			"Select": func() iter.Seq2[string, *corev1.ConfigMap] { return l.Select(selector) },
			"in":     func() iter.Seq2[string, *corev1.ConfigMap] { return l.Namespace("team").Select(selector) },
			"Owned":  func() iter.Seq2[string, *corev1.ConfigMap] { return l.Owned("owner-1") },
			"all":    l.All,
		} {
			n := 0
			if allocs := testing.AllocsPerRun(10, func() {
				for range found() {
					n++
				}
			}); n < 11*100 || allocs > 25 {
				t.Errorf("%s of %s: %v allocations in %d objects", name, text, allocs, n/11)
			}
		}
	}
	red := labels.SelectorFromSet(labels.Set{"app": "app-1"})
	visited, n := 0, 0
	candidates, _ := metaindex.Candidates(l.Snapshot(), "", red)
	for range candidates {
		visited++
	}
	for range l.Select(red) {
		n++
	}
	if visited != n || n == 0 {
		t.Errorf("%d objects were looked at for %d", visited, n)
	}
}

// TestIndexesAreShared: several users of an informer may add the same index, and its result
// is that of a scan.
func TestIndexesAreShared(t *testing.T) {
	i := filled(t, labelledMaps(100)...)
	for range 2 {
		if err := errors.Join(i.IndexLabels("app", "example.com/tier"), i.IndexOwners()); err != nil {
			t.Fatal(err)
		}
	}
	byApp := tidings.NewIndex("app", func(m *corev1.ConfigMap) []string { return []string{m.Labels["app"]} })
	scanned := slices.Collect(keysOnly(i.Lister().ByIndex(byApp, "app-1")))
	for range 2 {
		if err := i.AddIndex(byApp); err != nil {
			t.Error(err)
		}
	}
	if found := slices.Collect(keysOnly(i.Lister().ByIndex(byApp, "app-1"))); len(found) == 0 || !slices.Equal(found, scanned) {
		t.Errorf("the index has %q, without it %q were found", found, scanned)
	}
	if err := i.IndexLabels("new", "bad key"); !errors.Is(err, tidings.ErrLabelKey) || !strings.Contains(err.Error(), "bad key") {
		t.Errorf("IndexLabels: %v", err)
	}
	i.Release()
	if err := i.AddIndex(byApp); !errors.Is(err, tidings.ErrReleased) {
		t.Errorf("AddIndex of a handle that was released: %v", err)
	}
	if err := i.IndexLabels("app"); !errors.Is(err, tidings.ErrReleased) {
		t.Errorf("IndexLabels of a handle that was released: %v", err)
	}
	if err := i.IndexOwners(); !errors.Is(err, tidings.ErrReleased) {
		t.Errorf("IndexOwners of a handle that was released: %v", err)
	}
}

func keysOnly[T any](found iter.Seq2[string, T]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range found {
			if !yield(key) {
				return
			}
		}
	}
}
