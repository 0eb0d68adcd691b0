package lease

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestTimesHaveDefaultsAndWholeSeconds(t *testing.T) {
	for given, want := range map[Times]Times{
		{}:                                     {15 * time.Second, 3 * time.Second},
		{Duration: 20*time.Second + 1}:         {20 * time.Second, 4 * time.Second},
		{Duration: 30 * time.Second, Renew: 1}: {30 * time.Second, 1},
		{Duration: 900 * time.Millisecond, Renew: -1}: {900 * time.Millisecond, -1},
	} {
		if got := given.Complete(5); got != want {
			t.Errorf("%v is completed to %v, want %v", given, got, want)
		}
	}
}

func TestTimesThatCannotBeUsedAreErrors(t *testing.T) {
	for given, want := range map[Times]string{
		{Duration: time.Second, Renew: 400 * time.Millisecond}: "",
		{Duration: math.MaxInt32 * time.Second}:                "",
		{Duration: 900 * time.Millisecond}:                     "Options.Duration is 900ms: give a ",
		{Duration: (math.MaxInt32 + 1) * time.Second}:          "Options.Duration is 596523h14m8s: ",
		{Duration: time.Minute, Renew: -1}:                     "Options.Renew is -1ns: give at most",
		{Duration: time.Minute, Renew: 1}:                      "Options.Renew is 1ns: give at most",
		{Duration: time.Minute, Renew: 24*time.Second + 1}:     "two fifths of Duration, 24s",
	} {
		err := given.Check("Options")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", given, err, want)
		}
	}
}

func TestDelaysDoubleUpToAFifteenth(t *testing.T) {
	times := Times{Duration: 15 * time.Second, Renew: 5 * time.Second}
	after := func(seconds int) error {
		return fmt.Errorf("wrapped: %w", apierrors.NewTooManyRequests("later", seconds))
	}
	for _, test := range []struct {
		failures    int
		err         error
		least, most time.Duration
	}{
		{1, nil, 187 * time.Millisecond, 250 * time.Millisecond},
		{2, errors.New("any"), 375 * time.Millisecond, 500 * time.Millisecond},
		{3, nil, 750 * time.Millisecond, time.Second},
		{1000, nil, 750 * time.Millisecond, time.Second},
		{1, after(2), 2 * time.Second, 2200 * time.Millisecond},
		{1, after(3600), times.Renew * 9 / 10, times.Renew}, // a server cannot end a term with it
	} {
		for range 1000 {
			if d := times.Delay(test.failures, test.err); d < test.least || d > test.most {
				t.Fatalf("%v after %d failures, %v: want %v to %v", d, test.failures, test.err, test.least, test.most)
			}
		}
	}
}

func TestLongDelaysDoubleUpToTheDuration(t *testing.T) {
	times := Times{Duration: 15 * time.Second, Renew: 5 * time.Second}
	for failures, most := range map[int]time.Duration{
		1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 6: 8 * time.Second, 7: 15 * time.Second, 1000: 15 * time.Second,
	} {
		for seconds, least := range map[int]time.Duration{0: most * 3 / 4, 9: max(most*3/4, 9*time.Second), 3600: 13500 * time.Millisecond} {
			err := apierrors.NewTooManyRequests("later", seconds)
			longest := max(most, least*10/9) // the jitter is a tenth
			if d := times.LongDelay(failures, err); d < least || d > longest {
				t.Errorf("%v after %d failures and %d s: want %v to %v", d, failures, seconds, least, longest)
			}
		}
	}
}
