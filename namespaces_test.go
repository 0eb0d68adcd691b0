package tidings

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/source"
)

// slowToEnd is a source whose watch takes a second to end.
type slowToEnd struct{}

func (slowToEnd) List(context.Context, source.ListOptions) (source.Page[*corev1.ConfigMap], error) {
	return source.Page[*corev1.ConfigMap]{Version: "1"}, nil
}

func (slowToEnd) Watch(
	ctx context.Context, o source.WatchOptions,
) (source.Stream[*corev1.ConfigMap], error) {
	if o.SendInitialEvents {
		return nil, source.ErrStreamedListRefused
	}
	return endingStream{ctx}, nil
}

type endingStream struct{ ctx context.Context }

func (s endingStream) Next() ([]source.Event[*corev1.ConfigMap], error) {
	<-s.ctx.Done()
	time.Sleep(time.Second)
	return nil, s.ctx.Err()
}

func (endingStream) Close() error { return nil }

func TestWatchHasEndedWhenItsNamespaceIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		selected, err := Selection{Namespaces: []string{"a", "b"}}.check(source.ScopeNamespaced, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newCollection(collectionOptions[*corev1.ConfigMap]{
			name: "slow", selection: selected, resource: source.Resource{Scope: source.ScopeNamespaced},
			source: func(string) source.Source[*corev1.ConfigMap] { return slowToEnd{} },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		if ctx, err = c.Claim(ctx); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- c.run(ctx) }()
		synctest.Wait()
		began := time.Now()
		if err := c.RemoveNamespace("b"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the removal returned after %v, the watch ended after a second", took)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
