package apisim

import (
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Package managedfields of apimachinery carries out server-side apply. The fields of an object have
// managers from its first apply on: an object that was never applied costs nothing.

// builtinTypes describes the merging of the lists and maps of built-in types. Its schemas are
// parsed at its first use.
var builtinTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// fieldManager returns the manager of the fields of the resource, for writes of a subresource.
func (r *resource) fieldManager(subresource string) (*managedfields.FieldManager, error) {
	reset := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	if subresource == "" {
		reset = fieldpath.NewSet()
		if r.HasStatus {
			reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		}
	}
	ignored := map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(r.gv().String()): fieldpath.NewExcludeSetFilter(reset),
	}
	if r.typed {
		return managedfields.NewDefaultFieldManager(builtinTypes(), scheme.Scheme, scheme.Scheme,
			scheme.Scheme, r.gvk(), r.gv(), subresource, ignored)
	}
	creator := unstructuredscheme.NewUnstructuredCreator()
	return managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(),
		mapConverter{}, mapConverter{}, creator, r.gvk(), r.gv(), subresource, ignored)
}

// mapConverter converts maps between versions of a resource, which have the same fields.
type mapConverter struct{ runtime.ObjectConvertor }

// ConvertToVersion returns a copy of an object in another version.
func (mapConverter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (
	runtime.Object, error) {
	out := in.(*unstructured.Unstructured).DeepCopy()
	gvk, _ := target.KindForGroupVersionKinds([]schema.GroupVersionKind{out.GroupVersionKind()})
	out.SetGroupVersionKind(gvk)
	return out, nil
}

// Default leaves an object as it is.
func (mapConverter) Default(runtime.Object) {}

// apply carries out a server-side apply, which creates a missing object.
func (x *exchange) apply(given patch, o writeOptions) (object, error) {
	configuration, err := given.configuration(x.res)
	if err != nil {
		return nil, err
	}
	fields, err := x.res.fieldManager(x.path.subresource)
	if err != nil {
		return nil, err
	}
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	live, err := s.getLocked(x.res, x.path.namespace, x.path.name)
	isNew := err != nil && x.path.subresource == ""
	if isNew {
		if live, err = x.res.newObject(); err == nil {
			live.SetName(x.path.name)
			live.SetNamespace(x.path.namespace)
		}
	}
	if err != nil {
		return nil, err
	}
	applied, err := fields.Apply(withKind(clone(live), x.res.gvk()), configuration, o.manager, o.force)
	if err != nil {
		return nil, err
	}
	after := applied.(object)
	if err := x.path.checkNames(after); err != nil {
		return nil, err
	}
	if !isNew {
		return s.replaceLocked(x.res, live, after, o)
	}
	x.status = http.StatusCreated
	s.prepare(x.res, after, o)
	return s.insertLocked(x.res, after, o)
}

// configuration returns the object in the body of an apply. It is a map, also for a built-in type,
// so that fields that are not set remain absent.
func (p patch) configuration(r *resource) (object, error) {
	asMap := *r
	asMap.typed = false
	obj, _, err := decode(mediaYAML, p.data, &asMap)
	return obj, err
}

// setWholeSeconds removes the fractions of seconds, which JSON does not keep, from the times of
// field managers.
func setWholeSeconds(obj object) {
	managers := slices.Clone(obj.GetManagedFields())
	for i, m := range managers {
		if m.Time != nil {
			managers[i].Time = new(m.Time.Rfc3339Copy())
		}
	}
	obj.SetManagedFields(managers)
}

// track records the manager of the fields that a write changes. An apply has recorded it already.
func (o writeOptions) track(r *resource, before, given, after object) error {
	if o.applies {
		after.SetManagedFields(given.GetManagedFields())
		setWholeSeconds(after)
		return nil
	}
	if o.manager == "" || len(before.GetManagedFields()) == 0 {
		return nil
	}
	fields, err := r.fieldManager(o.subresource)
	if err != nil {
		return err
	}
	// The field manager works on the object itself, and needs its kind.
	after.GetObjectKind().SetGroupVersionKind(r.gvk())
	fields.UpdateNoErrors(withKind(clone(before), r.gvk()), after, o.manager)
	setStoredForm(r, after)
	setWholeSeconds(after)
	return nil
}
