package apisim

import (
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
