package apisim

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// TestFaultsOfAPage has the third page of a list say that more follows, for ever: another page
// without objects, or the one that it is.
func TestFaultsOfAPage(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		names []string // of the third page
		again bool     // its token leads to itself
	}{
		"EmptyPages":   {EmptyPages(), nil, false},
		"RepeatTokens": {RepeatTokens(), []string{"c"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				for _, name := range []string{"a", "b", "c", "d"} {
					b.create(name)
				}
				b.server.Inject(Match{Page: 3}, c.fault)
				o := metav1.ListOptions{Limit: 1}
				for n, want := range [][]string{{"a"}, {"b"}, c.names} {
					names, list, err := b.list(o)
					b.must(err)
					b.want(fmt.Sprint("page ", n+1), names, want...)
					if n == 2 && (list.Continue == "" || (list.Continue == o.Continue) != c.again) {
						b.Errorf("the token of page 3 is %q, after %q", list.Continue, o.Continue)
					}
					o.Continue = list.Continue
				}
			})
		})
	}
}
