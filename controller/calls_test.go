package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/controller"
)

// TestCallsSayWhyAKeyWasCalled has one key that changes and fails, and another that is called so
// often that only the failures of the first one are kept.
func TestCallsSayWhyAKeyWasCalled(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		create(w, configMap("a", "busy"))
		failing := true
		c := newController(w, options{}, func(_ context.Context, r request) (controller.Result, error) {
			switch {
			case r.Name() == "busy":
				return controller.Result{RequeueAfter: time.Second}, nil
			case failing && len(r.Reasons) > 0 && r.Reasons[0].Cause == controller.Updated:
				failing = false
				return controller.Result{}, errors.New("not yet")
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		update(w, withState(configMap("a", "x"), "2"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		var told []string
		for _, call := range c.Calls("a/x") {
			told = append(told, call.Reasons[0].Cause.String()+" "+call.Error)
		}
		if got := strings.Join(told, ", "); got != "Retry , Updated not yet, Initial " {
			t.Errorf("the calls of a/x are %q", got)
		}
		form, err := json.Marshal(c.Calls("a/x")[1])
		fatal(t, err)
		if !strings.Contains(string(form), `"reasons":[{"cause":"Updated","informer":"configmaps.v1","object":"a/x","count":1}]`) ||
			!strings.Contains(string(form), `"error":"not yet"`) {
			t.Errorf("the JSON form is %s", form)
		}
		if calls := c.Calls(""); len(calls) < 10 || calls[0].Began.Before(calls[1].Began) {
			t.Errorf("%d calls in all", len(calls))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		calls := c.Calls("a/x")
		if len(calls) != 1 || calls[0].Error != "not yet" {
			t.Errorf("after an hour: %+v", calls)
		}
		if calls := c.Calls("a/busy"); len(calls) != 1000 || calls[0].RequeueAfter.Duration != time.Second {
			t.Errorf("%d calls of the busy key", len(calls))
		}
		fatal(t, stop())
	})
}
