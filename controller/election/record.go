package election

import (
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The record is that of client-go's leaderelection.LeaderElectionRecord, in the fields of a
// Lease's spec in which client-go's resourcelock.LeaseLock keeps it.

// holderOf returns the holder of a Lease, "" if it is nil or released.
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// take writes a holder into a Lease, which it holds for so many seconds. Like client-go's
// elector, it counts a transition only if the Lease had another holder, or was released.
func take(lease *coordinationv1.Lease, identity string, seconds int32) {
	transitions := int32(0)
	if lease.Spec.LeaseTransitions != nil {
		transitions = *lease.Spec.LeaseTransitions
	}
	now := metav1.NewMicroTime(time.Now())
	if holderOf(lease) != identity {
		lease.Spec.AcquireTime = &now
		if lease.ResourceVersion != "" {
			transitions++
		}
	}
	delete(lease.Annotations, handOverAnnotation)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &identity, &seconds
	lease.Spec.RenewTime, lease.Spec.LeaseTransitions = &now, &transitions
}

// release writes that a Lease has no holder, as client-go's elector does: for one second.
func release(lease *coordinationv1.Lease, versions map[string]string) error {
	now := metav1.NewMicroTime(time.Now())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	if versions == nil {
		return nil
	}
	text, err := json.Marshal(handOver{Transitions: *lease.Spec.LeaseTransitions, Versions: versions})
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, handOverAnnotation, string(text))
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
	// annotations, but counts on: a hand-over of an earlier term has another count.
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
func handedOver(lease *coordinationv1.Lease) (map[string]string, bool) {
	text, ok := lease.Annotations[handOverAnnotation]
	if !ok || holderOf(lease) != "" || lease.Spec.LeaseTransitions == nil {
		return nil, false
	}
	var left handOver
	if json.Unmarshal([]byte(text), &left) != nil || left.Versions == nil ||
		left.Transitions != *lease.Spec.LeaseTransitions {
		return nil, false
	}
	return left.Versions, true
}
