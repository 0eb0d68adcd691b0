package view

import (
	"slices"
	"strings"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
)

// heartbeatKinds are the kinds whose objects are written periodically as a sign of life.
// heartbeatFields are the fields that such a write changes.
var (
	heartbeatKinds  = []string{"Node", "Lease.coordination.k8s.io"}
	heartbeatFields = []string{"lastHeartbeatTime", "renewTime"}
)

// IsHeartbeat reports whether a change only renews a lease, or only has new times in the status of
// a node.
func IsHeartbeat(c Change) bool {
	if c.Event != tidings.Updated || c.Old.GetUID() != c.New.GetUID() ||
		!slices.Contains(heartbeatKinds, c.Of.Kind.GroupKind().String()) {
		return false
	}
	beats := false
	for _, change := range fielddiff.Diff(c.Old, c.New) {
		switch {
		case slices.Contains(heartbeatFields, lastField(change.Path)):
			beats = true
		case !isWritten(change):
			return false
		}
	}
	return beats
}

// isWritten reports whether every write changes a field.
func isWritten(change fielddiff.Change) bool {
	return change.Path == "metadata.resourceVersion" ||
		strings.HasPrefix(change.Path, "metadata.managedFields")
}

func lastField(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
