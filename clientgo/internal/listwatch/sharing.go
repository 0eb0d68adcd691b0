package listwatch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/internal/dedup"
	"github.com/tidings-go/tidings/source"
)

// Sharing says what the cached objects of an informer have in common in memory. The zero
// value is all, among the objects of the informer.
type Sharing struct {
	// AtMost limits it.
	AtMost source.Sharing
	// Among is the table of those that share with each other; nil is one of the
	// informer's own.
	Among *source.Table
	// NoSecrets says that objects which do not tell their kind are no Secrets.
	NoSecrets bool
}

// SharingFor returns the choice for the objects of a resource, which is known: nothing where they
// are Secrets, or their metadata, whose annotations may hold what they hold.
func SharingFor(of source.Resource, atMost source.Sharing, among *source.Table) Sharing {
	if dedup.IsSecret(of.Group, of.Name, of.Kind) {
		atMost = source.ShareNothing
	}
	return Sharing{AtMost: atMost, Among: among, NoSecrets: true}
}

// Sharer returns what shares objects as s says, or nil where nothing is to be shared.
func (s Sharing) Sharer() *dedup.Sharer {
	if s.AtMost >= source.ShareNothing {
		return nil
	}
	table := s.Among
	if table == nil {
		table = new(source.Table)
	}
	return dedup.NewSharer(table, dedup.SharerOptions{Sharing: s.AtMost, NoSecrets: s.NoSecrets})
}

// CheckSharing panics if atMost is not one of the constants, because the functions of client-go
// that take options return no error. The message names the function that was called.
func CheckSharing(function string, atMost source.Sharing) {
	if atMost < source.ShareAll || atMost > source.ShareNothing {
		panic(fmt.Sprintf("%s: a Sharing of %d: use tidings.ShareAll, ShareStrings or ShareNothing", function, int(atMost)))
	}
}

// WithSharing returns lw with a choice for the informers that are made of it.
func WithSharing(lw cache.ListerWatcher, s Sharing) cache.ListerWatcher {
	return &sharing{cache.ToListerWatcherWithContext(lw), lw, s}
}

// SharingOf returns the choice that lw was given, the zero value if none was.
func SharingOf(lw cache.ListerWatcher) Sharing {
	if with, ok := lw.(*sharing); ok {
		return with.choice
	}
	return Sharing{}
}

// sharing is a cache.ListerWatcher with a choice.
type sharing struct {
	cache.ListerWatcherWithContext
	of     cache.ListerWatcher
	choice Sharing
}

var _ cache.ListerWatcher = (*sharing)(nil)

func (s *sharing) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

func (s *sharing) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// IsWatchListSemanticsUnSupported says what lw says.
func (s *sharing) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(s.of)
}
