package protocoltest

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watchEvents: a watch brings what follows its version, in order, and resumes at any of
// the versions that it brought.
func watchEvents(r *rig) {
	a := r.create("a")
	w := r.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion})
	changed := r.update("a", "n=1")
	b := r.create("b")
	r.expect(w, "MODIFIED a@"+changed.ResourceVersion, "ADDED b@"+b.ResourceVersion)
	r.remove("a")
	e := r.deleted(w, "a")
	if !r.isNewer(e.GetResourceVersion(), b.ResourceVersion) || e.GetLabels()["n"] != "1" {
		r.Errorf("the deleted object is %s with %v, after version %s", e.GetResourceVersion(), e.GetLabels(), b.ResourceVersion)
	}
	resumed := r.watch(metav1.ListOptions{ResourceVersion: changed.ResourceVersion})
	r.expect(resumed, "ADDED b@"+b.ResourceVersion, "DELETED a@"+e.GetResourceVersion())
	fresh := r.create("c")
	r.expect(w, "ADDED c@"+fresh.ResourceVersion)
	r.expect(resumed, "ADDED c@"+fresh.ResourceVersion)
}

// deleted returns the object of the next event, which must be its deletion.
func (r *rig) deleted(w watch.Interface, name string) metav1.Object {
	r.Helper()
	timer := time.NewTimer(r.server.Patience)
	defer timer.Stop()
	select {
	case e := <-w.ResultChan():
		obj, ok := e.Object.(metav1.Object)
		if e.Type != watch.Deleted || !ok || obj.GetName() != name {
			r.Fatalf("the next event is %s, want the deletion of %s", describe(e), name)
		}
		return obj
	case <-timer.C:
		r.Fatalf("no event came for %v", r.server.Patience)
		return nil
	}
}

// watchSelection: objects that begin or cease to match are added or deleted, the latter
// with the state that matched.
func watchSelection(r *rig) {
	a := r.create("a", "app=web")
	w := r.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion, LabelSelector: "app=web"})
	left := r.update("a", "app=db")
	gone := r.deleted(w, "a")
	if gone.GetResourceVersion() != left.ResourceVersion || gone.GetLabels()["app"] != "web" {
		r.Errorf("what left is %s with %v, want %s with the labels of before", gone.GetResourceVersion(), gone.GetLabels(), left.ResourceVersion)
	}
	r.create("other")
	back := r.update("a", "app=web")
	more := r.update("a", "app=web", "n=1")
	r.expect(w, "ADDED a@"+back.ResourceVersion, "MODIFIED a@"+more.ResourceVersion)

	one := r.watch(metav1.ListOptions{ResourceVersion: more.ResourceVersion, FieldSelector: "metadata.name=b"})
	r.update("a", "n=2")
	b := r.create("b")
	r.expect(one, "ADDED b@"+b.ResourceVersion)
}

// watchInitial: without a version, and of any version, a watch begins with what there
// is.
func watchInitial(r *rig) {
	a := r.create("a")
	for _, version := range []string{"", "0"} {
		w := r.watch(metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=a"})
		r.expect(w, "ADDED a@"+a.ResourceVersion)
		a = r.update("a", "version=x"+version)
		r.expect(w, "MODIFIED a@"+a.ResourceVersion)
	}
}

// watchBookmarks: a watch that allows them gets one before its time is over, with a
// version that is newer than what it selects, and can be resumed at. A server need not
// send one of the very version that the watch began at.
func watchBookmarks(r *rig) {
	a := r.create("a")
	seconds := int64(10)
	w := r.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion, LabelSelector: "none=such", AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	b := r.create("b")
	timer := time.NewTimer(r.server.Patience)
	defer timer.Stop()
	bookmark := ""
	for open := true; open; {
		select {
		case e, more := <-w.ResultChan():
			switch open = more; {
			case more && e.Type == watch.Bookmark:
				bookmark = e.Object.(metav1.Object).GetResourceVersion()
			case more:
				r.Errorf("the watch, which selects nothing, brings %s", describe(e))
			}
		case <-timer.C:
			r.Fatalf("the watch has not ended in %v", r.server.Patience)
		}
	}
	if bookmark == "" || r.isNewer(b.ResourceVersion, bookmark) {
		r.Fatalf("the last bookmark is of version %q, the last write %s", bookmark, b.ResourceVersion)
	}
	c := r.create("c")
	r.expect(r.watch(metav1.ListOptions{ResourceVersion: bookmark}), "ADDED c@"+c.ResourceVersion)
}

// watchTimeout: a watch ends when its time is over, and not long before.
func watchTimeout(r *rig) {
	a := r.create("a")
	seconds := int64(2)
	began := time.Now()
	w := r.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion, TimeoutSeconds: &seconds})
	r.expect(w, "END")
	if took := time.Since(began); took < time.Second {
		r.Errorf("a watch of two seconds has ended after %v", took)
	}
}

// watchFuture: a watch from a version that is not reached begins, and is quiet until it is:
// it brings no bookmark, not even the one that others get before their end, and nothing of
// what is written before. An informer of a server whose versions went back has nothing
// else to go by.
func watchFuture(r *rig) {
	a := r.create("a")
	near := r.watch(metav1.ListOptions{ResourceVersion: r.later(a.ResourceVersion, 3)})
	last := a
	for i := range 6 {
		last = r.create(fmt.Sprint("b", i))
		if r.isNewer(last.ResourceVersion, r.later(a.ResourceVersion, 3)) {
			r.expect(near, fmt.Sprintf("ADDED b%d@%s", i, last.ResourceVersion))
		}
	}
	seconds := int64(10)
	o := metav1.ListOptions{ResourceVersion: a.ResourceVersion, FieldSelector: "metadata.name=none", AllowWatchBookmarks: true, TimeoutSeconds: &seconds}
	present := r.watch(o)
	o.ResourceVersion = r.later(last.ResourceVersion, 1000)
	future := r.watch(o)
	// A bookmark is worth sending when its version is newer than that of the watch: a write
	// to another resource makes it so, once a list has the server look for its newest one.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	_, err := r.client.CoreV1().Secrets(r.namespace).Create(r.ctx, secret, metav1.CreateOptions{})
	r.must(err)
	_, _, err = r.list(metav1.ListOptions{})
	r.must(err)
	if r.bookmarks(present) == 0 {
		r.Errorf("no bookmark came before the end of a watch")
	}
	if n := r.bookmarks(future); n != 0 {
		r.Errorf("%d bookmarks came of a version that is not reached", n)
	}
}

// later returns the version that is so many writes away.
func (r *rig) later(version string, by int) string {
	r.Helper()
	n, err := strconv.Atoi(version)
	r.must(err)
	return strconv.Itoa(n + by)
}

// bookmarks counts what comes until the end of a watch, which must be bookmarks.
func (r *rig) bookmarks(w watch.Interface) int {
	r.Helper()
	timer := time.NewTimer(r.server.Patience)
	defer timer.Stop()
	for n := 0; ; n++ {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return n
			}
			if e.Type != watch.Bookmark {
				r.Errorf("the watch brings %s", describe(e))
			}
		case <-timer.C:
			r.Fatalf("the watch has not ended in %v", r.server.Patience)
		}
	}
}

// watchForgotten: a version that the server has forgotten is 410, and so says an event.
func watchForgotten(r *rig) {
	if r.server.Forget == nil {
		return
	}
	a := r.create("a")
	r.update("a", "n=1")
	r.must(r.server.Forget())
	r.expect(r.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion}), "ERROR 410", "END")
	_, list, err := r.list(metav1.ListOptions{})
	r.must(err)
	w := r.watch(metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	b := r.create("b")
	r.expect(w, "ADDED b@"+b.ResourceVersion)
}
