package dedup

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// attempts counts how often a decoder tries to share while it decodes n objects.
func attempts(t *testing.T, d *Decoder, n int, object func(i int) Message) (hits, misses int) {
	t.Helper()
	count := func() (hits, misses int) {
		for _, r := range idle(d) {
			hits, misses = hits+r.hits, misses+r.misses
		}
		s := d.table.Stats()
		return hits + int(s.Hits), misses + int(s.Misses)
	}
	hits, misses = count()
	for i := range n {
		data := encode(object(i).(encodable))
		if err := d.Unmarshal(data, newObject(d.typ.Elem())); err != nil {
			t.Fatal(err)
		}
	}
	newHits, newMisses := count()
	return newHits - hits, newMisses - misses
}

// TestUniqueFieldsAreLeftAlone decodes objects with nothing in common, then ones that are alike,
// then again such that are not: the decoder stops trying, begins again, and stops again.
func TestUniqueFieldsAreLeftAlone(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.ConfigMap{}, ShareAll)
	unique := func(i int) Message {
		return &corev1.ConfigMap{Data: map[string]string{"key": fmt.Sprintf("%x %d", rand.Uint64(), i)}}
	}
	alike := func(int) Message {
		return &corev1.ConfigMap{Data: map[string]string{"key": "the same value in all objects"}}
	}
	attempts(t, d, 300, unique)
	if hits, misses := attempts(t, d, 3200, unique); hits != 0 || misses > 3200/sampleRate*2 {
		t.Errorf("%d hits and %d misses in 3200 unique objects: it should have stopped trying", hits, misses)
	}
	attempts(t, d, 1000, alike)
	if hits, _ := attempts(t, d, 1000, alike); hits < 990 {
		t.Errorf("%d hits in 1000 objects that are alike: it should have begun again", hits)
	}
	attempts(t, d, 5000, unique)
	if _, misses := attempts(t, d, 3200, unique); misses > 3200/sampleRate*2 {
		t.Errorf("%d misses in 3200 unique objects: it should have stopped again", misses)
	}
}

// TestFieldStats follows the balances of a field.
func TestFieldStats(t *testing.T) {
	var s fieldStats
	if s.paused() || s.keepsEarly() {
		t.Error("a new field should try, and wait for a second sight")
	}
	n := 0
	for ; !s.paused(); n++ {
		if s.miss(100, 100, false) {
			t.Fatal("a value was kept at first sight")
		}
	}
	if n < 100 || n > 300 {
		t.Errorf("pauses after %d misses", n)
	}
	if !s.miss(100, 100, true) || s.paused() {
		t.Error("a value seen again should be kept, and end the pause")
	}
	for range 1000 {
		s.hit(200)
	}
	if !s.keepsEarly() || s.balance != mostBalance || s.earlyBalance != mostEarlyBalance {
		t.Errorf("%+v after 1000 hits", s)
	}
	for n = 0; s.miss(100, 100, false); n++ {
	}
	if n < 20 || n > 100 {
		t.Errorf("keeps %d values at first sight that do not come again", n)
	}
}
