package protocoltest

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watchEvents: a watch sends the events after its version, in order, and resumes at any of
// their versions.
func watchEvents(r *rig) {
	a := r.create("a")
	w := r.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion})
	changed := r.update("a", "n=1")
	b := r.create("b")
	r.expect(w, "MODIFIED a@"+changed.ResourceVersion, "ADDED b@"+b.ResourceVersion)
	r.remove("a")
	e := r.deleted(w, "a")
	if !r.isNewer(e.GetResourceVersion(), b.ResourceVersion) || e.GetLabels()["n"] != "1" {
		r.Errorf("the deleted object is %s with %v, after version %s",
			e.GetResourceVersion(), e.GetLabels(), b.ResourceVersion)
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
	e, _ := r.receive(w)
	obj, ok := e.Object.(metav1.Object)
	if e.Type != watch.Deleted || !ok || obj.GetName() != name {
		r.Fatalf("the next event is %s, want the deletion of %s", describe(e), name)
	}
	return obj
}

// watchSelection: objects that begin or cease to match are added or deleted, the latter
// with the state that matched.
func watchSelection(r *rig) {
	a := r.create("a", "app=web")
	w := r.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion, LabelSelector: "app=web"})
	left := r.update("a", "app=db")
	gone := r.deleted(w, "a")
	if gone.GetResourceVersion() != left.ResourceVersion || gone.GetLabels()["app"] != "web" {
		r.Errorf("the deleted object is %s with %v, want %s with the labels of before",
			gone.GetResourceVersion(), gone.GetLabels(), left.ResourceVersion)
	}
	r.create("other")
	back := r.update("a", "app=web")
	more := r.update("a", "app=web", "n=1")
	r.expect(w, "ADDED a@"+back.ResourceVersion, "MODIFIED a@"+more.ResourceVersion)

	one := r.watch(metav1.ListOptions{
		ResourceVersion: more.ResourceVersion, FieldSelector: "metadata.name=b",
	})
	r.update("a", "n=2")
	b := r.create("b")
	r.expect(one, "ADDED b@"+b.ResourceVersion)
}

// watchInitial: without a version, and of any version, a watch begins with the state.
func watchInitial(r *rig) {
	a := r.create("a")
	for _, version := range []string{"", "0"} {
		w := r.watch(metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=a"})
		r.expect(w, "ADDED a@"+a.ResourceVersion)
		a = r.update("a", "version=x"+version)
		r.expect(w, "MODIFIED a@"+a.ResourceVersion)
	}
}

// watchBookmarks: a watch that allows bookmarks receives one before its timeout. The version of the
// bookmark covers writes that the watch does not select, and the watch can be resumed from it. A
// server need not send a bookmark of the very version at which the watch began.
func watchBookmarks(r *rig) {
	a := r.create("a")
	w := r.watch(metav1.ListOptions{
		ResourceVersion: a.ResourceVersion, LabelSelector: "none=such", AllowWatchBookmarks: true,
		TimeoutSeconds: new(int64(10)),
	})
	b := r.create("b")
	_, bookmark := r.bookmarks(w)
	if bookmark == "" || r.isNewer(b.ResourceVersion, bookmark) {
		r.Fatalf("the last bookmark is of version %q, the last write %s", bookmark, b.ResourceVersion)
	}
	c := r.create("c")
	r.expect(r.watch(metav1.ListOptions{ResourceVersion: bookmark}), "ADDED c@"+c.ResourceVersion)
}

// watchTimeout: a watch ends at its timeout, and not long before.
func watchTimeout(r *rig) {
	a := r.create("a")
	began := time.Now()
	w := r.watch(metav1.ListOptions{
		ResourceVersion: a.ResourceVersion, TimeoutSeconds: new(int64(2)),
	})
	r.expect(w, "END")
	if took := time.Since(began); took < time.Second {
		r.Errorf("a watch of two seconds has ended after %v", took)
	}
}

// watchFuture: a watch from a version of the future begins, and sends nothing until the server
// reaches it: no bookmark, not even before its timeout, and no earlier write. By this, an informer
// detects a server whose versions went back.
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
	o := metav1.ListOptions{
		ResourceVersion: a.ResourceVersion, FieldSelector: "metadata.name=none",
		AllowWatchBookmarks: true, TimeoutSeconds: new(int64(10)),
	}
	present := r.watch(o)
	o.ResourceVersion = r.later(last.ResourceVersion, 1000)
	future := r.watch(o)
	// A server sends a bookmark when it has a newer version: a write to another resource
	// makes one, and a list makes the server look for it.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	_, err := r.client.CoreV1().Secrets(r.namespace).Create(r.ctx, secret, metav1.CreateOptions{})
	r.must(err)
	_, _, err = r.list(metav1.ListOptions{})
	r.must(err)
	if n, _ := r.bookmarks(present); n == 0 {
		r.Errorf("no bookmark came before the end of a watch")
	}
	if n, _ := r.bookmarks(future); n != 0 {
		r.Errorf("%d bookmarks came of a version of the future", n)
	}
}

// later returns the version after a number of writes.
func (r *rig) later(version string, by int) string {
	r.Helper()
	n, err := strconv.Atoi(version)
	r.must(err)
	return strconv.Itoa(n + by)
}

// bookmarks counts the events until the end of a watch, which must be bookmarks, and returns the
// version of the last one.
func (r *rig) bookmarks(w watch.Interface) (n int, last string) {
	r.Helper()
	for ; ; n++ {
		e, open := r.receive(w)
		if !open {
			return n, last
		}
		if e.Type != watch.Bookmark {
			r.Errorf("the watch sends %s", describe(e))
		}
		last = e.Object.(metav1.Object).GetResourceVersion()
	}
}

// watchForgotten: a version that the server has dropped is an ERROR event of 410.
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
