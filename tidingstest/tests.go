package tidingstest

import "time"

// test is one property's test. Its name begins with the property's number.
type test struct {
	name  string
	needs need
	run   func(r *rig)
	set   func(s *Setting) // changes the parameters of the informer; may be nil
}

// tests returns the suite, in the order of the properties.
func tests() []test {
	return []test{
		{name: "P01_CacheHoldsWhatTheServerHolds", run: cacheHolds},
		{name: "P01_LostConnectionsAndAForgottenPast", needs: needGate, run: cacheHoldsAfterCuts},
		{
			name:  "P01_FaultsOfTheServer",
			needs: needGate | needFault | needAlone, run: cacheHoldsAfterFaults,
		},
		{name: "P02_StatesOnlyMoveForward", needs: needGate, run: statesMoveForward},
		{name: "P03_ListsAreOfOneState", run: listsAreOfOneState},
		{name: "P03_HeldListStays", run: heldListStays},
		{name: "P04_EveryChangeInOrder", run: everyChange},
		{name: "P04_ReentrantHandler", run: reentrantHandler},
		{name: "P05_LateHandlersRacingCreations", run: lateHandlers},
		{name: "P05_InitialAddsAreMarked", run: initialAdds},
		{name: "P06_CacheAndIndexFirst", run: cacheFirst},
		{name: "P07_SyncedAfterTheInitialSet", run: syncedAfterInitialSet},
		{name: "P07_EmptyCollectionSyncs", run: emptySyncs},
		{name: "P08_RelistIsOneStep", needs: needGate, run: relistIsOneStep},
		{name: "P08_ListThatIsOldWhenItArrives", needs: needGate, run: oldList},
		{name: "P08_RelistsUnderLoad", needs: needGate, run: relistsUnderLoad},
		{name: "P09_NothingFollowsTheStop", run: nothingFollowsTheStop},
		{name: "P09_RemovedHandler", run: removedHandler},
		{name: "P09_HandlerRemovesItself", run: handlerRemovesItself},
		{name: "P09_BlockedHandlerIsRemoved", run: blockedHandlerIsRemoved},
		{name: "P09_StuckHandlerIsNamed", needs: needNative, run: stuckHandlerIsNamed},
		{name: "P10_BlockedHandlerHoldsUpNobody", run: blockedHandler},
		{name: "P11_PanicCostsOneNotification", needs: needAlone, run: panicCostsOne},
		{name: "P11_IndexFunctionThatFails", run: indexFails},
		{
			name: "P12_ResyncRepeatsTheCache", run: resyncRepeats,
			set: func(s *Setting) { s.Resync = resyncPeriod },
		},
		{name: "P13_RefusalsAreSeenAndHeal", needs: needGate, run: refusalsHeal},
		{
			name:  "P13_RefusedNamespaceHoldsUpNoOther",
			needs: needGate | needSeveral, run: refusedNamespace,
		},
		{name: "P13_HealthFollowsTheWatch", needs: needGate, run: healthFollows},
		{name: "P14_CacheHoldsTheWriteAfterWaitFor", needs: needNative, run: readYourWrites},
		{name: "P15_SilentConnectionIsNoticed", needs: needGate | needBubble, run: silenceIsNoticed},
		{name: "P16_RewindIsNoticed", needs: needGate | needBackup | needAlone, run: rewindIsNoticed},
		{name: "P18_WatchesAreResumed", needs: needGate, run: watchesAreResumed},
		{name: "P18_RetryAfterIsHonoured", needs: needGate, run: retryAfter},
		{name: "P18_FailuresAreNotAStorm", needs: needGate | needBubble, run: noStorm},
		{name: "P19_AnotherObjectUnderTheSameKey", run: anotherObject},
		{name: "P19_AnotherObjectFoundByAList", needs: needGate, run: anotherObjectListed},
		{name: "P20_OnlyTheSelection", needs: needGate, run: onlyTheSelection},
		{name: "P20_RunningTwice", run: runningTwice},
	}
}

// resyncPeriod is the shortest that client-go allows.
const resyncPeriod = time.Second
