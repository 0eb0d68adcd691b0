package fleet

import (
	"iter"

	appsv1 "k8s.io/api/apps/v1"
)

// Objects yields every object of the model, owners before what they own.
func (f *Fleet) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		if !yield(f.definition) {
			return
		}
		for _, node := range f.nodes {
			if !yield(node) {
				return
			}
		}
		for _, namespace := range f.namespaces {
			if !yield(namespace) {
				return
			}
		}
		for _, a := range f.apps {
			for _, obj := range a.objects() {
				if !yield(obj) {
					return
				}
			}
		}
	}
}

func (a *app) objects() []Object {
	objects := []Object{a.deployment}
	if a.config != nil {
		objects = append(objects, a.config)
	}
	if a.service != nil {
		objects = append(objects, a.service)
	}
	if a.database != nil {
		objects = append(objects, a.database)
	}
	for _, set := range []*appsv1.ReplicaSet{a.previous, a.set} {
		if set != nil {
			objects = append(objects, set)
		}
	}
	for _, m := range a.pods {
		objects = append(objects, m.pod)
	}
	return objects
}
