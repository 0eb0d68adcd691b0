package delta_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

func TestP02_CompareDecimal(t *testing.T) {
	long := strings.Repeat("9", 100)
	for _, test := range []struct {
		a, b  string
		order int
		ok    bool
	}{
		{"1", "2", -1, true},
		{"2", "1", 1, true},
		{"7", "7", 0, true},
		{"9", "10", -1, true},
		{"18446744073709551616", "18446744073709551615", 1, true}, // beyond 64 bits
		{long, "1" + strings.Repeat("0", 100), -1, true},
		{long, long, 0, true},
		{"", "1", 0, false},
		{"1", "", 0, false},
		{"", "", 0, false},
		{"0", "1", 0, false}, // never the version of an object
		{"0", "0", 0, false},
		{"01", "2", 0, false},
		{"+1", "2", 0, false},
		{"-1", "2", 0, false},
		{" 1", "2", 0, false},
		{"1 ", "2", 0, false},
		{"1.0", "2", 0, false},
		{"0x1", "2", 0, false},
		{"1", "a", 0, false},
		{"١", "2", 0, false}, // a digit, but not one of these ten
	} {
		order, ok := delta.CompareDecimal(test.a, test.b)
		if order != test.order || ok != test.ok {
			t.Errorf("CompareDecimal(%q, %q) = %d, %v; want %d, %v", test.a, test.b, order, ok, test.order, test.ok)
		}
	}
	longer := long + "1"
	if n := testing.AllocsPerRun(100, func() { delta.CompareDecimal(long, longer) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestP02_CompareDecimalOrdersAsNumbersDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,30}`)
		a, b := digits.Draw(t, "a"), digits.Draw(t, "b")
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		if order, ok := delta.CompareDecimal(a, b); !ok || order != x.Cmp(y) {
			t.Fatalf("CompareDecimal(%q, %q) = %d, %v", a, b, order, ok)
		}
	})
}
