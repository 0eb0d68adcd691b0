package dedup

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"
)

// decodePods decodes all and returns the pods.
func decodePods(t *testing.T, d *Decoder, all [][]byte) []*corev1.Pod {
	t.Helper()
	pods := make([]*corev1.Pod, len(all))
	for i, data := range all {
		pods[i] = &corev1.Pod{}
		if err := d.Unmarshal(data, pods[i]); err != nil {
			t.Fatal(err)
		}
	}
	return pods
}

// sweepAll sweeps every slot of a table n times, as happens while objects are decoded.
func sweepAll(table *Table, n int) {
	for range n {
		table.maintain(max(len(*table.values.slots.Load()), len(*table.texts.slots.Load())))
	}
}

// TestTableKeepsNoValue drops all objects and goes through the table: nothing but
// the table itself may be left.
func TestTableKeepsNoValue(t *testing.T) {
	table := new(Table)
	d := NewDecoder(table, &corev1.Pod{}, ShareAll)
	pods := decodePods(t, d, newCorpus(1, 10).pods(50))
	values := []weak.Pointer[byte]{
		weak.Make((*byte)(unsafe.Pointer(&pods[9].Spec.Containers[0].Env[0]))),
		weak.Make((*byte)(unsafe.Pointer(pods[9].Spec.Containers[1].SecurityContext))),
	}
	if s := table.Stats(); s.Values < 100 || s.Strings < 100 || s.Bytes < 100*costValue+100*costText {
		t.Fatalf("%+v: little was shared", s)
	}
	runtime.GC()
	sweepAll(table, 1)
	if s := table.Stats(); s.Values < 100 {
		t.Errorf("%+v: values that are in use were dropped", s)
	}
	for _, v := range values {
		if v.Value() == nil {
			t.Error("a value that is in use is gone")
		}
	}
	runtime.KeepAlive(pods)
	pods = nil
	runtime.GC()
	for _, v := range values {
		if v.Value() != nil {
			t.Error("a value is in memory that no object has")
		}
	}
	sweepAll(table, 2)
	if s := table.Stats(); s.Values != 0 || s.Strings != 0 || s.Bytes != 0 {
		t.Errorf("%+v: something is left that no object has", s)
	}
}

// TestStringsInUseStay decodes the same pods until the table has gone round some times: their
// strings must stay the same ones, also those that are mostly found without the table.
func TestStringsInUseStay(t *testing.T) {
	table := new(Table)
	d := NewDecoder(table, &corev1.Pod{}, ShareAll)
	all := newCorpus(1, 10).pods(5)
	decodePods(t, d, all)
	first := decodePods(t, d, all)
	compare := func(d *Decoder) {
		for i, pod := range decodePods(t, d, all) {
			if unsafe.StringData(pod.Namespace) != unsafe.StringData(first[i].Namespace) || unsafe.StringData(string(pod.Status.Phase)) != unsafe.StringData(string(first[i].Status.Phase)) {
				t.Fatalf("in round %d, a string was forgotten that is in use all the time", table.round.Load())
			}
		}
	}
	for table.round.Load() < 5 {
		compare(d)
	}
	compare(NewDecoder(table, &corev1.Pod{}, ShareAll)) // which has only the table
}

// TestOneHashForAll puts values and strings with one hash into a table: a search
// stays short, and the table small.
func TestOneHashForAll(t *testing.T) {
	table := new(Table)
	table.init()
	s := &keySpace{}
	kept := make([]*[32]byte, 5000)
	for i := range kept {
		kept[i] = new([32]byte)
		key := fmt.Sprint("key ", i)
		keep(table, &table.values, 77, &valueEntry{space: s, key: key, at: weak.Make(&kept[i][0])})
		keep(table, &table.texts, 77, newTextEntry(key, noTag))
		if _, v := table.findValue(77, s, []byte(key), nil); v.at != unsafe.Pointer(kept[i]) {
			t.Fatalf("the value of %q is not there", key)
		}
		if text, _ := table.findText(77, []byte(key), noTag); text == nil || *text != key {
			t.Fatalf("%q is not there", key)
		}
	}
	if stats := table.Stats(); stats.Values > window || stats.Strings > window || stats.Bytes > 2*window*300 {
		t.Errorf("%+v: at most %d of each were expected", stats, window)
	}
	if n, m := len(*table.values.slots.Load()), len(*table.texts.slots.Load()); n != leastValueSlots || m != leastTextSlots {
		t.Errorf("the table has grown to %d and %d slots", n, m)
	}
	// The bytes decide, not the hash.
	if e, _ := table.findValue(77, s, []byte("key"), nil); e != nil {
		t.Error("found the value of another key")
	}
	if e, _ := table.findValue(77, new(keySpace), []byte("key 4999"), nil); e != nil {
		t.Error("found the value of another type")
	}
}

// TestBudget puts more into a table than it may hold.
func TestBudget(t *testing.T) {
	table := &Table{MaxBytes: 20_000}
	d := NewDecoder(table, &corev1.Pod{}, ShareAll)
	all := newCorpus(1, 10).pods(50)
	pods := decodePods(t, d, all)
	s := table.Stats()
	if s.Budget != 20_000 || s.Bytes > s.Budget || s.Refused == 0 {
		t.Errorf("%+v: the budget does not hold", s)
	}
	// A budget that has become smaller is kept, too.
	table.mu.Lock()
	table.MaxBytes = 5_000
	table.setBudgetLocked()
	table.mu.Unlock()
	sweepAll(table, 3)
	if s := table.Stats(); s.Bytes > 5_000 {
		t.Errorf("%+v: the budget does not hold", s)
	}
	runtime.KeepAlive(pods)
	for _, data := range all {
		same(t, d, data)
		keen(d)
	}
	// When the values in the table are gone, there is room again.
	pods = nil
	runtime.GC()
	sweepAll(table, 2)
	kept := table.Stats().Kept
	pods = decodePods(t, d, all)
	if s := table.Stats(); s.Kept == kept {
		t.Errorf("%+v: nothing more is kept", s)
	}
	runtime.KeepAlive(pods)
}

// TestBytesAreWhatTheTableTakes compares the table's account with the heap.
func TestBytesAreWhatTheTableTakes(t *testing.T) {
	table := &Table{MaxBytes: 1 << 30}
	table.init()
	s := &keySpace{}
	values := make([]*[32]byte, 1<<15)
	for i := range values {
		values[i] = new([32]byte)
	}
	before, _ := memory()
	for i := range values {
		key := string(binary.BigEndian.AppendUint64(make([]byte, 92), uint64(i)))
		h := table.hash(s, []byte(key))
		keep(table, &table.values, h, &valueEntry{space: s, key: key, at: weak.Make(&values[i][0])})
	}
	after, _ := memory()
	took := float64(after - before)
	if bytes := float64(table.Stats().Bytes); took < 0.6*bytes || took > 1.4*bytes {
		t.Errorf("%.0f bytes are accounted, the heap has grown by %.0f", bytes, took)
	}
	runtime.KeepAlive(values)
	runtime.KeepAlive(table)
}

// TestSeenFilter marks a hash again, and another one not.
func TestSeenFilter(t *testing.T) {
	table := new(Table)
	table.init()
	for i := range 100 {
		h := table.hash(textSpace, fmt.Append(nil, i))
		if table.seen.mark(h, 7, false) {
			t.Fatalf("hash %d was not seen before", i)
		}
		for by, want := range map[objectTag]bool{7: false, 8: true, noTag: true} {
			if table.seen.mark(h, by, false) != want {
				t.Fatalf("hash %d, seen in object 7 and then in %d: repeated: %v", i, by, !want)
			}
		}
	}
}

// TestOwnValuesAndRoom checks that a value counts as seen before for the object that had it first
// only while the table does not spare room, whether it did when the value was first seen or not.
func TestOwnValuesAndRoom(t *testing.T) {
	table := new(Table)
	table.init()
	for i, atFirst := range []bool{false, true} {
		h := table.hash(textSpace, fmt.Append(nil, i))
		table.quarterFull.Store(atFirst)
		if table.seenValue(h, 7) {
			t.Fatalf("sparing %v: the value was not seen before", atFirst)
		}
		for _, now := range []bool{false, true, false} {
			table.quarterFull.Store(now)
			if again := table.seenValue(h, 7); again == now {
				t.Errorf("sparing at first %v, now %v: seen before by the same object: %v", atFirst, now, again)
			}
			if !table.seenValue(h, 8) {
				t.Errorf("sparing at first %v, now %v: not seen before by another object", atFirst, now)
			}
		}
	}
}
