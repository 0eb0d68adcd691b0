package objects

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnlikePod returns a pod of the shape of [Pod] that has nothing in common with any other
// one: strings, numbers, times and keys of maps are random. Namespace and version are
// those of Pod.
func UnlikePod(number int) *corev1.Pod {
	pod := Pod(number)
	namespace, version := pod.Namespace, pod.ResourceVersion
	randomOf("unlike", number).scramble(reflect.ValueOf(pod).Elem())
	pod.Namespace, pod.ResourceVersion = namespace, version
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return pod
}

// unlikeDatabase overwrites a database as UnlikePod does a pod.
func unlikeDatabase(o Object, number int) Object {
	namespace, version := o.GetNamespace(), o.GetResourceVersion()
	gvk := o.GetObjectKind().GroupVersionKind()
	randomOf("unlike database", number).scramble(reflect.ValueOf(o).Elem())
	o.SetNamespace(namespace)
	o.SetResourceVersion(version)
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o
}

// scramble overwrites all values in v with random ones, but for booleans and empty values. Strings
// keep their length, from eight characters on.
func (r random) scramble(v reflect.Value) {
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(after(metav1.NewTime(epoch), r.IntN(1_000_000_000))))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(*resource.NewQuantity(int64(r.Int32()), resource.DecimalSI)))
		return
	case metav1.FieldsV1:
		size := len(v.Addr().Interface().(*metav1.FieldsV1).GetRawBytes())
		v.Set(reflect.ValueOf(*metav1.NewFieldsV1(`"` + r.hex(size) + `"`)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			v.SetString(r.hex(max(8, v.Len())))
		}
	case reflect.Int32, reflect.Int64:
		if v.Int() != 0 {
			v.SetInt(int64(r.Int32()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			r.scramble(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			r.scramble(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.scramble(v.Index(i))
		}
	case reflect.Map:
		r.scrambleMap(v)
	}
}

// scrambleMap gives a map as many random entries as it has.
func (r random) scrambleMap(v reflect.Value) {
	if v.IsNil() {
		return
	}
	made := reflect.MakeMap(v.Type())
	for range v.Len() {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString(r.hex(20))
		if value.Kind() == reflect.String {
			value.SetString(r.hex(40))
		} else {
			r.scramble(value)
		}
		made.SetMapIndex(key, value)
	}
	v.Set(made)
}
