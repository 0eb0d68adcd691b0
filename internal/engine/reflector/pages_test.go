package reflector

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// next is the request that follows a first one with a token.
func next(first, token string) string {
	return strings.TrimSuffix(first, `""`) + fmt.Sprintf("%q", token)
}

func following(token string) string { return next(first, token) }

// TestP18_PageThatFailsIsAskedForAgain has one page of three fail in every way that may pass.
func TestP18_PageThatFailsIsAskedForAgain(t *testing.T) {
	const moment = 800 * time.Millisecond
	for name, test := range map[string]struct {
		err  error
		wait time.Duration
	}{
		"429":              {errTooMany(0), moment},
		"429 with a wait":  {errTooMany(7), 7 * time.Second},
		"500":              {errInternal, moment},
		"503":              {errUnavailable, moment},
		"504":              {errTimeout, moment},
		"unreachable":      {errRefused, moment},
		"cut body":         {&source.Error{Op: "list", Phase: source.Decoding, Err: source.ErrCutFrame}, moment},
		"malformed":        {errDecoding, moment},
		"another object":   {&source.Error{Op: "list", Phase: source.Decoding, Err: &source.WrongObjectError{}}, moment},
		"error of a fake":  {errors.New("not now"), moment},
		"nothing any more": {&source.Error{Op: "list", Phase: source.Streaming, Err: source.ErrSilent}, moment},
	} {
		for at, token := range map[int]string{1: "two", 2: "three"} {
			pages := []answer{page(first, "5", "+a@3", "two"), page(following("two"), "5", "+b@3", "three"),
				page(following("three"), "5", "+c@3", ""), watched("5")}
			t.Run(fmt.Sprintf("%s at page %s", name, token), scenario{
				o: inPages, answers: slices.Insert(pages, at, failed(following(token), test.err)),
				during: func(r *Reflector[object], _ *script) {
					if h := r.Health(); h.State != health.StateBackoff || h.Failures != 1 || !errors.Is(h.LastError, test.err) || h.Listed == 0 ||
						!h.RetryAt.Equal(time.Now().Add(test.wait)) {
						t.Errorf("while it waits health is %+v", h)
					}
				},
				queue: []string{"replace 5: a@3 b@3 c@3"},
				check: unless(func(h health.Watch) bool {
					return h.State != health.StateWatching || h.Failures != 0 || h.Lists != 1
				}),
			}.run)
		}
	}
}

// TestP18_EveryPageMayFail: the failures of one page do not count for the next one.
func TestP18_EveryPageMayFail(t *testing.T) {
	answers, want := []answer{page(first, "5", "+a0@3", "t1")}, "replace 5: a0@3"
	for i := 1; i <= 20; i++ {
		request := following(fmt.Sprint("t", i))
		answers = append(answers, failed(request, errTooMany(1)), page(request, "5", fmt.Sprintf("+a%d@3", i), fmt.Sprint("t", i+1)))
		want += fmt.Sprintf(" a%d@3", i)
	}
	answers[len(answers)-1].page.Continue = ""
	scenario{o: inPages, answers: append(answers, watched("5")), queue: []string{want}}.run(t)
}

// TestP18_PageThatFailsForGoodEndsTheList: the list begins anew.
func TestP18_PageThatFailsForGoodEndsTheList(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		tries int
	}{
		"500":       {errInternal, 1 + pageTries},
		"cut body":  {errCut, 1 + pageTries},
		"forbidden": {errForbidden, 1},
		"400":       {status(400, metav1.StatusReasonBadRequest), 1},
		"too large": {&source.Error{Op: "list", Phase: source.Decoding, Err: source.ErrFrameTooLarge}, 1},
	} {
		answers := []answer{page(first, "5", "+a@3", "two")}
		for range test.tries {
			answers = append(answers, failed(following("two"), test.err))
		}
		answers = append(answers, page(first, "5", "+b@3", ""), watched("5"))
		t.Run(name, scenario{o: inPages, answers: answers, queue: []string{"replace 5: b@3"}}.run)
	}
}

// TestPagesThatLeadToNoEnd has a server repeat a token at once or in a cycle, or send empty pages
// or the same ones with ever new tokens. The list is read without pages then. If even that leads
// to no end, it has failed.
func TestPagesThatLeadToNoEnd(t *testing.T) {
	// sequence has a page for each token, with the object of the same index.
	sequence := func(tokens, objects string) func(string) []answer {
		return func(first string) (answers []answer) {
			request, objects := first, strings.Split(objects, " ")
			for i, token := range strings.Fields(tokens) {
				answers = append(answers, page(request, "5", objects[i], token))
				request = next(first, token)
			}
			return answers
		}
	}
	const unlimited = `list "0" 0 ""`
	for name, test := range map[string]struct {
		pages func(first string) []answer
		err   error
	}{
		"the same token":                     {sequence("x x", "+a@3 +b@3"), errRepeatedToken},
		"the same token, on the fourth page": {sequence("x0 x1 x2 x2", "+a@3 +b@3 +c@3 +d@3"), errRepeatedToken},
		"tokens in a cycle":                  {sequence("x0 x1 x2 x3 x1 x2 x3", "+a@3 +b@3 +c@3 +d@3 +e@3 +f@3 +g@3"), errRepeatedToken}, // the fourth is remembered
		"the same pages":                     {sequence("x0 x1 x2 x3 x4 x5 x6", "+a@3 +b@3 +c@3 +d@3 +b@3 +c@3 +d@3"), errRepeatedPage},  // as well
		"empty pages":                        {sequence("x1 x2 x3 x4", "+a@3   "), errEmptyPages},
	} {
		t.Run(name, scenario{
			o: inPages, answers: append(test.pages(first), page(unlimited, "5", "+z@3", ""), watched("5")),
			queue: []string{"replace 5: z@3"},
			check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
				if err := r.Health().LastError; !errors.Is(err, test.err) {
					t.Errorf("the last error is %v", err)
				}
			},
		}.run)
		answers := append(test.pages(first), test.pages(unlimited)...)
		n := len(answers)
		t.Run(name+" without a limit", scenario{
			o: inPages, answers: append(answers, onePage, watched("5")), queue: []string{replaced5},
			during: func(r *Reflector[object], s *script) {
				h := r.Health()
				if len(s.requests()) != n || h.State != health.StateBackoff || !errors.Is(h.LastError, test.err) || !strings.Contains(h.LastError.Error(), "things.v1") {
					t.Errorf("after %d requests health is %+v", len(s.requests()), h)
				}
			},
		}.run)
	}
}

func TestPages(t *testing.T) {
	scenarios(t, map[string]scenario{
		"some are empty": { // a server may apply a selector after it has cut the pages
			o: inPages, answers: []answer{
				page(first, "5", "", "1"), page(following("1"), "5", "", "2"), page(following("2"), "5", "+a@3", "3"),
				page(following("3"), "5", "", "4"), page(following("4"), "5", "", ""), watched("5"),
			},
			queue: []string{replaced5},
		},
		"consistent first list": {
			o:       Options[object]{Transport: source.Transport{NoStreamedLists: true, ConsistentFirstList: true}},
			answers: []answer{page(later, "5", "", "next"), page(next(later, "next"), "6", "+a@3", ""), watched("5")},
			queue:   []string{replaced5},
		},
		"expired token": {
			o: Options[object]{Transport: source.Transport{NoStreamedLists: true, PageSize: 2}},
			answers: []answer{page(`list "0" 2 ""`, "5", "+a@3", "next"), failed(`list "0" 2 "next"`, errExpired),
				page(`list "0" 0 ""`, "9", "+a@7 +b@8", ""), watched("9")},
			queue: []string{"replace 9: a@7 b@8"},
		},
	})
}

// TestP18_RetryAfterIsBounded has the server ask for decades, as an answer, in an event and
// between two pages.
func TestP18_RetryAfterIsBounded(t *testing.T) {
	decades := errTooMany(2147483647)
	for name, answers := range map[string][]answer{
		"streamed list":        {failed("stream", decades), listed()},
		"event while it lists": {streamed(fails(decades)), listed()},
		"watch":                {listed(fails(errCut)), failed("watch 5", decades), watched("5")},
		"event of a watch":     {listed(fails(decades)), watched("5")},
		"first page":           {failed(first, decades), onePage, watched("5")},
		"second page":          {page(first, "5", "", "next"), failed(following("next"), decades), page(following("next"), "5", "+a@3", ""), watched("5")},
	} {
		answers = slices.Clip(answers)
		if strings.HasPrefix(name, "event of") || name == "watch" {
			answers = append(answers, checked("5")) // the server was out of contact
		}
		t.Run(name, scenario{
			o: Options[object]{Transport: source.Transport{NoStreamedLists: strings.HasSuffix(name, "page")}}, answers: answers, pass: 5*time.Minute + 10*time.Second,
			during: func(r *Reflector[object], _ *script) {
				after(2 * time.Second)
				h := r.Health()
				if h.State != health.StateBackoff || time.Until(h.RetryAt) > source.MaxRetryAfter || time.Until(h.RetryAt) < 4*time.Minute || !strings.Contains(h.LastError.Error(), "about 5m0s") {
					t.Errorf("while it waits health is %+v", h)
				}
			},
		}.run)
	}
}

// TestP15_SilentLists ends lists that bring nothing for Options.MaxSilence, and no others.
func TestP15_SilentLists(t *testing.T) {
	hangs := answer{expect: first, hang: true}
	hangsLater, slow := hangs, onePage
	hangsLater.signs = []time.Duration{time.Minute}
	slow.signs = []time.Duration{119 * time.Second, 100 * time.Second, 119 * time.Second, time.Second, 119 * time.Second}
	limited := func(limit time.Duration) Options[object] {
		return Options[object]{Transport: source.Transport{NoStreamedLists: true, MaxSilence: limit}}
	}
	var goesOn, isCached []read
	for range 10 {
		goesOn = append(goesOn, sendsAfter(119*time.Second, "~a@3"))
		isCached = append(isCached,
			sendsAfter(119*time.Second, strings.Repeat("+a@3 ", countEvery/10)))
	}
	silent := streamed(sendsAfter(time.Second, "+a@3"))
	scenarios(t, map[string]scenario{
		"pages": {
			o: inPages, answers: []answer{hangs, hangsLater, onePage, watched("5")}, pass: 4 * time.Minute,
			during: func(r *Reflector[object], _ *script) {
				after(2*time.Minute - 1)
				if h := r.Health(); h.State != health.StateListing || h.LastError != nil {
					t.Errorf("within the time health is %+v", h)
				}
				after(1)
				if h := r.Health(); h.State != health.StateBackoff || !errors.Is(h.LastError, source.ErrSilent) || !strings.Contains(h.LastError.Error(), "2m0s") {
					t.Errorf("after it health is %+v", h)
				}
			},
		},
		"pages that go on": {o: inPages, answers: []answer{slow, watched("5")}, pass: 10 * time.Minute, queue: []string{replaced5}},
		"a limit of 10 s":  {o: limited(10 * time.Second), answers: []answer{hangs, onePage, watched("5")}, pass: 30 * time.Second},
		"no limit":         {o: limited(-1), answers: []answer{hangs}, pass: time.Hour},
		"no limit, on the second page": {
			o: limited(-1), answers: []answer{page(first, "5", "+a@3", "two"), {expect: following("two"), hang: true}}, pass: time.Hour,
		},
		"streamed, goes on": {answers: []answer{streamed(append(goesOn, sendsAfter(119*time.Second, "=5"))...)}, pass: 40 * time.Minute},
		"streamed, is cached": {
			asks: true, o: Options[object]{Known: knows("a@3")}, pass: 20 * time.Minute,
			answers: []answer{listed(fails(errCut)), failed("watch 5", errExpired), streamed(isCached...)},
			check:   unless(func(h health.Watch) bool { return h.Listed < countEvery }),
		},
		"streamed": {
			answers: []answer{silent, onePage, watched("5")}, queue: []string{replaced5},
			during: func(r *Reflector[object], s *script) {
				after(2*time.Minute + time.Second - 1)
				same(t, "requests within the time", s.requests(), "stream")
				after(1)
				if h := r.Health(); h.State != health.StateWatching || !errors.Is(h.LastError, source.ErrSilent) || !strings.Contains(h.LastError.Error(), "things.v1") || h.Failures != 0 {
					t.Errorf("health is %+v", h)
				}
			},
		},
	})
}

// TestP15_SilentStreamsAreGivenUp: after two streamed lists that fell silent while pages came,
// the collection is read in pages at once. One that was completed in between starts the count
// anew.
func TestP15_SilentStreamsAreGivenUp(t *testing.T) {
	silent, expired := streamed(sendsAfter(time.Second, "+a@3")), failed("watch 5", errExpired)
	again := page(later, "5", "+a@3", "")
	scenario{
		answers: []answer{
			silent, onePage, expired,
			listed(fails(errExpired)),
			silent, failed(later, errInternal), // then it is the server, not the streams
			silent, again, expired,
			silent, page(later, "5", "+a@3", "two"), failed(next(later, "two"), errExpired),
			page(`list "" 0 ""`, "5", "+a@3", ""), expired,
			again, expired, again, watched("5"),
		},
		o: Options[object]{Transport: source.Transport{WatchTimeout: 10 * time.Hour}}, pass: time.Hour,
	}.run(t)
}
