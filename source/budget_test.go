package source

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// limits are values of an option that bounds something.
var limits = []int{0, leastBytes, 2000, 1 << 20, math.MaxInt32, math.MaxInt/2 + 1, math.MaxInt - 1, math.MaxInt}

// TestExtremeLimits reads a list in both encodings, and a watch, under every limit: either
// all is read, or the error says that it was larger than the limit.
func TestExtremeLimits(t *testing.T) {
	podsInJSON := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + podJSON("a", "3") + `]` + strings.Repeat(" ", 2*leastBytes) + `}`
	frame := jsonFrame("ADDED", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"`+strings.Repeat("x", 3*initialBuffer)+`"}}`)
	for _, limit := range limits {
		o := RESTOptions{Transport: Transport{MaxListBytes: limit, MaxFrameBytes: limit}}
		for mediaType, body := range map[string]string{protobufType: listOf(t, podList(t, 1)), jsonType: podsInJSON} {
			page, err := NewTyped(serve(t, answerWith(200, mediaType, body)), pods, newPod, o).List(t.Context(), ListOptions{})
			if small := limit > 0 && limit < max(len(body), int(reflect.TypeFor[corev1.Pod]().Size())); small != errors.Is(err, ErrFrameTooLarge) || !small && (err != nil || len(page.Items) != 1) {
				t.Errorf("a list in %s with the limit %d: %d items, %v", mediaType, limit, len(page.Items), err)
			}
		}
		stream, err := NewTyped(serve(t, answerWith(200, jsonType, frame)), pods, newPod, o).Watch(t.Context(), WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		events, err := stream.Next()
		if small := limit > 0 && limit < len(frame); small != errors.Is(err, ErrFrameTooLarge) || !small && (err != nil || len(events) != 1) {
			t.Errorf("a watch with the limit %d: %d events, %v", limit, len(events), err)
		}
		stream.Close() //nolint:errcheck // the body is the server's
	}
	for _, budget := range []*Budget{nil, {}, {MaxBytes: 1}, {MaxBytes: math.MaxInt64}} {
		if err := (Transport{ListBudget: budget}).Check("Transport"); err != nil {
			t.Errorf("a budget of %+v: %v", budget, err)
		}
	}
	for name, transport := range map[string]Transport{
		"MaxListBytes":         {MaxListBytes: -1},
		"MaxFrameBytes":        {MaxFrameBytes: math.MinInt},
		"ListBudget.MaxBytes":  {ListBudget: &Budget{MaxBytes: -1}},
		"PageSize":             {PageSize: -1},
		"Backoff.Jitter":       {Backoff: Backoff{Jitter: math.NaN()}},
		"MaxFrameBytes is 999": {MaxFrameBytes: leastBytes - 1},
	} {
		o := RESTOptions{Transport: transport}
		s := NewTyped(serve(t, answerWith(200, jsonType, podsInJSON)), pods, newPod, o)
		_, err := s.List(t.Context(), ListOptions{})
		if watchErr := openAndClose(s.Watch(t.Context(), WatchOptions{})); err == nil || watchErr == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, err, watchErr)
		}
	}
}

// allocated returns the bytes that f allocates, and those of them that are alive after it.
func allocated(f func()) (total, alive uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
}

// TestAnnouncedFrames takes no memory for frames that are announced and do not come.
func TestAnnouncedFrames(t *testing.T) {
	for _, announced := range []string{"\x7f\xff\xff\xf0", "\x80\x00\x00\x00", "\xff\xff\xff\xff"} {
		var err error
		n, _ := allocated(func() {
			_, err = newFrames(strings.NewReader(announced+"x"), lengths(), math.MaxInt).next(true)
		})
		if n > 2*maxAnnounced || !errors.Is(err, ErrCutFrame) && !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("%x: %d bytes were allocated, %v", announced, n, err)
		}
	}
}

// TestMemoryOfObjects reads 600 KB of items that are nearly nothing, in all forms, and
// decodes none of them beyond the limit; those without a name take next to nothing.
func TestMemoryOfObjects(t *testing.T) {
	const items = 200_000
	inJSON := func(item string) string {
		return `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + strings.Repeat(item+",", items-1) + item + "]}"
	}
	unusual := func(usual string) string { return usual[:4] + "\x4a\x01x" + usual[4:] }
	nameless := listOf(t, strings.Repeat("\x12\x00", items))
	named := listOf(t, strings.Repeat("\x12\x05\x0a\x03\x0a\x01a", items))
	for _, tt := range []struct {
		name, mediaType, body string
		limit                 int
		most                  uint64 // that is alive
		tooLarge              bool
	}{
		{"nameless", protobufType, nameless, 0, 40 << 20, false},
		{"nameless in JSON", jsonType, inJSON("{}"), 0, 40 << 20, false},
		{"beyond the limit", protobufType, named, 16 << 20, 40 << 20, true},
		{"beyond the limit, in an unusual order", protobufType, unusual(named), 16 << 20, 40 << 20, true},
		{"beyond the limit, in JSON", jsonType, inJSON(`{"metadata":{"name":"a"}}`), 16 << 20, 40 << 20, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewTyped(serve(t, answerWith(200, tt.mediaType, tt.body)), pods, newPod, RESTOptions{Transport: Transport{MaxListBytes: tt.limit}})
			var page Page[*corev1.Pod]
			var err error
			_, alive := allocated(func() { page, err = s.List(t.Context(), ListOptions{}) })
			if errors.Is(err, ErrFrameTooLarge) != tt.tooLarge || err != nil && !tt.tooLarge {
				t.Errorf("%d items, %v", len(page.Items), err)
			}
			if tt.tooLarge && (errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "a list that takes memory")) {
				t.Errorf("the error is %v", err)
			}
			if alive > tt.most {
				t.Errorf("%d bytes are alive", alive)
			}
			for _, item := range page.Items {
				if !errors.Is(item.Err, ErrNameless) || item.Object != nil {
					t.Fatalf("an item %+v, want %v", item, ErrNameless)
				}
			}
		})
	}
}

// TestDiscoveryIsLimited reads no more of a discovery document than it may have, and does
// not hold the resources that it does not look for.
func TestDiscoveryIsLimited(t *testing.T) {
	document := `{"kind":"APIResourceList","resources":[` + strings.Repeat("{},", 1<<20) + `{"name":"pods","kind":"Pod","namespaced":true}]}`
	document += strings.Repeat(" ", maxDiscoveryBytes-len(document))
	client := serve(t, answerWith(200, jsonType, document))
	var resource Resource
	var err error
	_, alive := allocated(func() {
		resource, err = client.Resolve(t.Context(), Resource{Version: "v1", Kind: "Pod"})
	})
	if err != nil || resource.Name != "pods" || resource.Scope != ScopeNamespaced {
		t.Errorf("%+v, %v", resource, err)
	}
	if alive > 64<<20 {
		t.Errorf("%d bytes are alive", alive)
	}
	asked := Resource{Version: "v1", Kind: "Pod"}
	o := RESTOptions{Transport: Transport{MaxListBytes: maxDiscoveryBytes - 1}}
	_, err = NewTyped(client, asked, newPod, o).List(t.Context(), ListOptions{})
	if !errors.Is(err, ErrFrameTooLarge) || !strings.Contains(err.Error(), "MaxListBytes") {
		t.Errorf("beyond MaxListBytes: %v", err)
	}
	endless := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.CopyN(w, &endless{}, maxDiscoveryBytes+1) //nolint:errcheck // the client leaves
	})
	if _, err = endless.Resolve(t.Context(), asked); !errors.Is(err, ErrMalformed) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestBudget reads many pages at once, of which two have room at a time: all are read, one
// after the other, and no more than the budget and one page is in memory.
func TestBudget(t *testing.T) {
	const pages, size, parts = 20, 1000, 10
	synctest.Test(t, func(t *testing.T) {
		budget := &Budget{MaxBytes: 2 * size}
		var most int64
		var all sync.WaitGroup
		for range pages {
			all.Go(func() {
				r := &pageReader{ctx: t.Context(), body: strings.NewReader(strings.Repeat("x", size)), limit: size, budget: budget}
				for part := make([]byte, size/parts); ; {
					_, err := r.Read(part)
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Error(err)
					}
					budget.mu.Lock()
					most = max(most, budget.used)
					if n := len(budget.pages); n > pages {
						t.Errorf("%d pages of %d are counted", n, pages)
					}
					budget.mu.Unlock()
					time.Sleep(time.Millisecond)
				}
				r.done()
			})
		}
		all.Wait()
		if budget.used != 0 || len(budget.pages) != 0 {
			t.Errorf("%d bytes, %d pages are left", budget.used, len(budget.pages))
		}
		// Each page has read one part when it learns that it has to wait.
		if limit := int64(2*size + size + pages*size/parts); most > limit {
			t.Errorf("%d bytes were used, want at most %d", most, limit)
		}
	})
}

// TestBudgetIsNoSilence waits for room longer than a caller waits for the server, which is
// told that this is no silence; the end of its context ends the wait.
func TestBudgetIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := &Budget{MaxBytes: 1}
		first := &pageReader{ctx: t.Context(), limit: 100, budget: budget}
		if err := first.take(50); err != nil {
			t.Fatal(err)
		}
		onActivity := 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		second := &pageReader{ctx: ctx, limit: 100, budget: budget, onActivity: func() { onActivity++ }}
		if err := second.take(50); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Budget") {
			t.Errorf("%v, want %v", err, context.DeadlineExceeded)
		}
		if onActivity < 3600 {
			t.Errorf("onActivity %d times in an hour", onActivity)
		}
		second.done()
		first.done()
		if err := second.take(50); err != nil {
			t.Error(err)
		}
	})
}

// TestBudgetOfClient bounds the pages of all sources of a client, or of those that are given one.
func TestBudgetOfClient(t *testing.T) {
	client, err := NewClient(&rest.Config{Host: "http://localhost:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := new(Budget)
	of := func(o RESTOptions) *Budget {
		return NewTyped(client, pods, newPod, o).pageReader(t.Context(), nil, nil).budget
	}
	if of(RESTOptions{}) != &client.budget || of(RESTOptions{Transport: Transport{ListBudget: own}}) != own {
		t.Error("the budget is another one")
	}
	if math.MaxInt > math.MaxInt32 && defaultBudget != 4<<30 {
		t.Errorf("%d bytes by default", defaultBudget)
	}
}
