package cache_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	clientgo "k8s.io/client-go/tools/cache"
)

// cannotStream is a script that declares that it cannot stream lists.
type cannotStream struct{ *script }

func (cannotStream) IsWatchListSemanticsUnSupported() bool { return true }

// canStream is a script that declares that it can.
type canStream struct{ *script }

func (canStream) IsWatchListSemanticsUnSupported() bool { return false }

// TestGateWatchListClient: lists are streamed if the gate is on and the client does not
// declare that it cannot.
func TestGateWatchListClient(t *testing.T) {
	for _, tt := range []struct {
		name    string
		gate    bool
		client  func(*script) clientgo.ListerWatcher
		streams bool
	}{
		{"off", false, func(s *script) clientgo.ListerWatcher { return s }, false},
		{"off, client can", false, func(s *script) clientgo.ListerWatcher { return canStream{s} }, false},
		{"on", true, func(s *script) clientgo.ListerWatcher { return s }, true},
		{"on, client can", true, func(s *script) clientgo.ListerWatcher { return canStream{s} }, true},
		{"on, client cannot", true, func(s *script) clientgo.ListerWatcher { return cannotStream{s} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, tt.gate)
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				server := &script{stream: streams(added(versioned("a", "1")), initialEnd("1"))}
				informer := newInformer(tt.client(server), &corev1.Pod{}, noOptions)
				runSynced(t, informer)
				if tt.streams {
					server.want(t, `stream from ""`)
				} else {
					server.want(t, `list from "0" limit 500 `, `watch from "1"`)
				}
			})
		})
	}
}

// TestGateAtomicFIFO: without the gate, the cache does not return its version.
func TestGateAtomicFIFO(t *testing.T) {
	for _, on := range []bool{true, false} {
		featurestesting.SetFeatureDuringTest(t, features.UnlockWhileProcessingFIFO, on)
		featurestesting.SetFeatureDuringTest(t, features.AtomicFIFO, on)
		both(t, func(t *testing.T, newInformer newInformerFunc) {
			source := newSource(t, "a")
			informer, handler := follow(t, newInformer, source)
			source.Add(newPod("b"))
			handler.want(t, "add default/a 1 initial", "add default/b 2")
			want := map[bool]string{true: "2"}[on]
			if got := informer.GetStore().LastStoreSyncResourceVersion(); got != want {
				t.Errorf("the gate is %v: LastStoreSyncResourceVersion is %q, want %q", on, got, want)
			}
			if got := informer.LastSyncResourceVersion(); got != "2" {
				t.Errorf("the gate is %v: LastSyncResourceVersion is %q, want 2", on, got)
			}
		})
	}
}

// TestGateInformerResourceVersion: without the gate, the controller of an informer does not
// return the version; the informer does.
func TestGateInformerResourceVersion(t *testing.T) {
	for _, on := range []bool{true, false} {
		featurestesting.SetFeatureDuringTest(t, features.InformerResourceVersion, on)
		both(t, func(t *testing.T, newInformer newInformerFunc) {
			informer := newInformer(newSource(t, "a"), &corev1.Pod{}, noOptions)
			runSynced(t, informer)
			want := map[bool]string{true: "1"}[on]
			if got := informer.GetController().LastSyncResourceVersion(); got != want {
				t.Errorf("the gate is %v: the controller says %q, want %q", on, got, want)
			}
			if got := informer.LastSyncResourceVersion(); got != "1" {
				t.Errorf("the gate is %v: the informer says %q, want 1", on, got)
			}
		})
	}
}
