package dedup

// fieldStats decide whether it is worth trying to share the values of one field. Each worker
// has its own for each field. Both figures are in bytes.
type fieldStats struct {
	// balance is the savings of late less the cost of the attempts.
	balance int32
	// earlyBalance is the savings of late less twice the cost, if each new value is kept when
	// it is first seen, or had been.
	earlyBalance int32
}

const (
	mostBalance      = 1 << 14
	pauseBalance     = -1 << 10
	leastBalance     = pauseBalance - 256
	mostEarlyBalance = 1 << 13

	// maxStep bounds the change by one attempt, so that a field with large values also gets
	// some attempts before it pauses.
	maxStep = 256

	// sampleRate is the number of values of a paused field of which one is tried.
	sampleRate = 32

	// costMiss is the cost of an attempt that finds nothing: about the time in which so many
	// bytes are allocated.
	costMiss = 6
)

// paused reports whether only samples of the field are tried.
func (s *fieldStats) paused() bool { return s.balance <= pauseBalance }

// keepsEarly reports whether a new value is kept when it is first seen, instead of when it
// is seen again.
func (s *fieldStats) keepsEarly() bool { return s.earlyBalance > 0 }

// hit counts an attempt that found a value of that many bytes.
func (s *fieldStats) hit(saved int) {
	s.earlyBalance = min(s.earlyBalance+int32(min(saved, mostEarlyBalance)), mostEarlyBalance)
	s.gain(saved)
}

// hitOwn counts an attempt that found a value of an earlier state of the same object. That
// spares work and no memory: keeping the value has not paid.
func (s *fieldStats) hitOwn(cost, saved int) {
	s.keptInVain(cost)
	s.gain(saved)
}

// gain adds to the balance. A sample stands for all the values that were not tried.
func (s *fieldStats) gain(saved int) {
	saved = min(saved, maxStep)
	if s.paused() {
		saved *= sampleRate
	}
	s.balance = min(s.balance+int32(saved), mostBalance)
}

// miss counts an attempt that found nothing, where keeping the value takes cost bytes and finding
// it saves size bytes. It reports whether to keep it. seen reports whether the value was missed
// before.
func (s *fieldStats) miss(cost, size int, seen bool) bool {
	early := s.keepsEarly()
	s.keptInVain(cost)
	s.pay(costMiss)
	if seen && s.paused() {
		s.gain(size)
	}
	if !seen && !early {
		return false
	}
	s.pay(cost)
	return true
}

// keptInVain counts a value that was, or would have been, kept in vain.
func (s *fieldStats) keptInVain(cost int) {
	s.earlyBalance = max(s.earlyBalance-int32(min(2*cost, mostEarlyBalance)), -mostEarlyBalance)
}

func (s *fieldStats) pay(cost int) {
	s.balance = max(s.balance-int32(min(cost, maxStep)), leastBalance)
}
