package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// TestP09_RunWaitsForAMerge ends Run while the transform of an object in slots that come takes a
// minute.
func TestP09_RunWaitsForAMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := optionsOf()
		o.Slots = slot.NewHolding(slot.UID, slot.Set{})
		partOf := o.Part
		o.Part = func(ctx context.Context, namespace string, scope source.Scope) Part[string] {
			p := partOf(ctx, namespace, scope)
			p.Reflector.Transform = func(state string) (string, error) {
				time.Sleep(time.Minute)
				return state, nil
			}
			return p
		}
		_, stop := run(t, o)
		added := make(chan error, 1)
		go func() { added <- o.Slots.Add(context.Background(), slot.All()) }()
		synctest.Wait()
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Run has returned after %v", took)
		}
		if err := <-added; err != nil {
			t.Errorf("Add to an informer that stops: %v", err)
		}
	})
}
