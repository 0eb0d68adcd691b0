package engine

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/store"
)

// push has the collection apply an event, which must be of the version 7.
func push(t *testing.T, c *Collection[string], e delta.Event[string]) {
	t.Helper()
	e.Version = "7"
	if err := c.queue.Push(t.Context(), "", e.Version, []delta.Event[string]{e}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// TestP11_IndexErrorsGoToTheirWriter: the program gets those of its own write, and they are reported
// for all others, before and after it.
func TestP11_IndexErrorsGoToTheirWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := optionsOf()
		o.Indexes = map[any]store.IndexFunc[string]{"fails": func(state string) ([]string, error) {
			return nil, errors.New("not " + state)
		}}
		var reported []string
		o.OnIndexErrors = func(failures []store.IndexError) {
			for _, f := range failures {
				reported = append(reported, f.Key)
			}
		}
		c, stop := run(t, o)
		failures := c.WriteByHand(func(s *store.Store[string]) {
			s.Update(func(b *store.Batch[string]) { b.Set("by hand", "B1") })
		})
		if len(failures) != 1 || failures[0].Key != "by hand" {
			t.Errorf("the write failed with %v", failures)
		}
		item := delta.Item[string]{Key: "later", UID: "C", Object: "C1"}
		push(t, c, delta.Event[string]{Type: delta.Set, Item: item})
		if !slices.Equal(reported, []string{"o", "later"}) {
			t.Errorf("failures for %q are reported", reported)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestP20_UndecodableObjectsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := optionsOf()
		var reported []delta.Unusable
		o.OnUndecodable = func(objects []delta.Unusable) { reported = append(reported, objects...) }
		c, stop := run(t, o)
		e := delta.Event[string]{Type: delta.Set, Unusable: true, Err: errors.New("a torn object")}
		e.Key, e.UID = "bad", "B"
		push(t, c, e)
		if len(reported) != 1 || reported[0].Key != "bad" || reported[0].Err != e.Err {
			t.Errorf("reported %+v", reported)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
