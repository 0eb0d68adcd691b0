package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/fanout"
)

// itemsOf returns the items of a cache, which package store calls a Cursor.
func itemsOf(cache map[string]string) fanout.Items[string] {
	keys := slices.Sorted(maps.Keys(cache))
	return func() (key, obj string, ok bool) {
		if len(keys) == 0 {
			return "", "", false
		}
		key, keys = keys[0], keys[1:]
		return key, cache[key], true
	}
}

// A handler is told of what is there when it joins, then of every change.
func Example() {
	log := fanout.New(fanout.Options[string]{})

	cache := map[string]string{"default/web": "1 replica"}
	told := make(chan change.Change[string])
	sub, err := log.Subscribe(func(n change.Change[string]) { told <- n }, itemsOf(cache), fanout.SubscriptionOptions{Name: "roller"})
	if err != nil {
		fmt.Println(err)
		return
	}
	log.MarkSynced()
	log.Publish([]change.Change[string]{
		{Type: change.Updated, Key: "default/web", Old: "1 replica", New: "3 replicas"},
		{Type: change.Deleted, Key: "default/web", Old: "3 replicas", New: "3 replicas"},
	}, 0)

	for range 3 {
		n := <-told
		fmt.Println(n.Type, n.Key, n.New, n.Initial)
	}
	<-sub.Synced()
	log.Close()
	fmt.Println(log.Wait(context.Background()))
	// Output:
	// Added default/web 1 replica true
	// Updated default/web 3 replicas false
	// Deleted default/web 3 replicas false
	// <nil>
}

// The default policy folds, beyond the limit, the updates that a slow handler
// has not seen yet: it is told of the newest state, and Old is what it saw last.
func ExampleLog_Publish() {
	log := fanout.New(fanout.Options[string]{})
	defer log.Close()
	started, goOn := make(chan bool, 10), make(chan bool)
	sub, err := log.Subscribe(func(n change.Change[string]) {
		started <- true
		<-goOn
		fmt.Println(n.Type, n.Old, "→", n.New)
	}, nil, fanout.SubscriptionOptions{Limit: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	publish := func(typ change.Type, old, state string) {
		log.Publish([]change.Change[string]{{Type: typ, Key: "default/web", Old: old, New: state}}, 1)
	}
	publish(change.Added, "", "1 replica")
	<-started // the handler is busy with the add
	publish(change.Updated, "1 replica", "2 replicas")
	publish(change.Updated, "2 replicas", "3 replicas")
	publish(change.Updated, "3 replicas", "4 replicas")
	fmt.Println("behind:", sub.Stats().Behind, "folded:", sub.Stats().Folded)
	goOn <- true
	goOn <- true
	sub.Remove()
	<-sub.Done()
	// Output:
	// behind: true folded: 2
	// Added  → 1 replica
	// Updated 1 replica → 4 replicas
}

// A handler may remove itself: it is not called again.
func ExampleSubscription_Remove() {
	log := fanout.New(fanout.Options[string]{})
	defer log.Close()
	self := make(chan *fanout.Subscription[string], 1)
	sub, err := log.Subscribe(func(n change.Change[string]) {
		fmt.Println("the first:", n.Key)
		(<-self).Remove()
	}, nil, fanout.SubscriptionOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	self <- sub
	log.Publish([]change.Change[string]{
		{Type: change.Added, Key: "default/a"},
		{Type: change.Added, Key: "default/b"},
	}, 2)
	<-sub.Done()
	// Output:
	// the first: default/a
}

// A publisher replays the cache to the handlers whose resync is due.
func ExampleLog_Replay() {
	log := fanout.New(fanout.Options[string]{})
	cache := map[string]string{"default/web": "1 replica"}
	told := make(chan change.Change[string], 10)
	_, err := log.Subscribe(func(n change.Change[string]) { told <- n }, itemsOf(cache),
		fanout.SubscriptionOptions{ResyncPeriod: time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	next, _ := log.NextResync()
	<-time.After(time.Until(next))
	for _, sub := range log.DueForResync(time.Now()) {
		log.Replay(sub, itemsOf(cache))
	}
	for range 2 {
		n := <-told
		fmt.Println(n.Type, n.Key, "initial:", n.Initial, "resync:", n.Resync)
	}
	log.Close()
	// Output:
	// Added default/web initial: true resync: false
	// Updated default/web initial: false resync: true
}

// A publisher that asks for room stands still with a handler that wants it so.
func ExampleLog_AwaitRoom() {
	log := fanout.New(fanout.Options[string]{})
	defer log.Close()
	release := make(chan bool)
	defer close(release)
	_, err := log.Subscribe(func(change.Change[string]) { <-release }, nil,
		fanout.SubscriptionOptions{Name: "stuck", Policy: fanout.Block, Limit: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	for range 3 {
		if err := log.AwaitRoom(ctx); err != nil {
			fmt.Println(err)
			return
		}
		log.Publish([]change.Change[string]{{Type: change.Added, Key: "default/web"}}, 1)
	}
	// Output:
	// fanout: wait for room in the backlog of handler "stuck", whose policy is Block: context deadline exceeded
}

// Wait names the handlers whose call does not return.
func ExampleLog_Wait() {
	log := fanout.New(fanout.Options[string]{})
	called, goOn := make(chan bool), make(chan bool)
	_, err := log.Subscribe(func(change.Change[string]) { called <- true; <-goOn }, nil, fanout.SubscriptionOptions{Name: "roller"})
	if err != nil {
		fmt.Println(err)
		return
	}
	log.Publish([]change.Change[string]{{Type: change.Added, Key: "default/web"}}, 1)
	<-called
	log.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if stuck, ok := errors.AsType[*fanout.StuckError](log.Wait(ctx)); ok {
		for _, call := range stuck.Calls {
			fmt.Println(call.Handler, "is stuck with", call.Key)
		}
	}
	close(goOn)
	fmt.Println(log.Wait(context.Background()))
	// Output:
	// roller is stuck with default/web
	// <nil>
}
