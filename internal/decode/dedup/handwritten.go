package dedup

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// isHandwritten completes the layout of a type whose Unmarshal is written by hand, so that
// its tags do not describe its encoding. It reports false for all other types.
func isHandwritten(l *layout) bool {
	switch l.typ {
	case reflect.TypeFor[metav1.Time]():
		l.decode = func(_ *protoWorker, data []byte, to unsafe.Pointer) bool {
			return timestamp(data, false, &(*metav1.Time)(to).Time)
		}
	case reflect.TypeFor[metav1.MicroTime]():
		l.decode = func(_ *protoWorker, data []byte, to unsafe.Pointer) bool {
			return timestamp(data, true, &(*metav1.MicroTime)(to).Time)
		}
	case quantityType:
		l.decode = onlyField((*builder).quantity)
	case fieldsType:
		l.decode = onlyField((*builder).fields)
	default:
		if !isList(l.typ) {
			return false
		}
		l.decode = decodeList
	}
	return true
}

// isList reports whether t is a slice of strings that is a message of its own: Verbs, the
// ExtraValues of three API groups, AttestationValue.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[string]() && t.Name() != "" &&
		generated(t)
}

// timestamp reads the time of a message of seconds and nanoseconds, of which it counts the micros
// if they are asked for, in local time. An empty message is the zero time, not the beginning of
// the epoch.
func timestamp(data []byte, micros bool, to *time.Time) bool {
	if len(data) == 0 {
		return true
	}
	var values [2]uint64
	i := 0
	for k := range values {
		if i < len(data) && data[i] == byte(k+1)<<3|wire.VarintType {
			if values[k], i = wire.Varint(data, i+1); i < 0 {
				return false
			}
		}
	}
	if i != len(data) {
		return false
	}
	nanos := time.Duration(0)
	if micros {
		nanos = time.Duration(int32(values[1])).Truncate(time.Microsecond)
	}
	*to = time.Unix(int64(values[0]), int64(nanos)).Local()
	return true
}

// onlyField returns a function that reads the content of a message that has the field 1, of bytes,
// and nothing else. An empty message is the zero value.
func onlyField(
	read func(b *builder, content []byte, to unsafe.Pointer) bool,
) func(w *protoWorker, data []byte, to unsafe.Pointer) bool {
	return func(w *protoWorker, data []byte, to unsafe.Pointer) bool {
		if len(data) == 0 {
			return true
		}
		start, end := wire.Span(data, 1)
		return data[0] == 1<<3|wire.BytesType && end == len(data) &&
			read(&w.builder, data[start:end], to)
	}
}

// quantity reads a Quantity. A large or very precise one points to a number that every copy of the
// Quantity shares and that Add changes in place; a value with such a Quantity is not shared.
func (b *builder) quantity(content []byte, to unsafe.Pointer) bool {
	if parsesSlowly(content) {
		b.refused = ErrQuantity
		return false
	}
	q, err := resource.ParseQuantity(b.keepString(content)) // which the Quantity may keep
	if err != nil {
		return false
	}
	if b.sharing == ShareAll {
		if _, small := q.AsInt64(); !small && quantityOf(&q).number != nil {
			b.unshared = true
		}
	}
	*(*resource.Quantity)(to) = q
	return true
}

// ErrQuantity is returned for data with a Quantity that would take too long to parse: the time
// grows with the square of the exponent, from 1 ms for maxExponent to hours for 1e-2147483647.
var ErrQuantity = fmt.Errorf("a quantity with an exponent beyond %d", maxExponent)

const (
	// maxExponent bounds the exponents of quantities, below and above zero.
	maxExponent = 99_999
	// fastDigits is the length of a number that is parsed as an int64, with any exponent above 0.
	fastDigits = 18
)

// parsesSlowly reports whether parsing a number such as 1e-9 takes long. Like ParseQuantity, it
// takes the lowest 32 bits of the exponent. Any other suffix, or an exponent that no int64 holds,
// is small or refused by ParseQuantity.
func parsesSlowly(number []byte) bool {
	i := bytes.LastIndexAny(number, "eE")
	if i < 0 {
		return false
	}
	exponent, err := strconv.ParseInt(string(number[i+1:]), 10, 64)
	e := int32(exponent)
	return err == nil && (e < -maxExponent || e > maxExponent && i > fastDigits)
}

// fields sets a FieldsV1. The bytes of one build variant are set here, because the method leaves
// room behind them, where two users that append to them would both write.
func (b *builder) fields(content []byte, to unsafe.Pointer) bool {
	b.size += len(content)
	if fieldsAreBytes {
		*(*[]byte)(to) = exactCopy(content)
	} else {
		(*metav1.FieldsV1)(to).SetRawBytes(content)
	}
	return true
}

// decodeList reads a slice of strings that is a message of its own. It is not nil, even with
// no elements, if the message is there.
func decodeList(w *protoWorker, data []byte, to unsafe.Pointer) bool {
	n, end := countElements(data, 0, 1<<3|wire.BytesType)
	if end != len(data) {
		return false
	}
	list := make([]string, n)
	var content []byte
	i := 0
	for k := range list {
		content, i = element(data, i, 1)
		list[k] = w.keepString(content)
	}
	w.size += len(data) + 16*n
	*(*[]string)(to) = list
	return true
}
