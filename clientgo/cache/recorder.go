package cache

import (
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// WithRecorder returns lw with a flight recorder of the lists and watches of its informers: give
// one of package flight of this module. nil records nothing. Objects that lw yields are copied
// for the recorder, and encoded when a recording is written.
//
//	lw = cache.WithRecorder(lw, recorder)
//	informer := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
//
// A controller of New, which is client-go's, records nothing.
func WithRecorder(lw ListerWatcher, recorder source.Recorder) ListerWatcher {
	mustHave(lw, "WithRecorder")
	return listwatch.WithRecorder(lw, recorder)
}
