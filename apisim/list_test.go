package apisim

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPagesAreOfOneState(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for i := range 5 {
			b.create(fmt.Sprint("a", i))
		}
		names, first, err := b.list(metav1.ListOptions{Limit: 2})
		if err != nil || first.RemainingItemCount == nil || *first.RemainingItemCount != 3 {
			b.Fatalf("first page %q, %+v, %v", names, first.ListMeta, err)
		}
		b.remove("a3")
		b.create("a2b")
		b.relabel("a4", "n=2")
		for token := first.Continue; token != ""; {
			more, page, err := b.list(metav1.ListOptions{Limit: 2, Continue: token})
			if err != nil || page.ResourceVersion != first.ResourceVersion {
				b.Fatalf("page at version %s, %v", page.ResourceVersion, err)
			}
			names, token = append(names, more...), page.Continue
		}
		b.want("names", names, "a0", "a1", "a2", "a3", "a4")
	})
}

func TestTokenOfAForgottenStateIsExpired(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for i := range 5 {
			b.create(fmt.Sprint("a", i))
		}
		_, first, err := b.list(metav1.ListOptions{Limit: 2})
		if err != nil {
			b.Fatal(err)
		}
		b.create("a9")
		b.server.Compact()
		_, _, err = b.list(metav1.ListOptions{Limit: 2, Continue: first.Continue})
		if !isStatus(err, 410, metav1.StatusReasonExpired) {
			b.Fatalf("got %v", err)
		}
		token := err.(apierrors.APIStatus).Status().Continue
		names, rest, err := b.list(metav1.ListOptions{Continue: token})
		if err != nil || rest.ResourceVersion == first.ResourceVersion {
			b.Errorf("the inconsistent rest is at version %s, %v", rest.ResourceVersion, err)
		}
		b.want("the inconsistent rest", names, "a2", "a3", "a4", "a9")
	})
}

func TestListVersions(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		c := b.create("b")
		newest := c.ResourceVersion
		tests := map[string]struct {
			o       metav1.ListOptions
			names   []string
			version string
		}{
			"newest":                     {metav1.ListOptions{}, []string{"a", "b"}, newest},
			"any":                        {at("0"), []string{"a", "b"}, newest},
			"not older":                  {at(a.ResourceVersion), []string{"a", "b"}, newest},
			"not older, said so":         {metav1.ListOptions{ResourceVersion: a.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Limit: 9}, []string{"a", "b"}, newest},
			"exact":                      {metav1.ListOptions{ResourceVersion: a.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}, []string{"a"}, a.ResourceVersion},
			"exact by limit, as of old":  {metav1.ListOptions{ResourceVersion: a.ResourceVersion, Limit: 9}, []string{"a"}, a.ResourceVersion},
			"selected by name":           {metav1.ListOptions{FieldSelector: "metadata.name=b"}, []string{"b"}, newest},
			"selected by missing labels": {metav1.ListOptions{LabelSelector: "app"}, nil, newest},
		}
		for name, test := range tests {
			names, list, err := b.list(test.o)
			if err != nil || list.ResourceVersion != test.version {
				b.Errorf("%s: version %s, want %s, %v", name, list.ResourceVersion, test.version, err)
			}
			b.want(name, names, test.names...)
		}
		b.server.Compact()
		if _, _, err := b.list(metav1.ListOptions{ResourceVersion: a.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !isStatus(err, 410, metav1.StatusReasonExpired) {
			b.Errorf("a forgotten version: %v", err)
		}
	})
}

func TestFutureVersionIsWaitedForAndThenRefused(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		began := time.Now()
		_, _, err := b.list(at("1000000"))
		if !isStatus(err, 504, metav1.StatusReasonTimeout) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			b.Errorf("list: %v", err)
		}
		if waited := time.Since(began); waited < futureWait || waited > 60*futureWait {
			b.Errorf("it waited %v", waited)
		}
		a := b.create("a")
		soon := fmt.Sprint(a.ResourceVersion, "0") // ten times as far
		go func() {
			for i := range 200 {
				b.relabel("a", fmt.Sprint("n=", i))
			}
		}()
		if _, list, err := b.list(at(soon)); err != nil || len(list.Items) != 1 {
			b.Errorf("a version that comes meanwhile: %v", err)
		}
	})
}

func TestGetOfAVersion(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		made := b.create("a")
		newest := b.relabel("a", "n=2")
		maps := b.typed.CoreV1().ConfigMaps("default")
		for _, version := range []string{"", "0", made.ResourceVersion, newest.ResourceVersion} {
			if got, err := maps.Get(b.ctx, "a", metav1.GetOptions{ResourceVersion: version}); err != nil || got.ResourceVersion != newest.ResourceVersion {
				b.Errorf("of %q: %v, %v", version, got, err)
			}
		}
		if _, err := maps.Get(b.ctx, "a", metav1.GetOptions{ResourceVersion: "1000"}); !isStatus(err, 504, metav1.StatusReasonTimeout) {
			b.Errorf("of the future: %v", err)
		}
		if _, err := maps.Get(b.ctx, "a", metav1.GetOptions{ResourceVersion: "x"}); !isStatus(err, 400, metav1.StatusReasonBadRequest) {
			b.Errorf("of no number: %v", err)
		}
	})
}
