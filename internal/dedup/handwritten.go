package dedup

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byHand completes the program of a type whose encoding its tags do not
// describe. It reports false for all other types.
func byHand(p *program) bool {
	switch p.typ {
	case reflect.TypeFor[metav1.Time]():
		p.hand = decodeTime
	case reflect.TypeFor[metav1.MicroTime]():
		p.hand = decodeMicroTime
	case reflect.TypeFor[resource.Quantity]():
		p.hand, p.quantities = decodeQuantity, true
	case reflect.TypeFor[metav1.FieldsV1]():
		p.hand = decodeFields
	default:
		if !isList(p.typ) {
			return false
		}
		p.hand = decodeList
	}
	return true
}

// isList reports whether t is a slice of strings that is a message of its own:
// Verbs, the ExtraValues of three API groups, AttestationValue.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[string]() && t.Name() != "" && generated(t)
}

// timestamp reads seconds and nanoseconds.
func timestamp(data []byte) (seconds int64, nanos int32, ok bool) {
	i := 0
	var v uint64
	if i < len(data) && data[i] == 1<<3|wireVarint {
		if v, i = uvarint(data, i+1); i < 0 {
			return 0, 0, false
		}
		seconds = int64(v)
	}
	if i < len(data) && data[i] == 2<<3|wireVarint {
		if v, i = uvarint(data, i+1); i < 0 {
			return 0, 0, false
		}
		nanos = int32(v)
	}
	return seconds, nanos, i == len(data)
}

// decodeTime reads a metav1.Time: whole seconds, in local time; an empty message is
// the zero time, not the beginning of the epoch.
func decodeTime(_ *run, data []byte, to unsafe.Pointer) bool {
	if len(data) == 0 {
		return true
	}
	seconds, _, ok := timestamp(data)
	if ok {
		(*metav1.Time)(to).Time = time.Unix(seconds, 0).Local()
	}
	return ok
}

// decodeMicroTime reads a metav1.MicroTime: whole microseconds.
func decodeMicroTime(_ *run, data []byte, to unsafe.Pointer) bool {
	if len(data) == 0 {
		return true
	}
	seconds, nanos, ok := timestamp(data)
	if ok {
		(*metav1.MicroTime)(to).Time = time.Unix(seconds, int64(time.Duration(nanos).Truncate(time.Microsecond))).Local()
	}
	return ok
}

// only returns the content of a message that has the field 1, of bytes, and
// nothing else.
func only(data []byte) (content []byte, ok bool) {
	if len(data) == 0 || data[0] != 1<<3|wireBytes {
		return nil, false
	}
	start, end := span(data, 1)
	if end != len(data) {
		return nil, false
	}
	return data[start:end], true
}

// decodeQuantity reads a Quantity. A large or very precise one is a pointer to a
// number that every copy of the Quantity shares and that Add changes in place;
// what contains such a one is not shared.
func decodeQuantity(r *run, data []byte, to unsafe.Pointer) bool {
	if len(data) == 0 {
		return true
	}
	content, ok := only(data)
	if ok && leastExponent(content) < minExponent {
		ok, r.refused = false, ErrQuantity
	}
	if !ok {
		return false
	}
	q, err := resource.ParseQuantity(r.keep(content)) // which the Quantity may keep
	if err != nil {
		return false
	}
	if r.sharing == ShareAll {
		if _, small := q.AsInt64(); !small && hasDec(q) {
			r.unshared = true
		}
	}
	*(*resource.Quantity)(to) = q
	return true
}

// minExponent is the least exponent of a Quantity that is parsed. The time that parsing takes
// grows with its square: 1 ms for this one, hours for 1e-2147483647.
const minExponent = -99_999

// ErrQuantity is returned for data with a Quantity of more digits behind the point than
// anything needs: quantities are rounded to nine of them.
var ErrQuantity = fmt.Errorf("a quantity with an exponent below %d", minExponent)

// leastExponent returns the exponent of a number such as 1e-9, 0 if it has none that can be
// read, and one below minExponent if it has more digits than an int64 holds.
func leastExponent(number []byte) int64 {
	i := bytes.LastIndexAny(number, "eE")
	if i < 0 {
		return 0
	}
	exponent, err := strconv.ParseInt(string(number[i+1:]), 10, 64)
	if errors.Is(err, strconv.ErrRange) || err == nil {
		return exponent // the least int64 for what is out of range
	}
	return 0
}

// decodeFields reads a FieldsV1, of either build variant.
func decodeFields(r *run, data []byte, to unsafe.Pointer) bool {
	if len(data) == 0 {
		return true
	}
	content, ok := only(data)
	if ok {
		setFields((*metav1.FieldsV1)(to), content)
		r.saves += len(content)
	}
	return ok
}

// decodeList reads a slice of strings that is a message of its own. It is there,
// with no elements, if the message is.
func decodeList(r *run, data []byte, to unsafe.Pointer) bool {
	n, end := elements(data, 0, 1<<3|wireBytes)
	if end != len(data) {
		return false
	}
	list := make([]string, n)
	var content []byte
	i := 0
	for k := range list {
		content, i = element(data, i, 1)
		list[k] = r.keep(content)
	}
	r.saves += len(data) + 16*n
	*(*[]string)(to) = list
	return true
}

// hasDec reports whether q is a pointer to a number that its copies share. Two
// copies that are asked for it give the same one then, and one each otherwise.
func hasDec(q resource.Quantity) bool {
	first, second := q, q
	return first.AsDec() == second.AsDec()
}
