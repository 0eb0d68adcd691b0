package source

import (
	"fmt"
	"math"
	"time"
)

// Transport tunes how objects are read from a server. Its zero value is ready. PageSize to
// Backoff are for informers, the rest is for the sources of this package.
type Transport struct {
	// PageSize is the limit of objects in a page of a list that is not streamed; 0 means 500.
	PageSize int64
	// NoStreamedLists reads every list in pages.
	NoStreamedLists bool
	// ConsistentFirstList makes the first list of an informer ask for the newest state also where
	// it is one in pages; streamed lists do so anyway, and so does every later list. Without it,
	// a first list in pages is any state that the API server has in memory. That of a server that
	// lags may be older than the writes of an earlier process of the same program: wait with
	// WaitFor then, or set this. It costs a server twice the processor time: 173 ms instead of 82
	// for 10,000 objects of 1 KB in pages of 500 (BenchmarkFirstList in e2e, Kubernetes 1.37).
	ConsistentFirstList bool
	// WatchTimeout is the least time after which the server is asked to end a watch, which is
	// then begun anew; the most is twice that. 0 means 5 minutes, the least is a second.
	WatchTimeout time.Duration
	// MaxSilence is the time for which a list, streamed or in pages, may bring nothing before it is
	// ended and begun anew: no byte of a page, no object of a streamed list. A list that
	// brings something may take as long as it needs. 0 means 2 minutes, twice the time that a
	// kube-apiserver gives itself for a request; below 0 there is no limit, and the least
	// above is a second. Sources that do not call ListOptions.OnActivity are limited in
	// streamed lists only.
	MaxSilence time.Duration
	// Backoff configures the waits after failures.
	Backoff Backoff

	// NoServerDrop keeps the server from leaving out metadata.managedFields. Without it, sources
	// whose objects go without the field ask the server to leave it out, which Kubernetes does from
	// 1.38 on, with the alpha feature ManagedFieldsOptOut. That saves about a third of the bytes of
	// objects in protobuf. It costs the server one more encoding of each event, if other clients
	// watch the same objects with the field. The field is left out of cached objects either way.
	NoServerDrop bool
	// MaxFrameBytes bounds one frame of a watch; 0 means 32 MiB, the least is 1,000.
	MaxFrameBytes int
	// MaxListBytes bounds the memory of one page of a list: its bytes, or the sizes of the
	// Go structs of its objects where these are larger. 0 means 2 GiB, where int has 32 bits
	// 512 MiB; the least is 1,000.
	MaxListBytes int
	// ListBudget bounds the memory of the pages of several sources at once; nil means the
	// budget of the client, of 4 GiB, where int has 32 bits of 1 GiB.
	ListBudget *Budget
	// Sharing selects the parts of decoded objects that are shared; 0 means ShareAll.
	Sharing Sharing
	// Table holds the parts that the objects share; nil means the table of the client.
	Table *Table
	// Recorder keeps the answers and events that informers read, to be replayed: give one of
	// package flight. nil keeps nothing. Sources themselves do not use it.
	Recorder Recorder
	// Tracer starts a span for each list and each watch of informers: give one of package tracing.
	// nil starts none. Sources themselves do not use it.
	Tracer Tracer
}

// Backoff configures the waits between attempts. Its zero value is ready.
type Backoff struct {
	// Initial is the wait after the first failure, a millisecond or more; 0 means 800 ms.
	Initial time.Duration
	// Max is the longest wait before jitter, a millisecond or more; 0 means 30 s. A longer
	// wait that the server asks for is obeyed up to 5 minutes.
	Max time.Duration
	// Jitter is how far a wait is moved at random, as a part of it: 0.5 moves it to between
	// 0.5 and 1.5 of itself. 0 means 0.5; a negative value means none. The most is 1.
	Jitter float64
}

// Check returns an error that names the first option that cannot be used, as a field of a
// struct called name, or nil. The least durations keep a watch or a list from ending before
// it can bring anything, and a failing server from being asked without a pause.
func (o Transport) Check(name string) error {
	refuse := func(field string, value any, remedy string) error {
		return fmt.Errorf("%s.%s is %v: %s", name, field, value, remedy)
	}
	if o.PageSize < 0 {
		return refuse("PageSize", o.PageSize, "give a number of objects, or 0 for 500")
	}
	for _, d := range []struct {
		field        string
		value, least time.Duration
		zero         string
	}{
		{"WatchTimeout", o.WatchTimeout, time.Second, "5 minutes"},
		{"MaxSilence", max(o.MaxSilence, 0), time.Second, "2 minutes, or less for no limit"},
		{"Backoff.Initial", o.Backoff.Initial, time.Millisecond, "800 ms"},
		{"Backoff.Max", o.Backoff.Max, time.Millisecond, "30 s"},
	} {
		if d.value != 0 && d.value < d.least {
			return refuse(d.field, d.value, fmt.Sprintf("give %v or more, or 0 for %s", d.least, d.zero))
		}
	}
	if j := o.Backoff.Jitter; math.IsNaN(j) || math.IsInf(j, 0) || j > 1 {
		return refuse("Backoff.Jitter", j, "give a part between 0 and 1, 0 for 0.5, or less for none")
	}
	atLeast := func(standard string) string {
		return fmt.Sprintf("give %d bytes or more, or 0 for %s", leastBytes, standard)
	}
	switch {
	case o.MaxFrameBytes != 0 && o.MaxFrameBytes < leastBytes:
		return refuse("MaxFrameBytes", o.MaxFrameBytes, atLeast("32 MiB"))
	case o.MaxListBytes != 0 && o.MaxListBytes < leastBytes:
		return refuse("MaxListBytes", o.MaxListBytes, atLeast("2 GiB"))
	case o.ListBudget != nil && o.ListBudget.MaxBytes < 0:
		return refuse("ListBudget.MaxBytes", o.ListBudget.MaxBytes,
			"give a number of bytes, or 0 for 4 GiB")
	case o.Sharing < ShareAll || o.Sharing > ShareNothing:
		return refuse("Sharing", int(o.Sharing), "use ShareAll, ShareStrings or ShareNothing")
	}
	return nil
}
