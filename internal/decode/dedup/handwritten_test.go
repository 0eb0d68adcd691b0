package dedup

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// timestampOf encodes seconds, if there are any to encode, and nanoseconds.
func timestampOf(seconds int64, nanos ...byte) []byte {
	data := []byte{1 << 3}
	for v := uint64(seconds); ; v >>= 7 {
		if v < 0x80 {
			data = append(data, byte(v))
			break
		}
		data = append(data, byte(v)|0x80)
	}
	if len(nanos) > 0 {
		data = append(append(data, 2<<3), nanos...)
	}
	return data
}

// TestTimes decodes times as no encoder of API types writes them: with nanoseconds, before
// the epoch, and incomplete.
func TestTimes(t *testing.T) {
	nanos := []byte{0x95, 0x9a, 0xef, 0x3a} // 123456789
	for title, moment := range map[string][]byte{
		"seconds": timestampOf(1_760_000_000), "with nanoseconds": timestampOf(1_760_000_000, nanos...), "before the epoch": timestampOf(-77, nanos...),
		"nanoseconds alone": append([]byte{2 << 3}, nanos...), "empty": nil, "the epoch": timestampOf(0, 0),
		"too many nanoseconds": timestampOf(1, 0xff, 0xff, 0xff, 0xff, 0x0f), "far away": timestampOf(1<<62, nanos...),
		"seconds twice": append(timestampOf(1), timestampOf(2)...), "falling order": append(append([]byte{2 << 3}, nanos...), timestampOf(3)...),
		"an unknown field": append(timestampOf(4), lengthy(9, 1)...), "cut off": timestampOf(1_760_000_000)[:3],
	} {
		t.Run(title, func(t *testing.T) {
			table := new(Table)
			for range 3 {
				same(t, NewDecoder(table, &corev1.ConfigMap{}, ShareAll), lengthy(1, join(lengthy(1, 'a'), lengthy(8, moment...))...)) // creationTimestamp
				same(t, NewDecoder(table, &eventsv1.Event{}, ShareAll), lengthy(2, moment...))                                         // eventTime, a MicroTime
			}
		})
	}
	m := same(t, NewDecoder(new(Table), &corev1.ConfigMap{}, ShareAll), lengthy(1, lengthy(8, timestampOf(1_760_000_000, nanos...)...)...)).(*corev1.ConfigMap)
	if at := m.CreationTimestamp; at.Nanosecond() != 0 || at.Location() != time.Local {
		t.Errorf("the time is %v: it has no nanoseconds and is local in client-go", at)
	}
	e := same(t, NewDecoder(new(Table), &eventsv1.Event{}, ShareAll), lengthy(2, timestampOf(1_760_000_000, nanos...)...)).(*eventsv1.Event)
	if at := e.EventTime; at.Nanosecond() != 123_456_000 || at.Location() != time.Local {
		t.Errorf("the time is %v: it has microseconds and is local in client-go", at)
	}
}

// TestQuantitiesThatTakeHours: parsing them does, so the data is refused and the generated
// code is not asked.
func TestQuantitiesThatTakeHours(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.EmptyDirVolumeSource{}, ShareAll)
	for number, want := range map[string]error{
		"1e-100000000": ErrQuantity, "1E-999999999": ErrQuantity, "0.1e-0100000": ErrQuantity, "1e-999999999": ErrQuantity,
		"1.000e-99999": nil, "0.00000001e0": nil, "1e-000000009": nil, "123456789012": nil,
		"1e3294967296": ErrQuantity, "-1.5e-5000000000": ErrQuantity, "1234567890123456789e999999999": ErrQuantity, "0.0000000000000000001e2147483647": ErrQuantity,
		"123456789012345678e99999": nil, "1e2147483647": nil, "1e4294967296": nil, "1e-4294967297": nil, "1234567890123456789e9": nil,
		"1e-99999999999999999999": resource.ErrSuffix, "1e99999999999999999999": resource.ErrSuffix,
	} {
		data := lengthy(2, lengthy(1, []byte(number)...)...)
		if err := d.Unmarshal(data, new(corev1.EmptyDirVolumeSource)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", number, err, want)
		}
	}
}
