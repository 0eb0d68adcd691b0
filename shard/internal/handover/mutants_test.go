package handover

import "testing"

// TestS1_TheExplorationFindsRulesThatAreMissing switches off one rule at a time.
func TestS1_TheExplorationFindsRulesThatAreMissing(t *testing.T) {
	for _, test := range []struct {
		name   string
		rules  rules
		slots  int
		budget budget
	}{
		// The terms.
		{"TakesWithoutEndingTheMember", rules{takesWithoutEnding: true}, 2, budget{lags: 1}},
		{"RenewsAfterRunningOut", rules{renewsAfterRunningOut: true}, 2, budget{pauses: 1}},
		{"CountsTheFenceFromTheAnswer", rules{fenceFromAnswer: true}, 2, budget{pauses: 1}},
		{"EndsAMemberAtItsFence", rules{endsEarly: true}, 2, budget{pauses: 1, slow: 1}},
		{"EndsAMemberAtAnyVersion", rules{endsAnyVersion: true}, 2, budget{lags: 1}},
		{"KeepsItsIdentity", rules{keepsIdentity: true}, 2, budget{pauses: 1, rejoins: 1}},
		// The map.
		{"SeesOlderMaps", rules{seesOlderMaps: true}, 2, budget{moves: 1}},
		{"PlannerGives", rules{plannerGives: true}, 2, budget{moves: 1}},
		{"GivesBeforeTheDrain", rules{givesUndrained: true}, 2, budget{moves: 1, losses: 1}},
		{"CallsAfterALostGift", rules{resumesInDoubt: true}, 2, budget{moves: 1, losses: 1}},
		// The calls.
		{"DrainsWithACall", rules{drainsWithCall: true}, 1, budget{moves: 1, calls: 1}},
		{"DrainsWithAWriteWithoutAnswer", rules{drainsWithWrite: true}, 1, budget{moves: 1, calls: 1, unanswered: 1}},
		{"StaysClosedOnceTheHeirHasEnded", rules{staysClosed: true}, 1, budget{moves: 1, calls: 1, crashes: 1}},
		{"NeverOpensAgain", rules{neverReopens: true}, 1, budget{moves: 1, calls: 1, hungCalls: 1}},
		// The versions.
		{"DrainsBeforeWritesShow", rules{drainsUnshown: true}, 1, budget{moves: 1, calls: 1}},
		{"OpensBeforeVersionsAreReached", rules{opensUnreached: true}, 1, budget{moves: 1, calls: 1}},
		{"RemovesVersionsBeforeItIsOpen", rules{tidiesEarly: true}, 1, budget{moves: 1, calls: 1}},
		{"ForgetsVersionsThatItHasNotReached", rules{forgetsPassed: true}, 1, budget{moves: 2, calls: 1}},
		{"TrustsTheVersionsOfTheDead", rules{trustsTheDead: true}, 1, budget{moves: 1, calls: 2, crashes: 1}},
		// No state without a way out.
		{"KeepsAnHeirWhoseWritesAreRefused", rules{keepsHeirs: true}, 1, budget{moves: 1, refusals: 1}},
		{"KeepsAnHeirThatHasEnded", rules{keepsEndedHeirs: true}, 1, budget{moves: 1, crashes: 1}},
		{"NeverDeclines", rules{neverDeclines: true}, 1, budget{moves: 1, hungLists: 1}},
		{"NeverGives", rules{neverGives: true}, 1, budget{hungLists: 1}},
		{"StaysThoughItsWritesAreRefused", rules{staysRefused: true}, 1, budget{moves: 1, refusals: 1}},
		{"LeavesOnlyOnceItsCallsHaveEnded", rules{leaverWaits: true}, 1, budget{calls: 1, hungCalls: 1, quits: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := setting{2, test.slots, test.budget}.explore(test.rules, 2_000_000)
			problem := x.run()
			if problem == "" {
				t.Errorf("no counterexample in %d states", len(x.prints))
			}
			t.Logf("%d states: %.100s", len(x.prints), problem)
		})
	}
}
