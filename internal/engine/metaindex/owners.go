package metaindex

import (
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/store"
)

type owners struct{}

func (owners) String() string { return "owners" }

// Owners identifies the index of the UIDs of owners.
var Owners = owners{}

// OwnerUIDs returns the UIDs of an object's owners, for an index.
func OwnerUIDs(obj Object) []string {
	var uids []string
	eachOwner(obj, func(uid types.UID, _ bool) bool {
		uids = append(uids, string(uid))
		return true
	})
	return uids
}

// OwnerCandidates yields objects whose keys begin with the prefix. Among them are all that
// have an owner of that UID.
func OwnerCandidates[T any](s store.Snapshot[T], prefix string,
	uid types.UID) iter.Seq2[string, T] {
	if x, ok := s.Index(Owners); ok {
		return x.Within(prefix).Lookup(string(uid))
	}
	return s.Prefix(prefix)
}

// Owned reports whether an object has an owner of that UID; with controller, whether
// that owner is its controller.
func Owned(obj Object, uid types.UID, controller bool) bool {
	found := false
	eachOwner(obj, func(owner types.UID, controls bool) bool {
		found = owner == uid && (controls || !controller)
		return !found
	})
	return found
}

// eachOwner calls f with the owners of an object until it returns false. GetOwnerReferences
// of an unstructured object would copy them.
func eachOwner(obj Object, f func(uid types.UID, controls bool) bool) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		for _, owner := range obj.GetOwnerReferences() {
			if !f(owner.UID, owner.Controller != nil && *owner.Controller) {
				return
			}
		}
		return
	}
	owners, _ := metadata(u)["ownerReferences"].([]any)
	for _, owner := range owners {
		if _, ok := owner.(map[string]any); !ok {
			return // as GetOwnerReferences has it
		}
	}
	for _, owner := range owners {
		fields := owner.(map[string]any)
		uid, _ := fields["uid"].(string)
		controls, _ := fields["controller"].(bool)
		if !f(types.UID(uid), controls) {
			return
		}
	}
}
