package dedup

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// decodeThrice decodes data until everything in it that is shared is, and returns
// the last two objects.
func decodeThrice[T any](t *testing.T, d *Decoder, data []byte) (first, second *T) {
	t.Helper()
	for range 3 {
		first, second = second, new(T)
		if err := d.Unmarshal(data, any(second).(Message)); err != nil {
			t.Fatal(err)
		}
		keen(d)
	}
	if s := d.Stats(); s.Generated != 0 {
		t.Fatalf("%+v: the object was left to the generated code", s)
	}
	return first, second
}

// memories returns the addresses of everything that an object points to, with the types.
func memories(v reflect.Value, into map[unsafe.Pointer]reflect.Type) map[unsafe.Pointer]reflect.Type {
	if into == nil {
		into = map[unsafe.Pointer]reflect.Type{}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			into[v.UnsafePointer()] = v.Type()
			memories(v.Elem(), into)
		}
	case reflect.Interface:
		if !v.IsNil() {
			memories(v.Elem(), into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Type.Kind() != reflect.Interface {
				memories(v.Field(i), into)
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			into[v.UnsafePointer()] = v.Type()
		}
		for _, value := range v.Seq2() {
			memories(value, into)
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Size() > 0 {
			into[v.UnsafePointer()] = v.Type()
		}
		for i := range v.Len() {
			memories(v.Index(i), into)
		}
	}
	return into
}

func samePod(t *testing.T) []byte {
	t.Helper()
	c := newCorpus(7, 1)
	return encode(c.pod(c.workload(3)))
}

func TestRepeatedPartsAreOne(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.Pod{}, ShareAll)
	a, b := decodeThrice[corev1.Pod](t, d, samePod(t))
	partsAreOne(t, a, b)
}

// partsAreOne checks that two equal pods have everything in common that may be shared.
func partsAreOne(t *testing.T, a, b *corev1.Pod) {
	t.Helper()
	if a == b {
		t.Error("two objects are one")
	}
	for name, shared := range map[string]bool{
		"containers":     &a.Spec.Containers[0] == &b.Spec.Containers[0],
		"volume source":  a.Spec.Volumes[1].Projected == b.Spec.Volumes[1].Projected,
		"labels":         reflect.ValueOf(a.Labels).UnsafePointer() == reflect.ValueOf(b.Labels).UnsafePointer(),
		"requests":       reflect.ValueOf(a.Spec.Containers[0].Resources.Requests).UnsafePointer() == reflect.ValueOf(b.Spec.Containers[0].Resources.Requests).UnsafePointer(),
		"number":         a.Spec.TerminationGracePeriodSeconds == b.Spec.TerminationGracePeriodSeconds,
		"string pointer": a.Spec.PreemptionPolicy == b.Spec.PreemptionPolicy,
		"string":         unsafe.StringData(a.Namespace) == unsafe.StringData(b.Namespace),
		"fields":         a.ManagedFields[0].FieldsV1 == b.ManagedFields[0].FieldsV1,
	} {
		if !shared {
			t.Errorf("the %s of two equal pods is there twice", name)
		}
	}
}

// TestStringsOnly decodes an object that may be changed: nothing but strings is
// in another object, too.
func TestStringsOnly(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.Pod{}, ShareStrings)
	data := samePod(t)
	a, b := decodeThrice[corev1.Pod](t, d, data)
	if unsafe.StringData(a.Namespace) != unsafe.StringData(b.Namespace) {
		t.Error("the namespace of two pods is there twice")
	}
	inA := memories(reflect.ValueOf(a), nil)
	for p, typ := range memories(reflect.ValueOf(b), nil) {
		if inA[p] != nil {
			t.Errorf("two pods have a %v in common", typ)
		}
	}
	if s := d.table.Stats(); s.Values != 0 || s.Strings == 0 {
		t.Errorf("%+v: only strings should be in the table", s)
	}
}

func TestNothingShared(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.Pod{}, ShareNothing)
	same(t, d, samePod(t))
	if s := d.table.Stats(); s.Kept != 0 || d.Shares() == nil || d.Stats().Generated != 1 {
		t.Errorf("%+v, %v: something was shared", s, d.Shares())
	}
	m := NewMapDecoder(d.table, widgets, ShareNothing, nil)
	sameMap(t, m, aCustomResource())
	if s := m.table.Stats(); s.Kept != 0 || m.Shares() == nil || m.Stats() != (DecoderStats{Generated: 1}) {
		t.Errorf("%+v, %v: something of a map was shared", s, m.Shares())
	}
}

// TestSecretsStayOut looks for the content of a Secret in the table.
func TestSecretsStayOut(t *testing.T) {
	table := new(Table)
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("hunter2")}}
	for _, object := range []encodable{secret, &corev1.SecretList{Items: []corev1.Secret{*secret}}} {
		d := NewDecoder(table, object, ShareAll)
		for range 4 {
			same(t, d, encode(object))
		}
		if d.Shares() == nil {
			t.Errorf("%v is shared", d.typ)
		}
	}
	if s := table.Stats(); s.Kept != 0 {
		t.Errorf("%+v: something of a Secret was kept", s)
	}
}

// TestLargeValues decodes values that are too large to be shared or copied as a whole: each
// is shared in parts.
func TestLargeValues(t *testing.T) {
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{{
		Name: "d", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{},
	}}}}
	m := &corev1.ConfigMap{Data: map[string]string{}, BinaryData: map[string][]byte{}}
	for i := range 2000 {
		key := fmt.Sprint("attribute ", i)
		slice.Spec.Devices[0].Attributes[resourcev1.QualifiedName(key)] = resourcev1.DeviceAttribute{StringValue: &key}
		m.Data[key], m.BinaryData[key] = key+key, []byte(key)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 300)}, Status: corev1.PodStatus{Message: strings.Repeat("long ", 10_000)}}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i] = corev1.Container{Name: fmt.Sprint("container ", i), Image: strings.Repeat("image ", 20), Env: []corev1.EnvVar{{Name: "a", Value: "b"}}}
	}
	for _, object := range []encodable{slice, m, pod} {
		data := encode(object)
		if len(data) < 2*maxShared {
			t.Fatalf("%T of %d bytes is not large", object, len(data))
		}
		d := NewDecoder(new(Table), object, ShareAll)
		for range 3 {
			same(t, d, data)
			keen(d)
		}
		if s := d.Stats(); s.Generated != 0 {
			t.Errorf("%T: %+v", object, s)
		}
		if s := d.table.Stats(); s.Bytes > int64(len(data)) {
			t.Errorf("%T of %d bytes: %+v", object, len(data), s)
		}
	}
}

func TestAppendToASharedSlice(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.Pod{}, ShareAll)
	a, b := decodeThrice[corev1.Pod](t, d, samePod(t))
	x := append(a.Spec.Containers, corev1.Container{Name: "x"})
	y := append(b.Spec.Containers, corev1.Container{Name: "y"})
	if x[2].Name != "x" || y[2].Name != "y" {
		t.Error("appending to the containers of one pod wrote into the other's")
	}
}

// TestFramesAreNotKept decodes an object out of a frame: when the object is still
// in use, the frame must not be.
func TestFramesAreNotKept(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.Pod{}, ShareAll)
	var frames []weak.Pointer[byte]
	var pods []*corev1.Pod
	for range 4 {
		frame := slices.Clone(samePod(t))
		frames = append(frames, weak.Make(&frame[0]))
		pod := &corev1.Pod{}
		if err := d.Unmarshal(frame, pod); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, pod)
		keen(d)
	}
	runtime.GC()
	for i, frame := range frames {
		if frame.Value() != nil {
			t.Errorf("the frame of pod %d is still in memory", i)
		}
	}
	runtime.KeepAlive(pods)
}

// TestConcurrently decodes and shares with several goroutines, decoders of one table and
// others, while the objects are read. It is for the race detector.
func TestConcurrently(t *testing.T) {
	c := newCorpus(3, 10)
	table := new(Table)
	all, structs, sharing := c.pods(12), NewDecoder(table, &corev1.Pod{}, ShareAll), NewSharer(table, SharerOptions{})
	pods := decodeMessages(t, &corev1.Pod{})(ShareNothing)()
	other, typed := schema.GroupVersionKind{Kind: "Other"}, reflect.TypeFor[typedWidget]()
	for name, test := range map[string]struct {
		all  [][]byte
		want func([]byte) any
		ways []func([]byte) any
	}{
		"pods": {all, pods, []func([]byte) any{
			decodeWith(t, structs), decodeWith(t, NewDecoder(table, &corev1.Pod{}, ShareStrings)),
			func(data []byte) any {
				given := decodedPod(t, data)
				var reading sync.WaitGroup
				reading.Go(func() {
					if !reflect.DeepEqual(given, pods(data)) {
						t.Error("an object that was given was written to")
					}
				})
				shared := sharing.Share(given)
				reading.Wait()
				return shared
			},
		}},
		"maps": {c.widgets(12), decodeMapsWith(t, NewMapDecoder(new(Table), widgets, ShareNothing, nil)), []func([]byte) any{
			decodeMapsWith(t, NewMapDecoder(table, widgets, ShareAll, nil)),
			decodeMapsWith(t, NewMapDecoder(table, other, ShareAll, nil)),
			decodeMapsWith(t, NewMapDecoder(table, widgets, ShareStrings, nil)),
		}},
		"structs in JSON": {c.widgets(12), decodeStructs(t, typed)(ShareNothing)(), []func([]byte) any{
			decodeStructsWith(t, newStructDecoder(table, typed, ShareAll)), decodeStructsWith(t, newStructDecoder(table, typed, ShareStrings)),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := make([]any, len(test.all))
			for i, data := range test.all {
				want[i] = test.want(data)
			}
			var group sync.WaitGroup
			for g := range 6 {
				group.Go(func() {
					for k := range test.all {
						i := (k*7 + g*31) % len(test.all)
						got := test.ways[g%len(test.ways)](slices.Clone(test.all[i]))
						if !reflect.DeepEqual(got, want[i]) {
							t.Errorf("object %d, decoded beside others, differs", i)
						}
					}
				})
			}
			group.Wait()
		})
	}
	if s := structs.Stats(); s.Generated+s.Rejected != 0 || s.Shared != int64(2*len(all)) || table.Stats().Hits == 0 {
		t.Errorf("%+v, %+v", s, table.Stats())
	}
}
