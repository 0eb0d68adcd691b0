package dedup

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
	"github.com/tidings-go/tidings/internal/decode/wire"
)

// View returns a decoder of the objects of d that makes views of them: objects of the Go type of
// example, with the fields that it declares. What it does not declare is skipped: in JSON, its syntax
// alone is checked. Where the generated code has to decode an object, it decodes the whole, and the
// view gets its fields.
//
// It returns an error, which names the path, both types and the remedy, if the Go type is no view of
// the objects: see [fieldpath.CheckView].
func (d *Decoder) View(example any) (*Decoder, error) {
	view := &Decoder{}
	return view, d.view(&view.typedDecoder, reflect.TypeOf(example))
}

// View returns a decoder of the objects of d that makes views of them: see [Decoder.View]. An
// object of another kind than that of d is refused with a [KindError], as the view has no kind.
func (d *StructDecoder) View(example any) (*StructDecoder, error) {
	view := &StructDecoder{}
	return view, d.view(&view.typedDecoder, reflect.TypeOf(example))
}

// Unchecked returns a decoder like d that takes its Go type for a view of a type which is not
// known: what it does not declare is skipped, and it has no kind.
func (d *StructDecoder) Unchecked() (*StructDecoder, error) {
	view := &StructDecoder{}
	view.like(&d.typedDecoder)
	view.cut.of = undeclared
	return view, fieldpath.CheckView(d.typ, nil)
}

func (d *typedDecoder) view(view *typedDecoder, t reflect.Type) error {
	if err := fieldpath.CheckView(t, d.api); err != nil {
		return err
	}
	view.like(d)
	view.typ, view.cut.of = t, d.api.Elem()
	view.projection = fieldpath.NewProjection(t.Elem(), d.api.Elem())
	return nil
}

// A kindOf is the kind that objects in JSON say they are of.
type kindOf struct{ apiVersion, kind string }

// A KindError is the error of an object of another kind.
type KindError struct{ Got schema.GroupVersionKind }

func (e *KindError) Error() string { return fmt.Sprintf("an object of the kind %v", e.Got) }

// check returns an error if an object, which is valid, says that it is of another kind. One without
// a kind is not, as items of lists are.
func (k kindOf) check(data []byte) error {
	var got metav1.TypeMeta
	err := utiljson.Unmarshal(data, &got)
	if err == nil && got.Kind != "" && (kindOf{got.APIVersion, got.Kind} != k) {
		err = &KindError{got.GroupVersionKind()}
	}
	return err
}

// isOf reports whether an object says that it is of a kind, or does not say it. If it says it twice,
// or with another value than a string, the answer is no.
func (w *structWorker) isOf(want kindOf) bool {
	all := w.tokens.All
	var apiVersion, kind *wire.Token
	for i := uint32(1); i < all[0].Next; i = all[i+1].Next {
		to := &kind
		switch string(w.content(&all[i])) {
		case "kind":
		case "apiVersion":
			to = &apiVersion
		default:
			continue
		}
		if *to != nil || !all[i+1].IsText() {
			return false
		}
		*to = &all[i+1]
	}
	says := func(t *wire.Token, text string) bool { return t != nil && string(w.content(t)) == text }
	return kind == nil || says(kind, "") ||
		says(kind, want.kind) && (says(apiVersion, want.apiVersion) || apiVersion == nil && want.apiVersion == "")
}
