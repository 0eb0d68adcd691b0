package health

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyWatch draws watches whose values are few, so that equal ones meet.
var anyWatch = rapid.Custom(func(t *rapid.T) (w Watch) {
	small := rapid.IntRange(0, 3)
	for field, v := range reflect.ValueOf(&w).Elem().Fields() {
		n := small.Draw(t, field.Name)
		switch at := v.Addr().Interface().(type) {
		case *time.Time:
			if n > 0 {
				*at = time.Unix(int64(n), 0).UTC()
			}
			continue
		case *error:
			if n > 0 {
				*at = errors.New(fmt.Sprint("error ", n))
			}
			continue
		case *State:
			*at = rapid.SampledFrom([]State{
				StateWatching, StateSilent, StateListing, StatePending, StateBackoff, StateNoSuchResource,
				StateForbidden, StateStopped,
			}).Draw(t, "state")
			continue
		case *[]Transition, *string: // History and Version are of one namespace
			continue
		}
		switch v.Kind() {
		case reflect.Bool:
			v.SetBool(n > 1)
		case reflect.Int:
			v.SetInt(int64(n))
		default:
			v.SetUint(uint64(n))
		}
	}
	return w
})

// sum adds up watches in their order.
func sum(all ...Watch) (w Watch) {
	for _, one := range all {
		w.Add(one)
	}
	return w
}

// show shows a watch with the texts of its errors.
func show(w Watch) string { return fmt.Sprintf("%+v", formOf(w)) }

// TestP13_SumsOfWatches checks the laws of Watch.Add. The first one fails for a field that Add
// forgets.
func TestP13_SumsOfWatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyWatch.Draw(t, "a"), anyWatch.Draw(t, "b"), anyWatch.Draw(t, "c")
		equal := func(law string, got, want Watch) {
			if show(got) != show(want) {
				t.Fatalf("%s:\n%s\nand\n%s", law, show(got), show(want))
			}
		}
		equal("nothing and a are a", sum(a), a)
		equal("a and nothing are a", sum(a, Watch{}), a)
		equal("the order does not matter", sum(a, b), sum(b, a))
		equal("nor do groups", sum(sum(a, b), c), sum(a, sum(b, c)))

		all := sum(a, b, c)
		ofOne := false
		for _, w := range []Watch{a, b, c} {
			ofOne = ofOne || w.State == all.State && w.Since.Equal(all.Since) && w.RetryAt.Equal(all.RetryAt)
			switch {
			case severity[w.State] > severity[all.State]:
				t.Errorf("the state is %s, and one is in %s", all.State, w.State)
			case !w.LastEvent.IsZero() && w.LastEvent.Before(all.LastEvent):
				t.Errorf("the last event is of %v, that of one of %v", all.LastEvent, w.LastEvent)
			case !w.FailingSince.IsZero() && (all.FailingSince.IsZero() || w.FailingSince.Before(all.FailingSince)):
				t.Errorf("failing since %v, one since %v", all.FailingSince, w.FailingSince)
			case w.LastErrorAt.After(all.LastErrorAt) ||
				(w.Undecodable > 0 || all.Undecodable == 0) && w.LastDroppedAt.After(all.LastDroppedAt) ||
				w.LastTransformErrorAt.After(all.LastTransformErrorAt):
				t.Errorf("the last errors are %s, those of one %s", show(all), show(w))
			}
		}
		if !ofOne {
			t.Errorf("state, since and retryAt are of none: %s", show(all))
		}
	})
}

// TestP13_CountersOfARemovedNamespace: AddCounters adds each counter that never goes back, and
// nothing else.
func TestP13_CountersOfARemovedNamespace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, removed := anyWatch.Draw(t, "before"), anyWatch.Draw(t, "removed")
		after, want := before, before
		after.AddCounters(removed)
		for field, v := range reflect.ValueOf(&want).Elem().Fields() {
			if v.Kind() == reflect.Uint64 {
				v.SetUint(v.Uint() + reflect.ValueOf(removed).FieldByIndex(field.Index).Uint())
			}
		}
		if show(after) != show(want) {
			t.Fatalf("%s, want %s", show(after), show(want))
		}
	})
}
