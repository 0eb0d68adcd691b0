package queue

import (
	"math"
	"time"
)

// backOff holds a failed key back for the delay of its failures, and at least for Least, or for
// After.
func (s *schedule[R]) backOff(now int64, i uint32, o Outcome) {
	e := s.entries.at(i)
	e.failures.add(1)
	delay := s.delay(e)
	if o.Least > 0 {
		delay = max(delay, s.jitter(o.Least))
		s.least[i] = after(now, o.Least)
	}
	if o.After > 0 {
		delay = o.After
		s.least[i] = after(now, o.After)
	}
	e.band = min(e.band, Requeues)
	s.note(e, Counted[R]{s.o.Retried, 1})
	s.enter(now, i, BackingOff)
	s.timers.set(i, after(now, delay))
	if e.marks.has(changed) {
		s.hasten(i, s.gate(i))
	}
}

func (s *schedule[R]) delay(e *entry) time.Duration {
	if d, ok := s.limited(e.key); ok {
		return d
	}
	d := s.o.FirstDelay
	for n := count(1); n < e.failures && d < s.o.MaxDelay; n++ {
		d = time.Duration(after(int64(d), d))
	}
	return s.jitter(min(d, s.o.MaxDelay))
}

// limited returns the delay of the limiter, if there is one that does not panic.
func (s *schedule[R]) limited(key string) (d time.Duration, ok bool) {
	if s.o.Limiter == nil {
		return 0, false
	}
	defer s.o.recovered("RateLimiter", key)
	return s.o.Limiter.When(key), true
}

func (s *schedule[R]) forgetFailures(key string) {
	if s.o.Limiter != nil {
		defer s.o.recovered("RateLimiter", key)
		s.o.Limiter.Forget(key)
	}
}

// jitter adds up to a tenth of a delay.
func (s *schedule[R]) jitter(d time.Duration) time.Duration {
	return time.Duration(after(int64(d), time.Duration(s.o.Jitter()*float64(d)/10)))
}

// after returns the time that is d after another one, or the last one of all if that is later.
func after(t int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + int64(d)
}

// reset forgets the failures of a key that has another object.
func (s *schedule[R]) reset(key string) {
	if i, ok := s.index.get(key); ok {
		s.entries.at(i).failures = 0
		s.forgetFailures(key)
	}
}
