package protocoltest

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func streamed() metav1.ListOptions {
	return metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
}

const endOfInitial = "BOOKMARK that ends the initial events"

// streamList: the state as events, the bookmark at its end, and the later events.
func streamList(r *rig) {
	a, b := r.create("a"), r.create("b")
	w := r.watch(streamed())
	r.expect(w, "ADDED a@"+a.ResourceVersion, "ADDED b@"+b.ResourceVersion, endOfInitial)
	changed := r.update("a", "n=1")
	r.expect(w, "MODIFIED a@"+changed.ResourceVersion)

	chosen := streamed()
	chosen.LabelSelector = "n=1"
	w = r.watch(chosen)
	r.expect(w, "ADDED a@"+changed.ResourceVersion, endOfInitial)

	none := streamed()
	none.LabelSelector = "n=2"
	r.expect(r.watch(none), endOfInitial)
}

// streamVersion: a streamed list is not older than the version that it names.
func streamVersion(r *rig) {
	a := r.create("a")
	o := streamed()
	o.ResourceVersion = a.ResourceVersion
	r.expect(r.watch(o), "ADDED a@"+a.ResourceVersion, endOfInitial)
	o.ResourceVersion = "0"
	w := r.watch(o)
	got := r.next(w)
	if got == "ADDED a@"+a.ResourceVersion {
		got = r.next(w)
	}
	if got != endOfInitial {
		r.Errorf("the initial events of any version end with %q", got)
	}
}

// streamFuture: a streamed list of a version that is not reached in time ends with 504.
func streamFuture(r *rig) {
	a := r.create("a")
	o := streamed()
	o.ResourceVersion = r.later(a.ResourceVersion, 1000)
	r.expect(r.watch(o), "ERROR 504", "END")
}

// streamRefused: options that exclude each other.
func streamRefused(r *rig) {
	without := streamed()
	without.ResourceVersionMatch = ""
	exact := streamed()
	exact.ResourceVersion, exact.ResourceVersionMatch = "1", metav1.ResourceVersionMatchExact
	for name, o := range map[string]metav1.ListOptions{
		"without a match": without, "of an exact version": exact,
	} {
		w, err := r.client.CoreV1().ConfigMaps(r.namespace).Watch(r.ctx, o)
		if err == nil {
			w.Stop()
		}
		if !apierrors.IsInvalid(err) {
			r.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := r.list(streamed()); !apierrors.IsInvalid(err) {
		r.Errorf("a list that is no watch: %v", err)
	}
}
