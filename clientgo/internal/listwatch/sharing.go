package listwatch

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/source"
)

// Sharing selects the parts that the cached objects of an informer share in memory. With the zero
// value, the objects of the informer share all equal parts.
type Sharing struct {
	// AtMost limits the parts.
	AtMost source.Sharing
	// Among is the table of the informers that share with each other; nil is a table of the
	// informer's own.
	Among *source.Table
	// NoSecrets reports whether objects without a kind are known not to be Secrets.
	NoSecrets bool
}

// SharingFor returns the choice for the objects of a known resource. Secrets and their
// metadata, whose annotations may repeat their data, share nothing.
func SharingFor(of source.Resource, atMost source.Sharing, among *source.Table) Sharing {
	if dedup.IsSecret(of.Group, of.Name, of.Kind) {
		atMost = source.ShareNothing
	}
	return Sharing{AtMost: atMost, Among: among, NoSecrets: true}
}

// Sharer returns the sharer of decoded objects, nil if they share nothing.
func (s Sharing) Sharer() *dedup.Sharer {
	if s.AtMost >= source.ShareNothing {
		return nil
	}
	table := cmp.Or(s.Among, new(source.Table))
	return dedup.NewSharer(table, dedup.SharerOptions{Sharing: s.AtMost, NoSecrets: s.NoSecrets})
}

// CheckSharing panics if atMost is not one of the constants, because options return no
// error. The message begins with the name of the option.
func CheckSharing(option string, atMost source.Sharing) {
	if atMost < source.ShareAll || atMost > source.ShareNothing {
		panic(fmt.Sprintf("%s: a Sharing of %d: use tidings.ShareAll, ShareStrings or ShareNothing",
			option, int(atMost)))
	}
}

// WithSharing returns lw with a choice for the informers that are made with it.
func WithSharing(lw cache.ListerWatcher, s Sharing) cache.ListerWatcher {
	if of, ok := lw.(Readable); ok {
		table := cmp.Or(s.Among, new(source.Table))
		return chosen{of, func(o *source.RESTOptions) { o.Sharing, o.Table = s.AtMost, table }}
	}
	return &wrapper{cache.ToListerWatcherWithContext(lw), lw, s, RecorderOf(lw)}
}

// WithRecorder returns lw with a flight recorder for the informers that are made with it; nil
// records nothing.
func WithRecorder(lw cache.ListerWatcher, recorder source.Recorder) cache.ListerWatcher {
	if of, ok := lw.(Readable); ok {
		return chosen{of, func(o *source.RESTOptions) { o.Recorder = recorder }}
	}
	return &wrapper{cache.ToListerWatcherWithContext(lw), lw, SharingOf(lw), recorder}
}

// RecorderOf returns the recorder of WithRecorder, nil without one.
func RecorderOf(lw cache.ListerWatcher) source.Recorder {
	if w, ok := lw.(*wrapper); ok {
		return w.recorder
	}
	return nil
}

// SharingOf returns the choice of WithSharing, the zero value without one.
func SharingOf(lw cache.ListerWatcher) Sharing {
	if w, ok := lw.(*wrapper); ok {
		return w.sharing
	}
	return Sharing{}
}

// wrapper is a cache.ListerWatcher with choices.
type wrapper struct {
	cache.ListerWatcherWithContext
	of       cache.ListerWatcher
	sharing  Sharing
	recorder source.Recorder
}

var _ cache.ListerWatcher = (*wrapper)(nil)

func (w *wrapper) List(o metav1.ListOptions) (runtime.Object, error) {
	return w.ListWithContext(context.Background(), o)
}

func (w *wrapper) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

// IsWatchListSemanticsUnSupported reports whether lw declares that it cannot stream lists.
func (w *wrapper) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(w.of)
}
