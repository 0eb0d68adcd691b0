package tidings

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

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
