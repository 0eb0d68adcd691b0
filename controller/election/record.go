package election

import (
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// The record is that of client-go's leaderelection.LeaderElectionRecord, in the fields of a
// Lease's spec in which client-go's resourcelock.LeaseLock keeps it.

// renewal returns a function that writes a holder into a Lease.
func (e *Elector) renewal(identity string) func(*coordinationv1.Lease) error {
	return func(l *coordinationv1.Lease) error {
		delete(l.Annotations, handOverAnnotation)
		lease.Take(l, identity, e.times.Seconds())
		return nil
	}
}

// release writes a Lease without a holder, with the versions for the next one.
func release(l *coordinationv1.Lease, versions map[string]string) error {
	lease.Release(l)
	if versions == nil {
		return nil
	}
	text, err := json.Marshal(handOver{Transitions: *l.Spec.LeaseTransitions, Versions: versions})
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, handOverAnnotation, string(text))
	return nil
}

// handOverAnnotation holds a [handOver] in JSON.
const handOverAnnotation = "tidings-go.github.io/hand-over"

// maxHandOver bounds the bytes of resources and versions in the annotation. All annotations of an
// object may have 256 KiB.
const maxHandOver = 32 << 10

// handOver holds the versions that a holder leaves to the next one.
type handOver struct {
	// Transitions is the count in the record at the release. client-go's elector keeps
	// annotations and increases the count: a hand-over of an earlier term has another count.
	Transitions int32             `json:"transitions"`
	Versions    map[string]string `json:"versions"`
}

// checkHandOver returns an error if versions are too large for the annotation.
func checkHandOver(versions map[string]string) error {
	size := 0
	for resource, version := range versions {
		size += len(resource) + len(version) + len(`"":"",`)
	}
	if size > maxHandOver {
		return fmt.Errorf("the versions of %d resources take %d bytes, more than the %d of a hand-over: "+
			"nothing is left to the next holder, which asks the server", len(versions), size, maxHandOver)
	}
	return nil
}

// handedOver returns the versions that the last holder left in a released Lease.
func handedOver(l *coordinationv1.Lease) (map[string]string, bool) {
	text, ok := l.Annotations[handOverAnnotation]
	if !ok || lease.HolderOf(l) != "" || l.Spec.LeaseTransitions == nil {
		return nil, false
	}
	var left handOver
	if json.Unmarshal([]byte(text), &left) != nil || left.Versions == nil ||
		left.Transitions != *l.Spec.LeaseTransitions {
		return nil, false
	}
	return left.Versions, true
}
