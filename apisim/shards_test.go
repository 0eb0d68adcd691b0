package apisim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
)

const (
	lowerHalf = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	upperHalf = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
)

// TestShardSelectors lists and watches objects by shard selectors, with the feature and without it.
func TestShardSelectors(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			inBubble(t, Options{ShardedListAndWatch: on, Seed: 1}, func(b *bench) {
				client := b.typed.CoreV1().ConfigMaps("default")
				var lower, all []string
				for i := range 20 {
					made, err := client.Create(b.ctx, configMap(fmt.Sprintf("c%02d", i)), metav1.CreateOptions{})
					b.must(err)
					all = append(all, made.Name)
					if sharding.HexLess("0x"+sharding.HashField(string(made.UID)), "0x8000000000000000") {
						lower = append(lower, made.Name)
					}
				}
				want, info := all, ""
				if on {
					want, info = lower, lowerHalf
				}
				var got []string
				o := metav1.ListOptions{ShardSelector: lowerHalf, Limit: 3}
				for {
					page, err := client.List(b.ctx, o)
					b.must(err)
					if (page.ShardInfo != nil) != on || on && page.ShardInfo.Selector != info {
						b.Errorf("the list says %v, want %q", page.ShardInfo, info)
					}
					for i := range page.Items {
						got = append(got, page.Items[i].Name)
					}
					if o.Continue = page.Continue; o.Continue == "" {
						break
					}
				}
				if !slices.Equal(got, want) {
					b.Errorf("the list has %v, want %v", got, want)
				}
				w, err := client.Watch(b.ctx, metav1.ListOptions{ShardSelector: lowerHalf, ResourceVersion: "1"})
				b.must(err)
				defer w.Stop()
				for _, name := range want {
					if e := <-w.ResultChan(); e.Object.(metav1.Object).GetName() != name {
						b.Errorf("the watch sends %v of %s, want %s", e.Type, e.Object.(metav1.Object).GetName(), name)
					}
				}
				whole, err := client.List(b.ctx, metav1.ListOptions{ShardSelector: lowerHalf + " || " + upperHalf})
				b.must(err)
				if len(whole.Items) != len(all) {
					b.Errorf("both halves have %d objects", len(whole.Items))
				}
			})
		})
	}
}

// TestMalformedShardSelectors are refused as a real server refuses them.
func TestMalformedShardSelectors(t *testing.T) {
	inBubble(t, Options{ShardedListAndWatch: true}, func(b *bench) {
		for _, text := range []string{
			"x", lowerHalf + " && " + upperHalf, strings.Replace(lowerHalf, "uid", "name", 1),
			lowerHalf + " || " + strings.Replace(upperHalf, "uid", "namespace", 1),
			"shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000000')",
		} {
			_, err := b.typed.CoreV1().ConfigMaps("").List(b.ctx, metav1.ListOptions{ShardSelector: text})
			if !apierrors.IsInternalError(err) {
				b.Errorf("%s: %v", text, err)
			}
		}
	})
}
