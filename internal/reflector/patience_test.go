package reflector

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// inPages is for lists in pages.
var inPages = Options[object]{NoStreamedLists: true}

// onePage is a list of one object, at version 5.
func onePage(expect string, signs ...time.Duration) answer {
	return answer{expect: expect, signs: signs, page: source.Page[object]{Items: []source.Item[object]{item("a", "3")}, Version: "5"}}
}

const (
	firstList = `list "0" 500 ""`
	laterList = `list "" 500 ""`
)

func TestP15_ListThatIsNotAnsweredIsEnded(t *testing.T) {
	answers := []answer{{expect: firstList, hang: true}, {expect: firstList, hang: true, signs: []time.Duration{time.Minute}}, onePage(firstList), {expect: "watch 5"}}
	run(t, answers, inPages, func(r *Reflector[object], s *script, _ *journal) {
		time.Sleep(2*time.Minute - 1)
		synctest.Wait()
		if h := r.Health(); h.State != health.Listing || h.LastError != nil {
			t.Errorf("within the time health is %+v", h)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if h := r.Health(); h.State != health.Backoff || !errors.Is(h.LastError, source.ErrSilent) || !strings.Contains(h.LastError.Error(), "2m0s") {
			t.Errorf("after it health is %+v", h)
		}
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), firstList, firstList, firstList, "watch 5")
	})
}

func TestP15_ListThatGoesOnIsLeftAlone(t *testing.T) {
	slow := []time.Duration{119 * time.Second, 100 * time.Second, 119 * time.Second, time.Second, 119 * time.Second}
	run(t, []answer{onePage(firstList, slow...), {expect: "watch 5"}}, inPages, func(r *Reflector[object], s *script, j *journal) {
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), firstList, "watch 5")
		same(t, "queue", j.read(), replaced)
	})
}

func TestP15_PatienceCanBeChosen(t *testing.T) {
	for limit, want := range map[time.Duration][]string{
		10 * time.Second: {firstList, firstList, "watch 5"},
		-1:               {firstList},
	} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			o := inPages
			o.MaxSilence, o.WatchTimeout = limit, 2*time.Hour
			run(t, []answer{{expect: firstList, hang: true}, onePage(firstList), {expect: "watch 5"}}, o, func(_ *Reflector[object], s *script, _ *journal) {
				time.Sleep(time.Minute)
				synctest.Wait()
				same(t, "requests", s.requests(), want...)
				time.Sleep(time.Hour)
				synctest.Wait()
				same(t, "requests after an hour", s.requests(), want...)
			})
		})
	}
}

// begun is a streamed list that brings an object and then nothing.
var begun = answer{expect: "stream", reads: []read{{after: time.Second, events: []source.Event[object]{event(source.Added, "a", "3")}}}}

func TestP15_StreamedListThatFallsSilentIsReadInPages(t *testing.T) {
	run(t, []answer{begun, onePage(firstList), {expect: "watch 5"}}, hour, func(r *Reflector[object], s *script, j *journal) {
		time.Sleep(2*time.Minute + time.Second - 1)
		synctest.Wait()
		same(t, "requests within the time", s.requests(), "stream")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", firstList, "watch 5")
		same(t, "queue", j.read(), replaced)
		if h := r.Health(); h.State != health.Watching || !errors.Is(h.LastError, source.ErrSilent) || !strings.Contains(h.LastError.Error(), "things.v1") || h.Failures != 0 {
			t.Errorf("health is %+v", h)
		}
	})
}

func TestP15_StreamedListThatGoesOnIsLeftAlone(t *testing.T) {
	var reads []read
	for range 10 {
		reads = append(reads, read{after: 119 * time.Second, events: []source.Event[object]{event(source.Modified, "a", "3")}})
	}
	reads = append(reads, bookmarkAfter(119*time.Second, "5"))
	reads[len(reads)-1].events[0].Type = source.InitialEventsEnd
	run(t, []answer{{expect: "stream", reads: reads}}, hour, func(r *Reflector[object], s *script, j *journal) {
		time.Sleep(40 * time.Minute) // the watch that it has become is not timed so
		synctest.Wait()
		same(t, "requests", s.requests(), "stream")
		if h := r.Health(); h.State != health.Watching || h.Lists != 1 {
			t.Errorf("health is %+v", h)
		}
	})
}

// TestP15_WhatIsHeldIsASignOfLife has a stream of nothing but objects that are held, which
// the source does not yield.
func TestP15_WhatIsHeldIsASignOfLife(t *testing.T) {
	o := hour
	o.Known = func(key string) (object, string, string, bool) { return object{name: key}, "3", "uid-" + key, true }
	var reads []read
	for range 10 {
		reads = append(reads, read{after: 119 * time.Second, events: []source.Event[object]{event(source.Added, "a", "3")}})
	}
	answers := []answer{
		listed(read{err: errCut}), {expect: "watch 5", err: errExpired}, {expect: "stream", reads: reads},
	}
	runScript(t, &script{t: t, asks: true, answers: answers}, o, func(_ *Reflector[object], s *script, _ *journal) {
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 5", "stream")
	})
}

// TestP15_SilentStreamsAreGivenUp relists again and again: after two streamed lists that
// fell silent while pages came, the collection is read in pages at once. One that came
// through in between starts the count anew.
func TestP15_SilentStreamsAreGivenUp(t *testing.T) {
	expired := answer{expect: "watch 5", err: errExpired}
	silent, refused := begun, answer{expect: laterList, err: errInternal}
	answers := []answer{
		begun, onePage(firstList), expired,
		listed(read{err: errExpired}),
		silent, refused, // then it is the server, not the streams
		silent, onePage(laterList), expired,
		silent, onePage(laterList), expired,
		onePage(laterList), expired, onePage(laterList), {expect: "watch 5"},
	}
	run(t, answers, hour, func(_ *Reflector[object], s *script, _ *journal) {
		time.Sleep(time.Hour)
		synctest.Wait()
		var want []string
		for _, a := range answers {
			want = append(want, a.expect)
		}
		same(t, "requests", s.requests(), want...)
	})
}
