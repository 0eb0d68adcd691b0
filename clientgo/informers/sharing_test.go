package informers

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// replica is one of the pods of a workload.
func replica(namespace string, n int) *corev1.Pod {
	p := pod(namespace, fmt.Sprint("web-", n), "web")
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:v1", Args: []string{"--verbose"}}}
	return p
}

// inCommon reports whether two pods have their labels and containers in common.
func inCommon(a, b *corev1.Pod) bool {
	labels := reflect.ValueOf(a.Labels).UnsafePointer() == reflect.ValueOf(b.Labels).UnsafePointer()
	return labels && &a.Spec.Containers[0] == &b.Spec.Containers[0]
}

// cachedPod returns what is cached of a replica.
func cachedPod(t *testing.T, informer cache.SharedIndexInformer, n int) *corev1.Pod {
	t.Helper()
	obj, ok, err := informer.GetStore().GetByKey(fmt.Sprint("default/web-", n))
	if err != nil || !ok {
		t.Fatalf("replica %d is not cached: %v", n, err)
	}
	return obj.(*corev1.Pod)
}

// TestSharing reads replicas over HTTP with each choice, and through a transform that
// writes to them.
func TestSharing(t *testing.T) {
	write := func(obj any) (any, error) {
		p := obj.(*corev1.Pod)
		p.Labels[p.Name] = "labelled"
		p.Spec.Containers[0].Args[0] += " " + p.Name
		return p, nil
	}
	cases := map[string]struct {
		options []SharedInformerOption
		common  bool // what replicas have
		shared  bool // how they were decoded
	}{
		"default":               {nil, true, true},
		"all":                   {[]SharedInformerOption{WithSharing(tidings.ShareAll)}, true, true},
		"strings":               {[]SharedInformerOption{WithSharing(tidings.ShareStrings)}, false, true},
		"nothing":               {[]SharedInformerOption{WithSharing(tidings.ShareNothing)}, false, false},
		"transform":             {[]SharedInformerOption{WithTransform(write)}, false, true},
		"transform and nothing": {[]SharedInformerOption{WithTransform(write), WithSharing(tidings.ShareNothing)}, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := newServer(t)
				for n := range 8 {
					create(t, server, replica(metav1.NamespaceDefault, n))
				}
				f := NewSharedInformerFactoryWithOptions(client, 0, c.options...)
				informer := f.Core().V1().Pods().Informer()
				start(t, f)
				create(t, server, replica(metav1.NamespaceDefault, 8))
				synctest.Wait()
				seventh, last := cachedPod(t, informer, 7), cachedPod(t, informer, 8)
				if inCommon(seventh, last) != c.common {
					t.Errorf("two replicas have labels and containers in common: %v", !c.common)
				}
				health, ok := tidingscache.HealthOf(informer)
				if !ok {
					t.Fatal("the informer is none of this module")
				}
				if d := health.Decoding; (d.Shared >= 9) != c.shared || (d.Unshared >= 9) == c.shared {
					t.Errorf("health has %+v", d)
				}
				if _, transformed := last.Labels[last.Name]; transformed {
					if len(last.Labels) != 2 || last.Spec.Containers[0].Args[0] != "--verbose "+last.Name {
						t.Errorf("a transform's writes are in several objects: %v, %v", last.Labels, last.Spec.Containers[0].Args)
					}
				}
			})
		})
	}
}

func TestOddSharingPanicsWhereItIsGiven(t *testing.T) {
	for name, give := range map[string]func(tidings.Sharing){
		"cache.WithSharing": func(s tidings.Sharing) {
			tidingscache.WithSharing(&cache.ListWatch{}, tidingscache.SharingOptions{AtMost: s})
		},
		"informers.WithSharing":        func(s tidings.Sharing) { WithSharing(s) },
		"dynamicinformer.WithSharing":  func(s tidings.Sharing) { dynamicinformer.WithSharing(s) },
		"metadatainformer.WithSharing": func(s tidings.Sharing) { metadatainformer.WithSharing(s) },
	} {
		for _, s := range []tidings.Sharing{-1, 3} {
			t.Run(fmt.Sprint(name, s), func(t *testing.T) {
				defer func() {
					if p := fmt.Sprint(recover()); !strings.Contains(p, name) || !strings.Contains(p, "ShareStrings") {
						t.Errorf("it panics with %q", p)
					}
				}()
				give(s)
			})
		}
	}
}
