package dedup

// A site is what a run knows about repetition in one field of one Go type:
// whether trying to share its values has been worth it. Both figures are in bytes.
type site struct {
	// credit is what was saved here lately less what the attempts cost.
	credit int32
	// promise is what would have been saved lately, or was, by keeping each new
	// value when it is first seen, less twice what that would have cost.
	promise int32
}

const (
	creditMost  = 1 << 14
	creditRest  = -1 << 10
	creditLeast = creditRest - 256
	promiseMost = 1 << 13

	// mostAtOnce bounds what one attempt counts, so that a site with large values
	// has some attempts, too, before it rests.
	mostAtOnce = 256

	// sampleRate is the number of values of a resting site of which one is tried.
	sampleRate = 32

	// costMiss is what an attempt in vain costs: about as much time as to
	// allocate so many bytes.
	costMiss = 6
)

// resting reports whether the site has stopped trying, but for samples.
func (s *site) resting() bool { return s.credit <= creditRest }

// eager reports whether a new value is kept when it is first seen, not when it is
// seen again.
func (s *site) eager() bool { return s.promise > 0 }

// hit counts an attempt that found a value of that many bytes.
func (s *site) hit(saved int) {
	s.promise = min(s.promise+int32(min(saved, promiseMost)), promiseMost)
	s.gain(saved)
}

// foundText counts an attempt that found a string of that many bytes, as found does.
func (s *site) foundText(saved int, own bool) {
	if own {
		s.regret(costText + saved)
		s.gain(saved)
		return
	}
	s.hit(saved)
}

// found counts an attempt that found an item. What an object finds that it has made itself,
// in an earlier state, spares work and no memory: that it was kept has not paid.
func (s *site) found(it *item, by owner) {
	if it.by == by && by != anyone {
		s.regret(it.cost())
		s.gain(int(it.size))
		return
	}
	s.hit(int(it.size))
}

// gain adds to the credit. A sample stands for all the values that were not
// tried.
func (s *site) gain(saved int) {
	saved = min(saved, mostAtOnce)
	if s.resting() {
		saved *= sampleRate
	}
	s.credit = min(s.credit+int32(saved), creditMost)
}

// miss counts an attempt that found nothing, where keeping the value costs that
// many bytes. It reports whether to keep it; again says that the value was
// missed before.
func (s *site) miss(cost, size int, again bool) bool {
	eager := s.eager()
	s.regret(cost)
	s.pay(costMiss)
	if again && s.resting() {
		s.gain(size)
	}
	if !again && !eager {
		return false
	}
	s.pay(cost)
	return true
}

// regret counts a value that would have been, or was, kept in vain.
func (s *site) regret(cost int) {
	s.promise = max(s.promise-int32(min(2*cost, promiseMost)), -promiseMost)
}

func (s *site) pay(cost int) {
	s.credit = max(s.credit-int32(min(cost, mostAtOnce)), creditLeast)
}
