package protocoltest

import (
	"time"

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

// watchBookmarks: a watch that allows them gets one before its time is over, whose
// version can be resumed at.
func watchBookmarks(r *rig) {
	a := r.create("a")
	seconds := int64(10)
	w := r.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	timer := time.NewTimer(r.server.Patience)
	defer timer.Stop()
	bookmark := ""
	for open := true; open; {
		select {
		case e, more := <-w.ResultChan():
			if open = more; more && e.Type == watch.Bookmark {
				bookmark = e.Object.(metav1.Object).GetResourceVersion()
			}
		case <-timer.C:
			r.Fatalf("the watch has not ended in %v", r.server.Patience)
		}
	}
	if bookmark == "" || r.isNewer(a.ResourceVersion, bookmark) {
		r.Fatalf("the last bookmark is of version %q, the watch began at %s", bookmark, a.ResourceVersion)
	}
	b := r.create("b")
	r.expect(r.watch(metav1.ListOptions{ResourceVersion: bookmark}), "ADDED b@"+b.ResourceVersion)
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
