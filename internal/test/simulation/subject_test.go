package simulation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/tidingstest"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets    = schema.GroupVersionResource{
		Group: "example.com", Version: "v1", Resource: "widgets",
	}
	secretsOf = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// hidden is the label that selections leave out.
const hidden = "hidden"

// scope is the selection of an informer.
type scope struct {
	resource   schema.GroupVersionResource
	namespaces []string // none means all; those of a native informer change
	slots      *holding // nil means all
	name       string   // "" means all
	hides      bool     // objects with the label n=hidden
}

// holds reports whether an object belongs to it.
func (s scope) holds(resource schema.GroupVersionResource, namespace, name, uid, n string) bool {
	return resource == s.resource &&
		(len(s.namespaces) == 0 || slices.Contains(s.namespaces, namespace)) &&
		(s.slots == nil || s.slots.Has(uid, namespace)) &&
		(s.name == "" || s.name == name) && (!s.hides || n != hidden)
}

// selected returns the slots of the selection.
func (s scope) selected() *tidings.Slots {
	if s.slots == nil {
		return nil
	}
	return s.slots.Slots
}

// subject is an informer of some kind that may be started and stopped.
type subject struct {
	kind  string // also the user agent of its requests
	scope scope
	// open makes and starts a new informer.
	open func(w *world, s *subject) informer
	// dropIn is set for informers whose handlers have no options but a period of resync.
	dropIn bool
	// fakes is set for an informer that takes a server's mistakes for those of a fake: it
	// does not compare versions, and may go back.
	fakes bool

	// code are the functions of the user that it calls; nil if none of them fail.
	code *userCode
	// strips is set for an informer whose transform removes the versions of objects, and refuses
	// for one whose transform fails for some of their states.
	strips, refuses bool
	// optional is set for an informer that takes a resource which is missing for an empty one.
	optional bool

	informer
	checkers []*checker
	lists    uint64 // begun at the last audit; unknown if audited is not set
	audited  bool   // it was running at the last audit
	divided  bool   // its slots or namespaces have changed since the last audit
	renamed  bool   // its namespaces have
}

// begin makes i the informer of the subject.
func (s *subject) begin(i informer) {
	s.informer, s.checkers, s.audited, s.lists = i, nil, false, 0
}

// informer is a running informer of any kind.
type informer struct {
	tidingstest.Informer
	// stop ends it and waits for it.
	stop     func() error
	recorder *flight.Recorder // nil for none
	// nextTerm ends it and begins another one of the same factory; nil if it cannot.
	nextTerm func() informer
}

// state returns the states of the cache, by key.
func (i informer) state() map[string]string {
	all := map[string]string{}
	for _, obj := range i.List() {
		all[keyOf(obj)] = stateOf(obj)
	}
	return all
}

// stateOf returns the state of an object, also of one without its version.
func stateOf(obj tidings.Object) string {
	whole, ok := obj.(metav1.Object)
	if !ok {
		return follow.StateOf(obj) // a view, which keeps its version
	}
	if version, ok := whole.GetAnnotations()[strippedVersion]; ok {
		return follow.Label(follow.StateOf(obj)) + "@" + version + "#" + string(obj.GetUID())
	}
	return follow.StateOf(obj)
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
