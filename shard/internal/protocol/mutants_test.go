package protocol

import "testing"

// TestS1_TheExplorationFindsRulesThatAreMissing switches off one rule at a time.
func TestS1_TheExplorationFindsRulesThatAreMissing(t *testing.T) {
	for _, test := range []struct {
		name   string
		rules  rules
		budget budget
	}{
		{"TakesWithoutEndingTheMember", rules{takesWithoutEnding: true}, budget{lags: 1}},
		{"RenewsAfterRunningOut", rules{renewsAfterRunningOut: true}, budget{pauses: 1}},
		{"CountsTheFenceFromTheAnswer", rules{fenceFromAnswer: true}, budget{pauses: 1}},
		{"EndsAMemberAtItsFence", rules{endsEarly: true}, budget{pauses: 1, slow: 1}},
		{"EndsAMemberAtAnyVersion", rules{endsAnyVersion: true}, budget{lags: 1}},
		{"CallsAfterALostGift", rules{resumesInDoubt: true}, budget{moves: 1, lates: 1, losses: 1}},
		{"GivesBeforeTheDrain", rules{givesUndrained: true}, budget{moves: 1, losses: 1}},
		{"PlannerGives", rules{plannerGives: true}, budget{moves: 1}},
		{"KeepsItsIdentity", rules{keepsIdentity: true}, budget{pauses: 1, rejoins: 1}},
		{"SeesOlderMaps", rules{seesOlderMaps: true}, budget{moves: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := explore(test.rules, test.budget, 2_000_000)
			x.begin.leave(processes - 1) // two processes are enough, and shorten the counterexamples
			problem := x.run()
			if problem == "" {
				t.Errorf("no counterexample in %d states", len(x.prints))
			}
			t.Logf("%d states: %s", len(x.prints), problem)
		})
	}
}
