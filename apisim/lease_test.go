package apisim

import (
	"encoding/json"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

func lease(name, holder string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	l.Spec.HolderIdentity = &holder
	return l
}

// TestLease sends the requests of a leader election for a lease.
func TestLease(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		leases := client.CoordinationV1().Leases("default")
		w, err := leases.Watch(b.ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "l").String()})
		b.must(err)
		events := b.collect(w)
		made, err := leases.Create(b.ctx, lease("l", "one"), metav1.CreateOptions{})
		b.must(err)
		b.done(leases.Create(b.ctx, lease("another", "one"), metav1.CreateOptions{}))
		if _, err := leases.Create(b.ctx, lease("l", "two"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			b.Errorf("a second create: %v", err)
		}
		if _, err := leases.Update(b.ctx, lease("l", "two"), metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			b.Errorf("an update without a version: %v", err)
		}
		renewed := made.DeepCopy()
		renewed.Spec.RenewTime = new(metav1.NowMicro())
		renewed, err = leases.Update(b.ctx, renewed, metav1.UpdateOptions{})
		b.must(err)
		made.Spec.HolderIdentity = new("two")
		if _, err := leases.Update(b.ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			b.Errorf("an update of an old version: %v", err)
		}
		got, err := leases.Get(b.ctx, "l", metav1.GetOptions{})
		if err != nil || *got.Spec.HolderIdentity != "one" || !got.Spec.RenewTime.Time.Equal(renewed.Spec.RenewTime.Time) {
			b.Errorf("the lease is %+v, %v", got, err)
		}
		b.must(leases.Delete(b.ctx, "l", metav1.DeleteOptions{}))
		b.want("events", events(), "ADDED l@"+made.ResourceVersion, "MODIFIED l@"+renewed.ResourceVersion, "DELETED l@"+b.version())
	})
}

// TestEventsOfRecorders creates an event and patches its series, as recorders do.
func TestEventsOfRecorders(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		events := client.EventsV1().Events("default")
		given := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a.1"}, Reason: "Scaled", EventTime: metav1.NowMicro()}
		made, err := events.Create(b.ctx, given, metav1.CreateOptions{})
		b.must(err)
		after := made.DeepCopy()
		after.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()}
		patch, err := json.Marshal(map[string]any{"series": after.Series})
		b.must(err)
		patched, err := events.Patch(b.ctx, "a.1", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err != nil || patched.Series == nil || patched.Series.Count != 2 || patched.ResourceVersion == made.ResourceVersion {
			b.Errorf("the event is %+v, %v", patched, err)
		}
		if _, err := events.Patch(b.ctx, "a.2", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("a patch of an event that has expired: %v", err)
		}
	})
}

// TestVersionsOfWritesThatRemove checks the version in the answer to the write that takes
// the last finalizer: that of before, as in a real server. A delete has none.
func TestVersionsOfWritesThatRemove(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for name, write := range map[string]func(path string) string{
			"patch": func(path string) string {
				_, text := b.get("PATCH", path, `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
				return text
			},
			"update": func(path string) string {
				_, text := b.get("PUT", path, `{"metadata":{"name":"a"}}`)
				return text
			},
		} {
			given := configMap("a")
			given.Finalizers = []string{"example.com/one"}
			b.done(b.server.Create(b.ctx, given))
			marked := b.remove("a")
			before := b.version()
			var answer metav1.PartialObjectMetadata
			b.decode(write(mapsPath+"/a"), &answer)
			if answer.ResourceVersion != before || answer.ResourceVersion != marked.ResourceVersion || answer.DeletionTimestamp == nil || len(answer.Finalizers) != 0 {
				b.Errorf("%s: the answer is %+v, and the version before is %s", name, answer, before)
			}
			if _, err := b.server.Get(b.ctx, configMaps, "default", "a"); !apierrors.IsNotFound(err) || b.version() == before {
				b.Errorf("%s: %v, version %s", name, err, b.version())
			}
		}
		b.create("c")
		var status metav1.Status
		_, text := b.get("DELETE", mapsPath+"/c", "")
		b.decode(text, &status)
		if fmt.Sprint(status.Kind, status.ResourceVersion, status.Details.Name) != "Statusc" || status.Details.UID == "" {
			b.Errorf("a delete is answered with %s", text)
		}
	})
}
