package cache_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/tools/cache"
)

func labelOf(obj any) string { return obj.(metav1.Object).GetLabels()["n"] }

// oddIndex puts an object under a number of values that depends on it, with repetitions and empty
// ones.
func oddIndex(obj any) (values []string, err error) {
	for range len(labelOf(obj)) + len(obj.(metav1.Object).GetName())%3 {
		values = append(values, labelOf(obj), "")
	}
	return values, nil
}

// stateOf describes a cached object.
func stateOf(obj any) string {
	m := obj.(metav1.Object)
	return fmt.Sprintf("%T n=%s@%s uid %s", obj, labelOf(obj), m.GetResourceVersion(), m.GetUID())
}

func keyOf(obj any) string {
	key, err := clientgo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err)
	}
	return key
}

// listener is a handler with its registration.
type listener struct {
	recorder
	number       int
	registration clientgo.ResourceEventHandlerRegistration
}

// compare reports any difference between the two informers.
func (p *pair) compare() {
	p.t.Helper()
	p.compareHandlers()
	p.compareStores()
	for what, of := range map[string]func(s *subject) string{
		"HasSynced":               func(s *subject) string { return fmt.Sprint(s.informer.HasSynced()) },
		"GetController.HasSynced": func(s *subject) string { return fmt.Sprint(s.informer.GetController().HasSynced()) },
		"HasSyncedChecker":        func(s *subject) string { return fmt.Sprint(clientgo.IsDone(s.informer.HasSyncedChecker())) },
		"HasSyncedChecker name":   func(s *subject) string { return s.informer.HasSyncedChecker().Name() },
		"IsStopped":               func(s *subject) string { return fmt.Sprint(s.informer.IsStopped()) },
	} {
		p.same(what, of(p.theirs), of(p.ours))
	}
	if p.manner == rough {
		return
	}
	p.same("LastSyncResourceVersion", p.theirs.informer.LastSyncResourceVersion(), p.ours.informer.LastSyncResourceVersion())
	p.same("GetController.LastSyncResourceVersion",
		p.theirs.informer.GetController().LastSyncResourceVersion(), p.ours.informer.GetController().LastSyncResourceVersion())
	p.same("watch errors", strings.Join(p.theirs.failures, "\n"), strings.Join(p.ours.failures, "\n"))
	if p.byHand || p.versionless {
		return // a bookmark of a version that was reached before does not set that of the cache again
	}
	p.same("LastStoreSyncResourceVersion",
		p.theirs.informer.GetStore().LastStoreSyncResourceVersion(), p.ours.informer.GetStore().LastStoreSyncResourceVersion())
}

func (p *pair) same(what, theirs, ours string) {
	p.t.Helper()
	if theirs != ours {
		p.t.Errorf("%s:\nclient-go says %s\nours says      %s", what, theirs, ours)
	}
}

func (p *pair) compareHandlers() {
	p.t.Helper()
	for n := range p.ours.handlers {
		theirs, ours := p.theirs.handlers[n], p.ours.handlers[n]
		name := fmt.Sprintf("handler %d ", theirs.number)
		theirKnowledge, _ := theirs.story()
		ourKnowledge, wrong := ours.story()
		theirNotes, ourNotes := theirs.take(), ours.take()
		switch {
		case p.versionless && p.byHand:
			theirKnowledge = ourKnowledge
		case p.versionless:
			theirKnowledge = map[string]string{}
			for _, obj := range p.theirs.informer.GetStore().List() {
				theirKnowledge[keyOf(obj)] = stateOf(obj)
			}
		case p.manner != rough:
			p.same(name+"received", lines(byObject(theirNotes)), lines(byObject(ourNotes)))
		}
		p.same(name+"knows", lines(listOf(theirKnowledge)), lines(listOf(ourKnowledge)))
		if len(wrong) > 0 && !p.byHand { // of what the program writes, no handler receives an event
			p.t.Errorf("%sreceived events from ours that do not follow from each other:\n  %s", name, strings.Join(wrong, "\n  "))
		}
		p.same(name+"HasSynced", fmt.Sprint(theirs.registration.HasSynced()), fmt.Sprint(ours.registration.HasSynced()))
	}
}

func listOf(states map[string]string) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(states)) {
		list = append(list, key+": "+states[key])
	}
	return list
}

func lines(list []string) string {
	return fmt.Sprintf("%d:\n  %s", len(list), strings.Join(list, "\n  "))
}

// compareStores compares the results of all methods of the indexers.
func (p *pair) compareStores() {
	p.t.Helper()
	theirs, ours := p.theirs.informer.GetIndexer(), p.ours.informer.GetIndexer()
	p.same("ListKeys", sorted(theirs.ListKeys()), sorted(ours.ListKeys()))
	p.same("List", statesOf(theirs.List()), statesOf(ours.List()))
	for _, key := range append(theirs.ListKeys(), "a/none") {
		p.same("GetByKey "+key, got(theirs.GetByKey(key)), got(ours.GetByKey(key)))
	}
	p.same("GetIndexers", sorted(slices.Collect(maps.Keys(theirs.GetIndexers()))), sorted(slices.Collect(maps.Keys(ours.GetIndexers()))))
	for index := range theirs.GetIndexers() {
		values := theirs.ListIndexFuncValues(index)
		p.same("ListIndexFuncValues "+index, sorted(values), sorted(ours.ListIndexFuncValues(index)))
		for _, value := range append(values, "none") {
			p.same("ByIndex "+index+" "+value, found(theirs.ByIndex(index, value)), found(ours.ByIndex(index, value)))
			p.same("IndexKeys "+index+" "+value, keys(theirs.IndexKeys(index, value)), keys(ours.IndexKeys(index, value)))
		}
		for _, obj := range theirs.List() {
			p.same("Index "+index+" "+keyOf(obj), found(theirs.Index(index, obj)), found(ours.Index(index, obj)))
		}
	}
}

func sorted(list []string) string {
	return strings.Join(slices.Sorted(slices.Values(list)), " ")
}

func statesOf(objects []any) string {
	states := make([]string, len(objects))
	for i, obj := range objects {
		states[i] = keyOf(obj) + " " + stateOf(obj)
	}
	slices.Sort(states)
	return strings.Join(states, "\n  ")
}

func got(obj any, exists bool, err error) string {
	if obj == nil {
		return fmt.Sprint(exists, err)
	}
	return fmt.Sprint(stateOf(obj), exists, err)
}

func found(objects []any, err error) string {
	if err != nil {
		return "an error"
	}
	return statesOf(objects)
}

func keys(list []string, err error) string { return fmt.Sprint(list, err != nil) }
