package fanout

import (
	"testing"
	"testing/synctest"
)

// readStep reads a step from the front of a script, and returns what is left.
func readStep(script []byte) (step, []byte) {
	next := func() byte {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return b
	}
	kinds := []stepKind{stepPublish, stepPublish, stepPublish, stepJoin, stepJoin, stepRemove, stepCalls, stepRelease, stepReplay, stepMark}
	code, which := next(), next()
	s := step{kind: kinds[int(code)%len(kinds)], settle: code >= 128, handler: int(which % 10)}
	switch s.kind {
	case stepPublish:
		for range 1 + which%60 {
			b := next()
			s.changes = append(s.changes, struct {
				key byte
				action
			}{b % 6, action(b / 6 % byte(actions))})
		}
	case stepJoin:
		s.options = SubscriptionOptions{
			Policy: []Policy{ConflateUpdates, ConflateState, Unbounded}[which/10%3],
			Limit:  1 + int(next()%30),
		}
	case stepCalls:
		s.calls = 1 + int(next()%40)
	}
	return s, script
}

// FuzzLog reads bytes as what happens to a log and its handlers, and checks after every
// step what TestP10_Model does: bounds, and in the end that every handler was told the
// truth and that nothing is retained.
func FuzzLog(f *testing.F) {
	f.Add([]byte("\x03\x00\x05\x00\x05\x01\x02\x03\x04\x05\x06\x03\x0a\x01\x80\x20 twenty changes and more of six keys \x07\x00\x09\x00"))
	f.Add([]byte{4, 0, 1, 0, 59, 1, 7, 13, 19, 25, 31, 6, 0, 3, 8, 0, 5, 0, 9, 0, 3, 1, 9, 128, 30})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 4000 {
			return // what more steps would show, shorter scripts show sooner
		}
		synctest.Test(t, func(t *testing.T) {
			m := &model{rig: &rig{t: t, cluster: newCluster(), log: New(Options[*object]{UID: uidOf})}}
			defer m.log.Close()
			for n := 0; len(script) > 0; n++ {
				var s step
				s, script = readStep(script)
				if err := m.play(s); err != nil {
					t.Errorf("after step %d, %s: %v", n, s.kind, err)
					break
				}
			}
			if err := m.finish(); err != nil {
				t.Error(err)
			}
		})
	})
}
