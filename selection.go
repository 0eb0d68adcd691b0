package tidings

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// Object is an object that informers hold: a pointer to an API type, an
// *unstructured.Unstructured or a *metav1.PartialObjectMetadata.
type Object = source.Object

// Selection selects the objects of a type that an informer holds. Its zero value is all
// of them, within the namespaces of the factory. Equal selections of one factory
// share one watch and one cache.
type Selection struct {
	// Namespace is the one namespace to hold; "" leaves it to Namespaces. To set both is an
	// error.
	Namespace string
	// Namespaces are several namespaces, each with a watch of its own. When both
	// are empty, FactoryOptions.Namespaces hold.
	Namespaces []string
	// AllNamespaces overrides FactoryOptions.Namespaces.
	AllNamespaces bool
	// Labels is a label selector, as in "app=web,tier in (a,b)".
	Labels string
	// Fields is a field selector, as in "metadata.name=web". Which fields a type
	// has is up to the server, but for metadata.name and metadata.namespace.
	Fields string
	// Drop leaves fields out of the objects, as if they had never been set; handlers and
	// listers see ordinary objects. A path names fields as JSON does, joined by dots, as in
	// "metadata.managedFields" or "spec.containers.env": it goes through lists, and ends
	// at a field of any type, which is left out whole. It cannot go into a map, nor leave out the
	// fields that tell objects apart: their kind, name, namespace, uid and resourceVersion. Paths
	// that the type does not have are errors; for [Dynamic], only those within metadata are
	// checked. The order of the paths makes no difference. The server is asked to leave out
	// "metadata.managedFields" itself, unless Transport.NoServerDrop is set.
	//
	// In protobuf, the bytes of these fields are not decoded, nor checked. Do not give an
	// object of such an informer to an Update: the server takes a field that is not there
	// as one to be removed. Use a Patch, or read the object anew.
	Drop []string
	// Transform replaces objects before they are cached, without the fields of Drop; nil
	// leaves them. It is compared by identity: make it once to share an informer.
	Transform *Transform
	// Slots are those of which the informer has the objects; nil is all objects. They may change
	// while it runs: it lists slots that come, and keeps its watch. Handlers receive the objects of
	// slots that go as deletes with the mark Moved.
	Slots *Slots
	// Optional takes a type that the server does not have for a type without objects,
	// so that no wait is for it: the informer is synced and empty as soon as the
	// server has said so. Health says NoSuchResource, and the objects come as adds
	// when the type is there. When it goes for longer than a minute, handlers
	// receive deletes of the cached objects.
	Optional bool
}

// selection is a Selection that was checked and brought into one form.
type selection struct {
	namespaces []string // sorted; none means all
	byDefault  bool     // namespaces are the factory's, for a type that may have none
	labels     labels.Selector
	fields     fields.Selector
	drop       fieldpath.Tree
	transform  *Transform
	slots      *Slots
	optional   bool
}

// check validates s for objects of a scope, with the namespaces to use where s
// names none. The fields that s drops are checked by dropFrom, which knows the type.
func (s Selection) check(scope source.Scope, byDefault []string) (selection, error) {
	var checked selection
	invalid := func(format string, args ...any) (selection, error) {
		return selection{}, fmt.Errorf("%w: %w", ErrInvalidSelection, fmt.Errorf(format, args...))
	}
	named := slices.Clone(s.Namespaces)
	if s.Namespace != "" {
		named = append(named, s.Namespace)
	}
	switch {
	case s.Namespace != "" && len(s.Namespaces) > 0:
		return invalid("Namespace is %q beside Namespaces %q: choose one",
			s.Namespace, s.Namespaces)
	case len(named) > 0 && scope == source.ScopeCluster:
		return selection{}, fmt.Errorf("namespace %q: %w", named[0], ErrClusterScoped)
	case len(named) > 0 && s.AllNamespaces:
		return invalid("AllNamespaces is set beside namespace %q: choose one", named[0])
	case len(named) == 0 && !s.AllNamespaces && scope != source.ScopeCluster:
		named = slices.Clone(byDefault)
		checked.byDefault = len(named) > 0 && scope == source.ScopeUnknown
	}
	if err := checkNamespaces(named); err != nil {
		return invalid("%w", err)
	}
	slices.Sort(named)
	checked.namespaces = slices.Compact(named)
	var err error
	if checked.labels, err = labels.Parse(s.Labels); err != nil {
		return invalid("labels %q: %w", s.Labels, err)
	}
	if checked.fields, err = fields.ParseSelector(s.Fields); err != nil {
		return invalid("fields %q: %w", s.Fields, err)
	}
	if err := checkSlots(s.Slots, scope); err != nil {
		return invalid("%w", err)
	}
	checked.transform, checked.slots, checked.optional = s.Transform, s.Slots, s.Optional
	return checked, nil
}

func checkNamespaces(namespaces []string) error {
	for _, namespace := range namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("namespace %q: %s", namespace, strings.Join(problems, "; "))
		}
	}
	return nil
}

// String describes the selection, "" for everything.
func (s selection) String() string {
	var parts []string
	if len(s.namespaces) > 0 {
		in := "in " + strings.Join(s.namespaces, ",")
		if s.byDefault {
			in += " by default"
		}
		parts = append(parts, in)
	}
	if text := s.labels.String(); text != "" {
		parts = append(parts, "labels "+text)
	}
	if text := s.fields.String(); text != "" {
		parts = append(parts, "fields "+text)
	}
	if len(s.drop) > 0 {
		parts = append(parts, "without "+s.drop.String())
	}
	if s.transform != nil {
		parts = append(parts, "transformed")
	}
	if s.slots != nil {
		parts = append(parts, "slots by "+string(s.slots.Key()))
	}
	if s.optional {
		parts = append(parts, "optional")
	}
	return strings.Join(parts, ", ")
}

// acceptor returns a check that an object belongs to the selection within one of its
// namespaces, "" being all. It looks at the labels, the name and the namespace, as a client
// cannot check other fields.
func acceptor[T Object](
	s selection, namespace string, scope source.Scope,
) func(source.Item[T], bool) error {
	selectsLabels := !s.labels.Empty()
	name, byName := s.fields.RequiresExactMatch("metadata.name")
	inNamespace, byNamespace := s.fields.RequiresExactMatch("metadata.namespace")
	return func(item source.Item[T], deleted bool) error {
		obj := item.Object
		switch {
		case obj.GetName() == "":
			return fmt.Errorf("it has no name")
		case namespace != "" && obj.GetNamespace() != namespace:
			return fmt.Errorf("it is in namespace %q, the watch is of %q",
				obj.GetNamespace(), namespace)
		case scope == source.ScopeCluster && obj.GetNamespace() != "":
			return fmt.Errorf("it is in namespace %q, objects of its type have none",
				obj.GetNamespace())
		case scope == source.ScopeNamespaced && obj.GetNamespace() == "":
			return fmt.Errorf("it has no namespace, objects of its type have one")
		case s.slots != nil && s.slots.Check(obj.GetNamespace()) != nil:
			return s.slots.Check(obj.GetNamespace())
		case byName && obj.GetName() != name:
			return fmt.Errorf("its name is not %q, which is selected", name)
		case byNamespace && obj.GetNamespace() != inNamespace:
			return fmt.Errorf("its namespace is not %q, which is selected", inNamespace)
		case selectsLabels && !deleted && !s.labels.Matches(labels.Set(obj.GetLabels())):
			return fmt.Errorf("its labels do not match %q", s.labels)
		}
		return nil
	}
}

// dropFrom checks the fields that a selection leaves out of objects of type T, against the labels
// by which it selects them.
func dropFrom[T Object](paths []string, by labels.Selector) (fieldpath.Tree, error) {
	drop, err := fieldpath.Parse(paths)
	if err == nil {
		err = checkDrop[T](drop)
	}
	if err == nil && drop["metadata"].Drops("labels") && !by.Empty() {
		err = errors.New(`"metadata.labels" cannot be left out of objects that are ` +
			"selected by labels: what the server sends is checked by them; remove them in a Transform")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: Drop: %w", ErrInvalidSelection, err)
	}
	return drop, nil
}

// checkDrop compares paths with the type of the objects. Of those that are held as maps,
// the metadata alone is known.
func checkDrop[T Object](drop fieldpath.Tree) error {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[*unstructured.Unstructured]() {
		return drop.CheckField("metadata", reflect.TypeFor[metav1.ObjectMeta]())
	}
	return drop.Check(t)
}

// Slots are the slots that this process holds, of the 256 that objects are divided into: by their
// UID or their namespace, as [NewSlots] says. Informers with the same Slots in their [Selection]
// have the objects of these slots alone; all others are not decoded, as far as the source can tell.
// A process needs one Slots for its informers, which package shard and controllers change; Add and
// Remove are for other ways to divide the work.
type Slots = slot.Holding

// SlotSet is a set of slots, which are numbers from 0 to 255.
type SlotSet = slot.Set

// SlotKey is the name by which objects are divided: [ByUID] or [ByNamespace].
type SlotKey = slot.Key

const (
	// ByUID divides objects evenly, each for itself: an object and its owner are in different
	// slots.
	ByUID = slot.UID
	// ByNamespace puts all objects of a namespace into one slot. It is for types with namespaces.
	ByNamespace = slot.Namespace
)

// NewSlots returns Slots that hold a set at first. Its zero value holds none: informers are synced
// and empty then.
func NewSlots(key SlotKey, first SlotSet) *Slots { return slot.NewHolding(key, first) }

// AllSlots returns the set of all slots.
func AllSlots() SlotSet { return slot.All() }

// checkSlots returns an error if objects of a scope cannot be divided so.
func checkSlots(slots *Slots, scope source.Scope) error {
	switch {
	case slots == nil:
		return nil
	case slots.Key() != ByUID && slots.Key() != ByNamespace:
		return fmt.Errorf("Slots are divided by %q: give NewSlots ByUID or ByNamespace", slots.Key())
	case slots.Key() == ByNamespace && scope == source.ScopeCluster:
		return errors.New("Slots are divided by namespace, and objects of the type have none: use ByUID")
	}
	return nil
}
