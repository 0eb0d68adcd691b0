package tape

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func emptyBase() Base { return Base{Objects: func(func(Object) bool) {}} }

// newWriter returns a writer whose bases have the number of records before them as their version.
func newWriter(r *Ring, name string, written *int) *Writer {
	return r.NewWriter(WriterOptions{Name: name, Base: func() Base {
		base := emptyBase()
		base.Version = fmt.Sprint(*written)
		return base
	}})
}

func TestNewestRecordsStay(t *testing.T) {
	const most = 1 << 20
	r, written := New(Options{MaxBytes: most, MaxAge: time.Hour}), 0
	w := newWriter(r, "a", &written)
	for ; written < 10_000; written++ {
		data := bytes.Repeat([]byte{byte(written)}, 100+written%2000)
		w.Write(Record{Kind: Event, Version: fmt.Sprint(written), Data: data})
		clear(data)
	}
	if kept := r.Bytes(); kept > most || kept < most*3/4 {
		t.Errorf("%d bytes of %d are kept", kept, most)
	}
	track := r.Take().Tracks[0]
	first := written - len(track.Records)
	if track.Base.Version != fmt.Sprint(first) {
		t.Errorf("the base is that of %s records, and %d are gone", track.Base.Version, first)
	}
	for i, record := range track.Records {
		n := first + i
		want := bytes.Repeat([]byte{byte(n)}, 100+n%2000)
		if record.Version != fmt.Sprint(n) || !bytes.Equal(record.Data, want) {
			t.Fatalf("record %d has version %s and %d bytes", n, record.Version, len(record.Data))
		}
	}
}

func TestTakeStaysAsItIs(t *testing.T) {
	r, written := New(Options{MaxBytes: 1 << 20, MaxAge: time.Hour}), 0
	w := newWriter(r, "a", &written)
	w.Write(Record{Kind: Event, Data: []byte("first")})
	taken := r.Take()
	for range 10_000 {
		w.Write(Record{Kind: Event, Data: bytes.Repeat([]byte("x"), 1000)})
	}
	if records := taken.Tracks[0].Records; len(records) != 1 || string(records[0].Data) != "first" {
		t.Errorf("%d records, the first %q", len(records), records[0].Data)
	}
}

func TestOldRecordsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, written := New(Options{MaxBytes: 1 << 20, MaxAge: time.Minute}), 0
		w := newWriter(r, "a", &written)
		for range 300 {
			w.Write(Record{Kind: Event})
			time.Sleep(time.Second)
		}
		if n := len(r.Take().Tracks[0].Records); n < 60 || n > 63 {
			t.Errorf("%d records of the last minute, one a second", n)
		}
	})
}

// TestOldRecordsGoAfterAPause writes once, and again after a pause that is longer than MaxAge: a
// recording that is made during the pause, or after it, has no record from before.
func TestOldRecordsGoAfterAPause(t *testing.T) {
	for name, write := range map[string]bool{"during": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, written := New(Options{MaxBytes: 1 << 20, MaxAge: time.Minute}), 0
				w := newWriter(r, "a", &written)
				w.Write(Record{Kind: Event, Version: "before", Data: []byte("before")})
				written = 1
				time.Sleep(3 * time.Hour)
				want := 0
				if write {
					w.Write(Record{Kind: Event, Version: "after"})
					want = 1
				}
				track := r.Take().Tracks[0]
				if n := len(track.Records); n != want || n == 1 && track.Records[0].Version != "after" {
					t.Errorf("%d records are kept, want %d: %+v", n, want, track.Records)
				}
				if track.Base.Version != "1" {
					t.Errorf("the base is that of %s records, want 1", track.Base.Version)
				}
				if !write && r.Bytes() != 0 {
					t.Errorf("%d bytes of no record", r.Bytes())
				}
			})
		})
	}
}

// TestTextsCount writes records whose texts are larger than the rest of them.
func TestTextsCount(t *testing.T) {
	const most = 1 << 20
	long := strings.Repeat("x", 2000)
	for name, record := range map[string]Record{
		"key":      {Kind: Event, Key: long},
		"version":  {Kind: Page, Version: long},
		"continue": {Kind: Page, More: &More{Continue: long}},
		"request":  {Kind: List, More: &More{Request: &Request{Continue: long}}},
		"error":    {Kind: Failed, More: &More{Failure: &Failure{Error: long}}},
		"status":   {Kind: Failed, More: &More{Failure: &Failure{Status: []byte(long)}}},
	} {
		r, written := New(Options{MaxBytes: most, MaxAge: time.Hour}), 0
		w := newWriter(r, "a", &written)
		for range 2000 {
			w.Write(record)
		}
		if n := len(r.Take().Tracks[0].Records); n*len(long) > most || n*len(long) < most/2 {
			t.Errorf("%s: %d records of %d bytes are kept, in %d", name, n, len(long), most)
		}
	}
}

func TestLargeRecord(t *testing.T) {
	r, written := New(Options{MaxBytes: 1 << 20, MaxAge: time.Hour}), 0
	w := newWriter(r, "a", &written)
	w.Write(Record{Kind: Event, Data: make([]byte, 1<<18+1)}, Record{Kind: Event, Data: make([]byte, 1<<18)})
	records := r.Take().Tracks[0].Records
	if !records[0].LeftOut || records[0].Data != nil || records[1].LeftOut || len(records[1].Data) != 1<<18 {
		t.Errorf("%t with %d bytes, %t with %d", records[0].LeftOut, len(records[0].Data),
			records[1].LeftOut, len(records[1].Data))
	}
}

// TestALargeRingIsAllocatedAsItIsNeeded writes a record to rings of any size.
func TestALargeRingIsAllocatedAsItIsNeeded(t *testing.T) {
	for _, most := range []int64{1 << 20, 1 << 30, math.MaxInt64} {
		r, written := New(Options{MaxBytes: most, MaxAge: math.MaxInt64}), 0
		newWriter(r, "a", &written).Write(Record{Kind: Event, Data: []byte("first")})
		if n := cap(r.segments[0].buf); n > 1<<20 {
			t.Errorf("of %d bytes, %d are allocated", most, n)
		}
	}
}

func TestTracks(t *testing.T) {
	r, written := New(Options{MaxBytes: 1 << 20, MaxAge: time.Hour}), 0
	var writers []*Writer
	for _, name := range []string{"quiet", "second", "first", "ended"} {
		writers = append(writers, newWriter(r, name, &written))
	}
	for _, i := range []int{3, 2, 1, 2, 3} {
		writers[i].Write(Record{Kind: Event})
	}
	writers[3].End()
	var names []string
	for _, track := range r.Take().Tracks {
		names = append(names, fmt.Sprint(track.Name, " ", len(track.Records)))
	}
	if want := []string{"first 2", "second 1", "quiet 0"}; !slices.Equal(names, want) {
		t.Errorf("the tracks are %v, want %v", names, want)
	}
}

// BenchmarkWrite writes frames of 1.6 KB, one at a time, to a full ring of 16 MiB.
func BenchmarkWrite(b *testing.B) {
	w := New(Options{MaxBytes: 16 << 20, MaxAge: time.Hour}).NewWriter(WriterOptions{Base: emptyBase})
	frame := make([]byte, 1600)
	records := make([]Record, 1)
	write := func() {
		records[0] = Record{Kind: Event, Type: 2, Form: Protobuf, Key: "default/a", Version: "1", Data: frame}
		w.Write(records...)
	}
	for range 20_000 {
		write()
	}
	b.ReportAllocs()
	for b.Loop() {
		write()
	}
}
