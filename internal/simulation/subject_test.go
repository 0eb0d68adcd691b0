package simulation

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// hidden is the label that selections leave out.
const hidden = "hidden"

// indexByN is the index that every informer has: by the label n.
const indexByN = "n"

// scope is which objects an informer holds.
type scope struct {
	resource   schema.GroupVersionResource
	namespaces []string // none means all
	name       string   // "" means all
	hides      bool     // objects with the label n=hidden
}

// holds reports whether an object belongs to it.
func (s scope) holds(resource schema.GroupVersionResource, namespace, name, n string) bool {
	return resource == s.resource && (len(s.namespaces) == 0 || slices.Contains(s.namespaces, namespace)) &&
		(s.name == "" || s.name == name) && (!s.hides || n != hidden)
}

// subject is an informer of some kind that may be started and stopped.
type subject struct {
	kind  string // also the user agent of its requests
	scope scope
	// open makes and starts a new informer.
	open func(w *world, s *subject) informer
	// compares says that it compares versions, so that it never goes back. One that
	// has taken a server's mistakes for those of a fake does not.
	compares bool

	// code are the functions of the user that it calls; nil if none of them fail.
	code *userCode

	informer
	checkers []*checker
	lists    uint64 // begun at the last audit; unknown if audited is not set
	audited  bool   // it was running at the last audit
}

// begin makes i the informer of the subject.
func (s *subject) begin(i informer) {
	s.informer, s.checkers, s.audited, s.lists = i, nil, false, 0
}

// informer is a running informer of any kind.
type informer interface {
	handle(f func(event), o handlerOptions) registration
	state() map[string]state // by key
	indexed(n string) []string
	health() tidings.Health
	// stop ends it and waits for it.
	stop() error
}

// registration is a handler's.
type registration struct {
	remove func()
	synced func() bool
	health func() tidings.HandlerHealth
}

// handlerOptions are what both worlds have, and what only ours has.
type handlerOptions struct {
	name   string
	resync time.Duration
	policy tidings.Policy
	limit  int
	panics bool // now and then, after an event
}

// state is what is compared of an object.
type state struct{ n, version, uid string }

func (s state) String() string { return s.n + "@" + s.version + "#" + s.uid[:min(len(s.uid), 8)] }

func stateOf(obj metav1.Object) state {
	return state{obj.GetLabels()["n"], obj.GetResourceVersion(), string(obj.GetUID())}
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// event is an event of a handler, in one type for all kinds of informers.
type event struct {
	kind              tidings.EventType
	resync, tombstone bool
	key               string
	old, new          state
}

func (e event) String() string {
	how := ""
	switch {
	case e.resync:
		how = "resync "
	case e.tombstone:
		how = "tombstone "
	}
	switch e.kind {
	case tidings.Added:
		return fmt.Sprintf("%v %s %v", e.kind, e.key, e.new)
	case tidings.Deleted:
		return fmt.Sprintf("%v %s %s%v", e.kind, e.key, how, e.old)
	default:
		return fmt.Sprintf("%v %s %s%v → %v", e.kind, e.key, how, e.old, e.new)
	}
}
