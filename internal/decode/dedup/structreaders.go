package dedup

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

var rawExtensionType = reflect.TypeFor[runtime.RawExtension]()

// ownReader completes the layout of a type that reads its JSON itself. The common ones are read
// here as they do it.
func (c *compiler) ownReader(l *layout) {
	switch l.typ {
	case reflect.TypeFor[metav1.Time]():
		l.read = func(w *structWorker, _ *layout, i uint32, to unsafe.Pointer) bool {
			return w.time(i, time.RFC3339, &(*metav1.Time)(to).Time)
		}
	case reflect.TypeFor[metav1.MicroTime]():
		l.read = func(w *structWorker, _ *layout, i uint32, to unsafe.Pointer) bool {
			return w.time(i, metav1.RFC3339Micro, &(*metav1.MicroTime)(to).Time)
		}
	case quantityType:
		l.read = readQuantity
	case fieldsType:
		l.read = readFields
	case rawExtensionType:
		l.read = readRawExtension
	case reflect.TypeFor[json.RawMessage]():
		l.read = readRawMessage
	case reflect.TypeFor[intstr.IntOrString]():
		l.read, l.self.inner = readIntOrString, c.newStats()
	default:
		l.read = readItself
		l.fields, _ = c.plainSlices(l.typ)
	}
}

// plainSlices returns the slices in a value of a type. plain reports whether the value is nothing
// but strings, bytes and numbers, so that any reader can share it.
func (c *compiler) plainSlices(t reflect.Type) (slices []field, plain bool) {
	decoded := &compiler{plans: c.plans, plan: &plan{}, layouts: map[variant]*layout{}, inside: true}
	inside, err := decoded.layout(t, cut{})
	if err != nil || inside.opaque != nil || inside.kind == kindMap {
		return nil, false
	}
	for _, f := range inside.fields {
		switch {
		case f.kind == kindBits, f.kind == kindString:
		case f.kind == kindSlice && f.elem.flat:
			slices = append(slices, f)
		default:
			return slices, false
		}
	}
	return slices, true
}

// readItself calls the UnmarshalJSON or UnmarshalText of a type, with a copy of the data: it may
// keep or change that. It returns false for an error.
func readItself(w *structWorker, l *layout, i uint32, to unsafe.Pointer) bool {
	t := &w.tokens.All[i]
	w.unshared = w.unshared || l.selfWriting
	w.size += int(t.End - t.Begin)
	var err error
	switch into := reflect.NewAt(l.typ, to).Interface().(type) {
	case json.Unmarshaler:
		err = into.UnmarshalJSON(exactCopy(w.raw(t)))
	case encoding.TextUnmarshaler:
		if !t.IsText() {
			return false
		}
		err = into.UnmarshalText(exactCopy(w.content(t)))
	}
	for _, f := range l.fields {
		h := (*sliceHeader)(unsafe.Add(to, f.offset))
		h.cap = h.len
	}
	return err == nil
}

// time reads a time in local time; null is the zero time.
func (w *structWorker) time(i uint32, layout string, to *time.Time) bool {
	t := &w.tokens.All[i]
	if !t.IsText() {
		return t.Kind == wire.Null
	}
	read, err := time.Parse(layout, stringOf(w.content(t)))
	*to = read.Local()
	return err == nil
}

// readQuantity reads a Quantity: a number, or a string whose escapes are not resolved.
func readQuantity(w *structWorker, _ *layout, i uint32, to unsafe.Pointer) bool {
	t := &w.tokens.All[i]
	switch t.Kind {
	case wire.Null:
		return true
	case wire.String, wire.Integer, wire.Float:
		return w.quantity(bytes.TrimSpace(w.bytes(t)), to)
	}
	return false
}

// readFields reads a FieldsV1, which keeps its JSON.
func readFields(w *structWorker, _ *layout, i uint32, to unsafe.Pointer) bool {
	t := &w.tokens.All[i]
	return t.Kind == wire.Null || w.fields(w.raw(t), to)
}

func readRawExtension(w *structWorker, l *layout, i uint32, to unsafe.Pointer) bool {
	return w.tokens.All[i].Kind == wire.Null ||
		readRawMessage(w, l, i, unsafe.Pointer(&(*runtime.RawExtension)(to).Raw))
}

// readRawMessage copies the JSON, null too.
func readRawMessage(w *structWorker, _ *layout, i uint32, to unsafe.Pointer) bool {
	raw := w.raw(&w.tokens.All[i])
	w.size += len(raw)
	*(*[]byte)(to) = exactCopy(raw)
	return true
}

func readIntOrString(w *structWorker, l *layout, i uint32, to unsafe.Pointer) bool {
	t, into := &w.tokens.All[i], (*intstr.IntOrString)(to)
	if t.IsText() {
		into.Type = intstr.String
		return w.text(l.self.inner, t, &into.StrVal)
	}
	bits, ok := w.number(reflect.Int32, 4, t)
	into.IntVal = int32(bits)
	return ok || t.Kind == wire.Null
}

func (w *structWorker) base64(t *wire.Token, to *[]byte) bool {
	content := w.content(t)
	read := make([]byte, base64.StdEncoding.DecodedLen(len(content)))
	n, err := base64.StdEncoding.Decode(read, content)
	w.size += len(read)
	*to = read[:n:n]
	return err == nil
}
