package sharedinformer

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// handlerName returns the name of a handler in logs and health: its package and type, or the
// function in which its functions are written.
func handlerName(handler cache.ResourceEventHandler) string {
	switch h := handler.(type) {
	case cache.ResourceEventHandlerFuncs:
		return nameOfFuncs(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *cache.ResourceEventHandlerFuncs:
		return nameOfFuncs(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case cache.ResourceEventHandlerDetailedFuncs:
		return nameOfFuncs(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *cache.ResourceEventHandlerDetailedFuncs:
		return nameOfFuncs(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	}
	t := reflect.TypeOf(handler)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "" {
		return fmt.Sprintf("%T", handler)
	}
	return t.PkgPath() + "." + t.Name()
}

// nameOfFuncs returns the function in which a handler's functions are written: the common part
// of their names, up to a dot.
func nameOfFuncs(handler any, functions ...any) string {
	common := ""
	for _, f := range functions {
		v := reflect.ValueOf(f)
		if v.IsNil() {
			continue
		}
		name := runtime.FuncForPC(v.Pointer()).Name()
		if common == "" {
			common = name
			continue
		}
		common = commonPrefix(common, name)
	}
	if dot := strings.LastIndexByte(common, '.'); dot > strings.LastIndexByte(common, '/') {
		common = common[:dot]
	}
	if common == "" {
		return fmt.Sprintf("%T", handler)
	}
	return common
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
