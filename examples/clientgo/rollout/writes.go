package rollout

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// settling is how long the cache may take to show a write before the server is asked
// what has become of it.
const settling = time.Second

// writes remembers which pods of each replica set were created and deleted and are not
// yet seen so in the cache. A count of pods from a cache that lacks them is wrong, and
// what is done about it would be done twice.
type writes struct {
	mu   sync.Mutex // guards sets, not the maps in it, which the worker of the set has
	sets map[cache.ObjectName]map[string]write
}

// write is what was done to the pod of a name.
type write struct {
	deleted types.UID // of the pod that was deleted; "" is a creation
	at      time.Time // zero if nobody knows whether it was done
}

// of returns the writes of a replica set by the names of pods, for its worker to change.
func (w *writes) of(set cache.ObjectName) map[string]write {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets == nil {
		w.sets = map[cache.ObjectName]map[string]write{}
	}
	if w.sets[set] == nil {
		w.sets[set] = map[string]write{}
	}
	return w.sets[set]
}

// forget drops what is known of a replica set that is gone.
func (w *writes) forget(set cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sets, set)
}

// tried notes a write whose answer is here. That it failed does not say that it was not
// done: the server will be asked.
func tried(done map[string]write, name string, w write, err error) {
	if err == nil {
		w.at = time.Now()
	}
	done[name] = w
}

// isBehind reports whether the cache, which has these pods, lacks a write that was done,
// and forgets the others.
func (c *Controller) isBehind(ctx context.Context, key cache.ObjectName, pods []*corev1.Pod) (bool, error) {
	done := c.writes.of(key)
	if len(done) == 0 {
		return false, nil
	}
	cached := map[string]*corev1.Pod{}
	for _, pod := range pods {
		cached[pod.Name] = pod
	}
	behind := false
	for name, w := range done {
		if w.isSeen(cached[name]) {
			delete(done, name)
			continue
		}
		if time.Since(w.at) < settling {
			behind = true
			continue
		}
		current, err := c.client.CoreV1().Pods(key.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			current, err = nil, nil
		}
		if err != nil {
			return true, fmt.Errorf("read pod %s, which the cache has not seen change: %w", name, err)
		}
		if !w.isSeen(current) {
			delete(done, name) // it was not done, or was undone
			continue
		}
		behind = true
	}
	return behind, nil
}

// isSeen reports whether a pod of the name, nil if there is none, is as after the write.
func (w write) isSeen(pod *corev1.Pod) bool {
	if w.deleted == "" {
		return pod != nil
	}
	return pod == nil || pod.UID != w.deleted || pod.DeletionTimestamp != nil
}
