package reflector

import (
	"testing"
	"testing/synctest"
	"time"
)

var optional = Options[object]{Optional: true}

const emptied = "replace  (new history false):"

func TestOptionalResourceThatIsMissingIsEmptyAtOnce(t *testing.T) {
	missing := answer{expect: "stream", err: errNotFound}
	run(t, []answer{missing, missing, missing, listed()}, optional, func(r *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), emptied)
		if h := r.Health(); h.State != NoSuchResource || h.LastError == nil {
			t.Errorf("health is %+v", h)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "queue", j.read(), emptied, replaced)
		if h := r.Health(); h.State != Watching || h.Version != "5" {
			t.Errorf("health is %+v", h)
		}
	})
}

// vanished is a resource that the server has not got for a number of requests.
func vanished(requests int) []answer {
	answers := []answer{listed(read{err: errCut}), {expect: "watch 5", err: errNotFound}}
	for range requests {
		answers = append(answers, answer{expect: "stream", err: errNotFound})
	}
	return answers
}

func TestOptionalResourceThatVanishesIsEmptyWhenThatIsSure(t *testing.T) {
	run(t, append(vanished(20), listed()), optional, func(r *Reflector[object], _ *script, j *journal) {
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "queue within a minute", j.read(), replaced)
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "queue", j.read(), replaced, emptied)
		if h := r.Health(); h.State != NoSuchResource || h.Version != "" {
			t.Errorf("health is %+v", h)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		same(t, "queue when it is back", j.read(), replaced, emptied, replaced)
	})
}

func TestOptionalResourceThatIsMissingForAMomentStays(t *testing.T) {
	answers := append(vanished(4), answer{expect: "stream", err: errInternal})
	answers = append(answers, vanished(2)[2:]...)
	run(t, append(answers, listed()), optional, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		// It was missing for two minutes, but another answer came in between.
		same(t, "queue", j.read(), replaced, replaced)
	})
}

func TestResourceThatIsNotOptionalStaysAsItWas(t *testing.T) {
	run(t, append(vanished(20), listed()), Options[object]{}, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		same(t, "queue", j.read(), replaced, replaced)
	})
}
