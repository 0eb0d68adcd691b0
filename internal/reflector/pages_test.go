package reflector

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// page is a page of one object, at version 5, with the token of the next one.
func page(expect, name, next string) answer {
	a := answer{expect: expect, page: source.Page[object]{Version: "5", Continue: next}}
	if name != "" {
		a.page.Items = []source.Item[object]{item(name, "3")}
	}
	return a
}

func following(token string) string { return fmt.Sprintf(`list "0" 500 %q`, token) }

// TestP18_PageThatFailsIsAskedForAgain has one page of three fail, in every way that may pass.
func TestP18_PageThatFailsIsAskedForAgain(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		wait time.Duration
	}{
		"429":              {errTooMany(0), 800 * time.Millisecond},
		"429 with a wait":  {errTooMany(7), 7 * time.Second},
		"500":              {errInternal, 800 * time.Millisecond},
		"503":              {errUnavailable, 800 * time.Millisecond},
		"504":              {errPoisoned, 800 * time.Millisecond},
		"unreachable":      {errRefused, 800 * time.Millisecond},
		"cut body":         {&source.Error{Op: "list", Phase: source.Decoding, Err: source.ErrCutFrame}, 800 * time.Millisecond},
		"malformed":        {errDecoding, 800 * time.Millisecond},
		"another object":   {&source.Error{Op: "list", Phase: source.Decoding, Err: &source.WrongObjectError{}}, 800 * time.Millisecond},
		"error of a fake":  {errors.New("not now"), 800 * time.Millisecond},
		"nothing any more": {&source.Error{Op: "list", Phase: source.Streaming, Err: source.ErrSilent}, 800 * time.Millisecond},
	} {
		for _, failing := range []string{"two", "three"} {
			t.Run(name+" at page "+failing, func(t *testing.T) {
				answers := []answer{page(firstList, "a", "two"), page(following("two"), "b", "three"), page(following("three"), "c", ""), {expect: "watch 5"}}
				bad := answer{expect: following(failing), err: test.err}
				if failing == "two" {
					answers = append([]answer{answers[0], bad}, answers[1:]...)
				} else {
					answers = append([]answer{answers[0], answers[1], bad}, answers[2:]...)
				}
				run(t, answers, inPages, func(r *Reflector[object], _ *script, j *journal) {
					if h := r.Health(); h.State != health.Backoff || h.Failures != 1 || !errors.Is(h.LastError, test.err) || h.Listed == 0 {
						t.Errorf("while it waits health is %+v", h)
					}
					time.Sleep(test.wait - time.Millisecond)
					synctest.Wait()
					same(t, "queue before the wait is over", j.read())
					time.Sleep(time.Millisecond)
					synctest.Wait()
					same(t, "queue", j.read(), "replace 5 (new history false): a@3 b@3 c@3")
					if h := r.Health(); h.State != health.Watching || h.Failures != 0 || h.Lists != 1 {
						t.Errorf("health is %+v", h)
					}
				})
			})
		}
	}
}

// TestP18_EveryPageMayFail: the failures of one page are not held against the next one.
func TestP18_EveryPageMayFail(t *testing.T) {
	answers := []answer{page(firstList, "a0", "t1")}
	for i := 1; i <= 20; i++ {
		answers = append(answers, answer{expect: following(fmt.Sprint("t", i)), err: errTooMany(1)},
			page(following(fmt.Sprint("t", i)), fmt.Sprint("a", i), fmt.Sprint("t", i+1)))
	}
	answers[len(answers)-1].page.Continue = ""
	run(t, append(answers, answer{expect: "watch 5"}), inPages, func(r *Reflector[object], _ *script, j *journal) {
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if h := r.Health(); h.State != health.Watching || h.Lists != 1 || len(j.read()) != 1 {
			t.Errorf("health is %+v", h)
		}
	})
}

// TestP18_PageThatFailsForGoodEndsTheList has one page refused, for ever or for a reason that
// will not pass: the list begins anew.
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
		t.Run(name, func(t *testing.T) {
			answers, want := []answer{page(firstList, "a", "two")}, []string{firstList}
			for range test.tries {
				answers, want = append(answers, answer{expect: following("two"), err: test.err}), append(want, following("two"))
			}
			answers = append(answers, page(firstList, "b", ""), answer{expect: "watch 5"})
			run(t, answers, Options[object]{NoStreamedLists: true, WatchTimeout: time.Hour}, func(r *Reflector[object], s *script, j *journal) {
				passTheWaits()
				same(t, "requests", s.requests(), append(want, firstList, "watch 5")...)
				same(t, "queue", j.read(), "replace 5 (new history false): b@3")
			})
		})
	}
}

// TestP18_FailedPageLeavesNothingStaged has a page fail after some of its objects were found
// to be held.
func TestP18_FailedPageLeavesNothingStaged(t *testing.T) {
	known := func(key string) (object, string, string, bool) {
		return object{name: key, note: " as known"}, "3", "uid-" + key, true
	}
	later := func(token string) string { return fmt.Sprintf(`list "" 500 %q`, token) }
	bad := page(later("two"), "b", "three")
	bad.err = errCut
	s := &script{t: t, asks: true, answers: []answer{
		onePage(firstList), {expect: "watch 5", err: errExpired},
		page(laterList, "a", "two"), bad, page(later("two"), "b", ""), {expect: "watch 5"},
	}}
	runScript(t, s, Options[object]{NoStreamedLists: true, Known: known}, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known", "replace 5 (new history false): a@3 as known b@3 as known")
	})
}

// TestPagesThatLeadToNoEnd has a server repeat a token at once, in a circle, or send empty
// pages or the same ones with ever new tokens. The list is read without pages then; if even that leads to no end, it has failed.
func TestPagesThatLeadToNoEnd(t *testing.T) {
	atOnce := func(first string) []answer {
		return []answer{page(first, "a", "x"), page(next(first, "x"), "b", "x")}
	}
	inACircle := func(first string) []answer {
		tokens := []string{"x0", "x1", "x2", "x3", "x1", "x2", "x3"} // the fourth is remembered
		answers := []answer{page(first, "a", tokens[0])}
		for i, token := range tokens[1:] {
			answers = append(answers, page(next(first, tokens[i]), fmt.Sprint("b", i), token))
		}
		return answers
	}
	samePages := func(first string) []answer {
		answers := []answer{page(first, "a0", "x0")}
		for i, name := range []string{"a1", "a2", "a3", "a1", "a2", "a3"} { // the fourth is remembered
			answers = append(answers, page(next(first, fmt.Sprint("x", i)), name, fmt.Sprint("x", i+1)))
		}
		return answers
	}
	empty := func(first string) []answer {
		return []answer{page(first, "a", "x1"), page(next(first, "x1"), "", "x2"), page(next(first, "x2"), "", "x3"), page(next(first, "x3"), "", "x4")}
	}
	const unlimited = `list "0" 0 ""`
	for name, test := range map[string]struct {
		pages func(first string) []answer
		err   error
	}{"the same token": {atOnce, errRepeatedToken}, "tokens in a circle": {inACircle, errRepeatedToken}, "empty pages": {empty, errEmptyPages}, "the same pages": {samePages, errRepeatedPage}} {
		t.Run(name, func(t *testing.T) {
			run(t, append(test.pages(firstList), page(unlimited, "b", ""), answer{expect: "watch 5"}), inPages, func(r *Reflector[object], _ *script, j *journal) {
				same(t, "queue", j.read(), "replace 5 (new history false): b@3")
				if err := r.Health().LastError; !errors.Is(err, test.err) {
					t.Errorf("the last error is %v", err)
				}
			})
		})
		t.Run(name+" without a limit", func(t *testing.T) {
			answers := append(test.pages(firstList), test.pages(unlimited)...)
			n := len(answers)
			run(t, append(answers, onePage(firstList), answer{expect: "watch 5"}), inPages, func(r *Reflector[object], s *script, j *journal) {
				if h := r.Health(); len(s.requests()) != n || h.State != health.Backoff || !errors.Is(h.LastError, test.err) || !strings.Contains(h.LastError.Error(), "things.v1") {
					t.Errorf("after %d requests health is %+v", len(s.requests()), h)
				}
				passTheWaits()
				same(t, "queue", j.read(), replaced)
			})
		})
	}
}

// next is the request that follows a first one with a token.
func next(first, token string) string {
	return strings.TrimSuffix(first, `""`) + fmt.Sprintf("%q", token)
}

// TestSomeEmptyPagesAreNoFailure: a server may apply a selector after it has cut the pages.
func TestSomeEmptyPagesAreNoFailure(t *testing.T) {
	run(t, []answer{
		page(firstList, "", "1"), page(following("1"), "", "2"), page(following("2"), "a", "3"),
		page(following("3"), "", "4"), page(following("4"), "", ""), {expect: "watch 5"},
	}, inPages, func(_ *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), replaced)
	})
}

// TestConsistentFirstList asks for the newest state at once.
func TestConsistentFirstList(t *testing.T) {
	run(t, []answer{
		{expect: laterList, page: source.Page[object]{Version: "5", Continue: "next"}},
		{expect: `list "" 500 "next"`, page: source.Page[object]{Items: []source.Item[object]{item("a", "3")}, Version: "6"}},
		{expect: "watch 5"},
	}, Options[object]{NoStreamedLists: true, ConsistentFirstList: true}, func(_ *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), replaced)
	})
}
