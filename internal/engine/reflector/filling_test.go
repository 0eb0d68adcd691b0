package reflector

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// slotsOf returns the slots of scripted objects.
func slotsOf(names ...string) (set slot.Set) {
	for _, name := range names {
		set.Add(slot.UID.Of("uid-"+name, ""))
	}
	return set
}

// lists is a source of lists alone, which come one after the other. A list takes a time, and those
// after the last are not answered.
type lists struct {
	source.Source[object]
	takes time.Duration
	pages []answer
	asked []string
}

func (l *lists) List(ctx context.Context, o source.ListOptions) (source.Page[object], error) {
	l.asked = append(l.asked, fmt.Sprintf("%d %q", o.Limit, o.Continue))
	o.OnActivity()
	select {
	case <-time.After(l.takes):
	case <-ctx.Done():
		return source.Page[object]{}, context.Cause(ctx)
	}
	if len(l.pages) == 0 {
		<-ctx.Done()
		return source.Page[object]{}, context.Cause(ctx)
	}
	a := l.pages[0]
	l.pages = l.pages[1:]
	return a.page, a.err
}

// merges begins to merge slots that come, and returns where the result will be.
func merges(t *testing.T, r *Reflector[object], l *lists, slots slot.Set) chan error {
	t.Helper()
	r.o.Beside = l
	if err := r.o.Slots.Add(context.Background(), slots); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Merge(context.Background(), slots) }()
	return done
}

// TestS6_SlotsOfAReflector has slots come and go at each moment of a list and of a merge.
func TestS6_SlotsOfAReflector(t *testing.T) {
	bcd := []answer{page("", "6", "+bb@2 +ccc@3 +dddd@4", "")}
	var merged chan error
	returns := func(want error) checker {
		return func(t *testing.T, _ *Reflector[object], _ *script, _ *journal) {
			select {
			case err := <-merged:
				if !errors.Is(err, want) {
					t.Errorf("Merge: %v, want %v", err, want)
				}
			default:
				t.Error("Merge has not returned")
			}
		}
	}
	olderList := func(t *testing.T, at time.Duration) func(*Reflector[object], *script) {
		return func(r *Reflector[object], _ *script) {
			after(at)
			merged = merges(t, r, &lists{pages: []answer{page("", "4", "+bb@2", "")}}, slotsOf("bb"))
		}
	}
	holds := func(names ...string) Options[object] {
		return Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf(names...))}
	}
	for name, c := range map[string]func(t *testing.T) scenario{
		"changes during the merge": func(t *testing.T) scenario {
			return scenario{
				o:       holds("a"),
				answers: []answer{listed(sendsAfter(time.Second, "-bb@7 +eeeee@8"), sendsAfter(time.Second, "~ccc@9"))},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{takes: 5 * time.Second, pages: bcd}, slotsOf("bb", "ccc", "dddd"))
				},
				queue: []string{replaced5, "push 8: delete bb@7", "push 9: set ccc@9", "push : merged dddd@4"},
				check: returns(nil),
			}
		},
		"created again during the merge": func(t *testing.T) scenario {
			return scenario{
				o:       holds("a"),
				answers: []answer{listed(sendsAfter(time.Second, "-bb@7"))},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{takes: 5 * time.Second, pages: []answer{page("", "9", "+bb@8", "")}}, slotsOf("bb"))
				},
				queue: []string{replaced5, "push 7: delete bb@7", "push : merged bb@8"},
				check: returns(nil),
			}
		},
		"changes without an order": func(t *testing.T) scenario {
			o := holds("a")
			o.Compare = func(string, string) (int, bool) { return 0, false }
			return scenario{
				o: o, answers: []answer{listed(sendsAfter(time.Second, "~bb@7"))},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{takes: 5 * time.Second, pages: bcd}, slotsOf("bb", "ccc", "dddd"))
				},
				queue: []string{replaced5, "push 7: set bb@7", "push : merged ccc@3 merged dddd@4"},
				check: returns(nil),
			}
		},
		"slots go during the merge": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"), answers: []answer{listed()},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{takes: 5 * time.Second, pages: bcd}, slotsOf("bb", "ccc", "dddd"))
					after(time.Second)
					r.o.Slots.Remove(slotsOf("ccc"))
				},
				queue: []string{replaced5, "push : merged bb@2 merged dddd@4"},
				check: returns(nil),
			}
		},
		"slots go and come back during the merge": func(t *testing.T) scenario {
			l := &lists{takes: 5 * time.Second, pages: []answer{bcd[0], page("", "9", "+ccc@8", "")}}
			return scenario{
				o: holds("a"), answers: []answer{listed()},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, l, slotsOf("bb", "ccc", "dddd"))
					after(time.Second)
					r.o.Slots.Remove(slotsOf("ccc"))
					if err := r.Leave(context.Background(), slotsOf("ccc")); err != nil {
						t.Error(err)
					}
					merged = merges(t, r, l, slotsOf("ccc"))
				},
				queue: []string{replaced5, "push : merged bb@2 merged dddd@4", "push : merged ccc@8"},
				check: returns(nil),
			}
		},
		"slots go before they are listed": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"), answers: []answer{listed()},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{takes: 5 * time.Second, pages: bcd}, slotsOf("bb"))
					after(time.Second)
					r.o.Slots.Remove(slotsOf("bb"))
					if err := r.Leave(context.Background(), slotsOf("bb")); err != nil {
						t.Error(err)
					}
				},
				queue: []string{replaced5},
				check: returns(nil),
			}
		},
		"slots go while the next list of them is waited for": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"), answers: []answer{listed()}, queue: []string{replaced5},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{pages: []answer{{err: statusAfter(503, "ServiceUnavailable", 60)}}}, slotsOf("bb"))
					after(time.Second)
					r.o.Slots.Remove(slotsOf("bb"))
					if err := r.Leave(context.Background(), slotsOf("bb")); err != nil {
						t.Error(err)
					}
					after(time.Second)
					if len(merged) == 0 {
						t.Error("Merge goes on waiting")
					}
				},
				check: returns(nil),
			}
		},
		"slots come before the list of a reflector that takes another's place": func(t *testing.T) scenario {
			o := holds("a")
			o.Resumes = true
			return scenario{
				o: o, answers: []answer{streamed(sends("+a@3 +bb@2"), sendsAfter(2*time.Second, "=5"))},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{pages: []answer{page("", "6", "+bb@2", "")}}, slotsOf("bb"))
					after(time.Second)
					if len(merged) > 0 {
						t.Error("Merge has returned before the list")
					}
				},
				queue: []string{replaced5, "push : merged bb@2"},
				check: returns(nil),
			}
		},
		"slots come during the next list": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"),
				answers: []answer{
					listed(failsAfter(2*time.Second, errExpired)),
					streamed(sends("+a@3"), sendsAfter(5*time.Second, "=9")), streamed(sends("+a@3 +bb@2 =9")),
				},
				during: func(r *Reflector[object], _ *script) {
					after(5 * time.Second)
					merged = merges(t, r, &lists{takes: time.Hour}, slotsOf("bb"))
				},
				queue: []string{replaced5, "replace 9: a@3 bb@2"},
				check: returns(nil),
			}
		},
		"events that two lists of slots have overtaken": func(t *testing.T) scenario {
			o := holds("a")
			o.Transform = func(o object) (object, error) { return o, nil } // the cached objects may have no versions
			return scenario{
				o: o, answers: []answer{listed(sendsAfter(3*time.Second, "~bb@7 ~ccc@8 ~a@9"))},
				during: func(r *Reflector[object], _ *script) {
					l := &lists{pages: []answer{page("", "20", "+bb@19", ""), page("", "21", "+ccc@18", "")}}
					for _, name := range []string{"bb", "ccc"} {
						merged = merges(t, r, l, slotsOf(name))
						after(time.Second)
					}
				},
				queue: []string{replaced5, "push : merged bb@19", "push : merged ccc@18", "push 9: set a@9"},
				check: returns(nil),
			}
		},
		"a list that is older than the objects of slots": func(t *testing.T) scenario {
			l := &lists{pages: []answer{page("", "20", "+bb@19", "")}}
			o := holds("a")
			o.Known = knows("bb@19")
			return scenario{
				o: o,
				answers: []answer{
					listed(failsAfter(2*time.Second, errExpired)), streamed(sends("+a@3 +bb@7 =10")), streamed(sends("+a@3 +bb@7 =11")),
					streamed(sends("+a@3 +bb@19 =20")),
				},
				during: func(r *Reflector[object], s *script) {
					merged = merges(t, r, l, slotsOf("bb"))
					after(2*time.Second + 800*time.Millisecond)
					same(t, "requests at once", s.requests(), "stream", "stream", "stream")
					after(800*time.Millisecond - 1)
					same(t, "requests before the wait is over", s.requests(), "stream", "stream", "stream")
				},
				queue: []string{replaced5, "push : merged bb@19", "replace 20: a@3 bb@19 as known"},
				check: returns(nil),
			}
		},
		"slots come during a streamed list": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"),
				answers: []answer{
					streamed(sends("+a@3 +bb@2"), sendsAfter(2*time.Second, "=5")),
				},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{pages: []answer{page("", "6", "+bb@2", "")}}, slotsOf("bb"))
				},
				queue: []string{replaced5, "push : merged bb@2"},
				check: returns(nil),
			}
		},
		"slots come during a list in pages": func(t *testing.T) scenario {
			o := holds("a")
			o.NoStreamedLists = true
			return scenario{
				o: o,
				answers: []answer{
					{expect: first, page: page("", "5", "+a@3", "").page, signs: []time.Duration{time.Second}},
					watched("5"),
				},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{pages: []answer{page("", "6", "+bb@2", "")}}, slotsOf("bb"))
				},
				queue: []string{replaced5, "push : merged bb@2"},
				check: returns(nil),
			}
		},
		"slots go during a list": func(*testing.T) scenario {
			return scenario{
				o:       holds("a", "bb"),
				answers: []answer{streamed(sends("+a@3 +bb@2"), sendsAfter(2*time.Second, "=5"))},
				during:  func(r *Reflector[object], _ *script) { r.o.Slots.Remove(slotsOf("bb")) },
				queue:   []string{replaced5},
			}
		},
		"a list that is older than that of the slots": func(t *testing.T) scenario {
			l := &lists{pages: []answer{{err: statusAfter(503, "ServiceUnavailable", 5)}, page("", "20", "+bb@19", "")}}
			return scenario{
				o: holds("a"),
				answers: []answer{
					listed(failsAfter(100*time.Millisecond, errExpired)),
					streamed(sends("+a@3 +bb@7"), sendsAfter(20*time.Second, "=10")), streamed(sends("+a@3 +bb@19 =20")),
				},
				during: func(r *Reflector[object], _ *script) { merged = merges(t, r, l, slotsOf("bb")) },
				queue:  []string{replaced5, "push : merged bb@19", "replace 20: a@3 bb@19"},
				check:  returns(nil),
			}
		},
		"slots that keep coming before the first list": func(t *testing.T) scenario {
			return scenario{
				o:       holds("a"),
				answers: []answer{streamed(sends("+a@3"), sendsAfter(10*time.Second, "=5"))},
				during: func(r *Reflector[object], _ *script) {
					r.o.Beside = &lists{}
					for _, name := range []string{"bb", "ccc", "dddd"} {
						after(3 * time.Second)
						merged = merges(t, r, &lists{}, slotsOf(name))
					}
				},
				queue: []string{replaced5}, pass: time.Minute,
			}
		},
		"a list comes before the merge": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"),
				answers: []answer{
					listed(failsAfter(2*time.Second, errExpired)), streamed(sends("+a@3 +bb@2 =9")),
				},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{takes: time.Hour, pages: bcd}, slotsOf("bb"))
				},
				queue: []string{replaced5, "replace 9: a@3 bb@2"},
				check: returns(nil),
			}
		},
		"a token expires": func(t *testing.T) scenario {
			l := &lists{pages: []answer{page("", "6", "+bb@2", "next"), {err: errExpired}, bcd[0]}}
			return scenario{
				o: holds("a"), answers: []answer{listed()},
				during: func(r *Reflector[object], _ *script) { merged = merges(t, r, l, slotsOf("bb", "ccc", "dddd")) },
				queue:  []string{replaced5, "push : merged bb@2 merged ccc@3 merged dddd@4"},
				check: func(t *testing.T, r *Reflector[object], s *script, j *journal) {
					same(t, "lists", l.asked, `500 ""`, `500 "next"`, `0 ""`)
					returns(nil)(t, r, s, j)
				},
			}
		},
		"a token comes twice": func(t *testing.T) scenario {
			bb, ccc := page("", "6", "+bb@2", "next"), page("", "6", "+ccc@3", "next")
			l := &lists{pages: []answer{bb, ccc, bb, ccc}}
			return scenario{
				o: holds("a"), answers: []answer{listed()}, queue: []string{replaced5},
				during: func(r *Reflector[object], _ *script) { merged = merges(t, r, l, slotsOf("bb", "ccc")) },
				check: func(t *testing.T, r *Reflector[object], s *script, j *journal) {
					same(t, "first lists", l.asked[:4], `500 ""`, `500 "next"`, `0 ""`, `0 "next"`)
					returns(errRepeatedToken)(t, r, s, j)
				},
			}
		},
		"pages come twice": func(t *testing.T) scenario {
			l := &lists{pages: []answer{page("", "6", "+bb@2", "1"), page("", "6", "+ccc@3", "2"), page("", "6", "+ccc@3", "3"), bcd[0]}}
			return scenario{
				o: holds("a"), answers: []answer{listed()},
				during: func(r *Reflector[object], _ *script) { merged = merges(t, r, l, slotsOf("bb", "ccc", "dddd")) },
				queue:  []string{replaced5, "push : merged bb@2 merged ccc@3 merged dddd@4"},
				check: func(t *testing.T, r *Reflector[object], s *script, j *journal) {
					same(t, "lists", l.asked, `500 ""`, `500 "1"`, `500 "2"`, `0 ""`)
					returns(nil)(t, r, s, j)
				},
			}
		},
		"an older list of a server that was set back": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"), answers: []answer{listed(), streamed(sends("+a@2 +bb@2 =4"))},
				during: olderList(t, 0),
				queue:  []string{replaced5, "replace 4, new history: a@2 bb@2"},
				check:  returns(nil),
			}
		},
		"an older list of a server that lags": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"), answers: []answer{listed(), streamed(sends("+a@3 +bb@2 =6"))},
				during: olderList(t, 0),
				queue:  []string{replaced5, "replace 6: a@3 bb@2"},
				check:  returns(nil),
			}
		},
		"an older list while the watch begins": func(t *testing.T) scenario {
			begins := watched("5")
			begins.begins = 5 * time.Second
			return scenario{
				o: holds("a"), answers: []answer{listed(fails(errCut)), begins, streamed(sends("+a@2 +bb@2 =4"))},
				during: olderList(t, 2*time.Second),
				queue:  []string{replaced5, "replace 4, new history: a@2 bb@2"},
				check:  returns(nil),
			}
		},
		"an older list between two watches, and a list that fails": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"),
				answers: []answer{
					listed(fails(errCut)), failed("watch 5", errRefused), failed("stream", errInternal), streamed(sends("+a@2 +bb@2 =4")),
				},
				during: olderList(t, time.Second),
				queue:  []string{replaced5, "replace 4, new history: a@2 bb@2"},
				check:  returns(nil),
			}
		},
		"an older list, and no other comes in time": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"), answers: []answer{listed(), streamed()}, queue: []string{replaced5}, pass: time.Minute,
				during: func(r *Reflector[object], _ *script) {
					r.o.Beside = &lists{pages: []answer{page("", "4", "+bb@2", "")}}
					r.o.Slots.Add(context.Background(), slotsOf("bb")) //nolint:errcheck // its context does not end
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					err := r.Merge(ctx, slotsOf("bb"))
					if !errors.Is(err, errOlderList) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Merge: %v", err)
					}
				},
			}
		},
		"a silent list": func(t *testing.T) scenario {
			return scenario{
				o: holds("a"), answers: []answer{listed()}, queue: []string{replaced5},
				during: func(r *Reflector[object], _ *script) {
					merged = merges(t, r, &lists{takes: time.Hour}, slotsOf("bb"))
				},
				check: returns(source.ErrSilent),
			}
		},
	} {
		t.Run(name, func(t *testing.T) { c(t).run(t) })
	}
}
