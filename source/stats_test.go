package source

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// anyStats draws counts and reasons, few of them, so that equal ones meet.
var anyStats = rapid.Custom(func(t *rapid.T) (s DecodingStats) {
	small := rapid.IntRange(0, 3)
	var draw func(v reflect.Value)
	draw = func(v reflect.Value) {
		for field, v := range v.Fields() {
			n := small.Draw(t, field.Name)
			switch at := v.Addr().Interface().(type) {
			case *error:
				if n > 0 {
					*at = errors.New(fmt.Sprint("reason ", n))
				}
			case *int64:
				*at = int64(n)
			default:
				draw(v)
			}
		}
	}
	draw(reflect.ValueOf(&s).Elem())
	return s
})

// TestP13_SumsOfDecodingStats has the laws of Add. A field that it leaves out breaks the first one.
func TestP13_SumsOfDecodingStats(t *testing.T) {
	sum := func(all ...DecodingStats) (s DecodingStats) {
		for _, one := range all {
			s.Add(one)
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyStats.Draw(t, "a"), anyStats.Draw(t, "b"), anyStats.Draw(t, "c")
		equal := func(law string, got, want DecodingStats) {
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Fatalf("%s:\n%+v\nand\n%+v", law, got, want)
			}
		}
		equal("nothing and a are a", sum(a), a)
		equal("a and nothing are a", sum(a, DecodingStats{}), a)
		equal("the order does not matter", sum(a, b), sum(b, a))
		equal("nor do groups", sum(sum(a, b), c), sum(a, sum(b, c)))
	})
}
