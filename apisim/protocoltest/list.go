package protocoltest

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// isNewer reports whether a resource version is newer than another.
func (r *rig) isNewer(a, b string) bool {
	r.Helper()
	order, err := resourceversion.CompareResourceVersion(a, b)
	r.must(err)
	return order > 0
}

// listVersions: versions grow with every write, and that of a list is not older than those
// of its items.
func listVersions(r *rig) {
	a := r.create("a")
	b := r.create("b")
	changed := r.update("a", "n=1")
	if !r.isNewer(b.ResourceVersion, a.ResourceVersion) ||
		!r.isNewer(changed.ResourceVersion, b.ResourceVersion) {
		r.Errorf("the versions are %s, %s, %s",
			a.ResourceVersion, b.ResourceVersion, changed.ResourceVersion)
	}
	if same := r.update("a", "n=1"); same.ResourceVersion != changed.ResourceVersion {
		r.Errorf("an update that changes nothing made version %s of %s",
			same.ResourceVersion, changed.ResourceVersion)
	}
	names, list, err := r.list(metav1.ListOptions{})
	r.must(err)
	if names != "a b" || r.isNewer(changed.ResourceVersion, list.ResourceVersion) {
		r.Errorf("listed %s at %s", names, list.ResourceVersion)
	}
}

// listMatches: resourceVersion and resourceVersionMatch together.
func listMatches(r *rig) {
	a := r.create("a")
	b := r.create("b")
	for _, test := range []struct {
		version string
		match   metav1.ResourceVersionMatch
		limit   int64
		want    string
	}{
		{"", "", 0, "a b"},
		{b.ResourceVersion, "", 0, "a b"},
		{a.ResourceVersion, metav1.ResourceVersionMatchNotOlderThan, 0, "a b"},
		{b.ResourceVersion, metav1.ResourceVersionMatchNotOlderThan, 9, "a b"},
		{a.ResourceVersion, metav1.ResourceVersionMatchExact, 0, "a"},
		{a.ResourceVersion, metav1.ResourceVersionMatchExact, 9, "a"},
		{a.ResourceVersion, "", 9, "a"}, // exact: the rule before resourceVersionMatch existed
	} {
		o := metav1.ListOptions{
			ResourceVersion: test.version, ResourceVersionMatch: test.match, Limit: test.limit,
		}
		names, list, err := r.list(o)
		if err != nil {
			r.Errorf("%+v: %v", test, err)
			continue
		}
		exact := test.want == "a"
		notOlder := test.match == metav1.ResourceVersionMatchNotOlderThan
		if notOlder && test.version == a.ResourceVersion && names == "a" {
			continue // the state may be older than b
		}
		if names != test.want || exact && list.ResourceVersion != a.ResourceVersion {
			r.Errorf("%+v lists %s at %s", test, names, list.ResourceVersion)
		}
	}
	exact := metav1.ResourceVersionMatchExact
	for name, o := range map[string]metav1.ListOptions{
		"a match of no version":   {ResourceVersionMatch: exact},
		"exactly any":             {ResourceVersion: "0", ResourceVersionMatch: exact},
		"an unknown match":        {ResourceVersion: "1", ResourceVersionMatch: "Nearly"},
		"a match with a continue": {ResourceVersion: "1", ResourceVersionMatch: exact, Continue: "x"},
	} {
		if _, _, err := r.list(o); !apierrors.IsInvalid(err) {
			r.Errorf("%s: %v", name, err)
		}
	}
	_, _, err := r.list(metav1.ListOptions{ResourceVersion: "x"})
	if !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) && !apierrors.IsInternalError(err) {
		r.Errorf("no number: %v", err)
	}
}

// listFuture: a version that is not reached in time is a timeout of its own kind.
func listFuture(r *rig) {
	_, list, err := r.list(metav1.ListOptions{})
	r.must(err)
	o := metav1.ListOptions{
		ResourceVersion:      list.ResourceVersion + "0",
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	err = r.client.CoreV1().RESTClient().Get().Namespace(r.namespace).Resource("configmaps").
		VersionedParams(&o, metav1.ParameterCodec).MaxRetries(0).Do(r.ctx).Error()
	tooLarge := apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	if !apierrors.IsTimeout(err) || !tooLarge {
		r.Errorf("a list of the future: %v", err)
	}
}

// listPages: all pages are of the state of the first one.
func listPages(r *rig) {
	for i := range 5 {
		r.create(fmt.Sprint("a", i), "page=yes")
	}
	o := metav1.ListOptions{Limit: 2, LabelSelector: "page=yes"}
	names, first, err := r.list(o)
	r.must(err)
	if names != "a0 a1" || first.Continue == "" {
		r.Fatalf("the first page is %q, its token %q", names, first.Continue)
	}
	r.remove("a3")
	r.create("a2b", "page=yes")
	r.update("a4", "page=no")
	for o.Continue = first.Continue; o.Continue != ""; {
		more, page, err := r.list(o)
		r.must(err)
		if page.ResourceVersion != first.ResourceVersion {
			r.Errorf("a page is at version %s, the first at %s", page.ResourceVersion, first.ResourceVersion)
		}
		names, o.Continue = names+" "+more, page.Continue
	}
	if names != "a0 a1 a2 a3 a4" {
		r.Errorf("the pages are of %s", names)
	}
	_, all, err := r.list(metav1.ListOptions{Limit: 2})
	r.must(err)
	if all.RemainingItemCount == nil || *all.RemainingItemCount < 3 {
		r.Errorf("remaining are %v", all.RemainingItemCount)
	}
	if _, _, err := r.list(metav1.ListOptions{Limit: 2, Continue: "%"}); !apierrors.IsBadRequest(err) {
		r.Errorf("no token: %v", err)
	}
	if r.server.Forget == nil {
		return
	}
	r.create("last")
	r.must(r.server.Forget())
	o.Continue = first.Continue
	_, _, err = r.list(o)
	if !apierrors.IsResourceExpired(err) {
		r.Fatalf("a token of a dropped state: %v", err)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Continue == "" {
		r.Fatalf("the error has no token to go on with: %v", err)
	}
	o.Limit, o.Continue = 0, status.Status().Continue
	if rest, _, err := r.list(o); err != nil || rest != "a2 a2b" {
		r.Errorf("the rest, as it is now, is %q, %v", rest, err)
	}
}

// listSelectors: labels of every form, and fields.
func listSelectors(r *rig) {
	r.create("a", "app=web", "tier=front")
	r.create("b", "app=db")
	r.create("c")
	for _, test := range []struct{ labels, fields, want string }{
		{"app=web", "", "a"},
		{"app!=web", "", "b c"},
		{"app in (web,db)", "", "a b"},
		{"app notin (web)", "", "b c"},
		{"app", "", "a b"},
		{"!app", "", "c"},
		{"app,tier=front", "", "a"},
		{"", "metadata.name=b", "b"},
		{"", "metadata.name!=b", "a c"},
		{"", "metadata.namespace=" + r.namespace + ",metadata.name=c", "c"},
		{"app", "metadata.name!=a", "b"},
		{"app=nosuch", "", ""},
	} {
		o := metav1.ListOptions{LabelSelector: test.labels, FieldSelector: test.fields}
		if names, _, err := r.list(o); err != nil || names != test.want {
			r.Errorf("labels %q and fields %q select %q, %v, want %q",
				test.labels, test.fields, names, err, test.want)
		}
	}
	for _, o := range []metav1.ListOptions{
		{LabelSelector: "a b"}, {LabelSelector: "a in"}, {FieldSelector: "x"},
		{FieldSelector: "data.k=v"},
	} {
		if _, _, err := r.list(o); !apierrors.IsBadRequest(err) {
			r.Errorf("labels %q, fields %q: %v", o.LabelSelector, o.FieldSelector, err)
		}
	}
}
