package debug

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/source"
)

// Child is an object that names another one as its owner.
type Child struct {
	Informer string `json:"informer"`
	Key      string `json:"key"`
}

// mostChildren bounds the children of an object, mostSearched the objects that are looked at.
const mostChildren, mostSearched = 100, 200_000

// childrenOf returns the cached objects that name an owner. It looks at all objects but Secrets, of
// which the pages show nothing.
func childrenOf(all *gather.Figures, owner types.UID) (children []Child) {
	if owner == "" {
		return nil
	}
	seen, searched := map[string]bool{}, 0
	for _, i := range all.Informers {
		if i.View == nil {
			continue
		}
		for key := range i.View.Keys() {
			if searched++; searched > mostSearched || len(children) == mostChildren {
				return children
			}
			obj, ok := i.View.Object(key)
			of, isObject := obj.(source.Object)
			if !ok || !isObject || !isOwned(of, owner) || isSecret(i.View, obj) {
				continue
			}
			if id := fmt.Sprintf("%T %s", obj, key); !seen[id] {
				seen[id] = true
				children = append(children, Child{i.Name, key})
			}
		}
	}
	return children
}

func isOwned(obj source.Object, owner types.UID) bool {
	is := func(ref metav1.OwnerReference) bool { return ref.UID == owner }
	return slices.ContainsFunc(obj.GetOwnerReferences(), is)
}
