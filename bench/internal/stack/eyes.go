package stack

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/metrics"
)

// Eyes are the observers of the informers of a stack while it runs.
type Eyes struct {
	// Metrics are scraped each second.
	Metrics bool
	// Pages requests the first page of package debug each second, as JSON.
	Pages bool
	// Recorder records the requests and answers of the informers.
	Recorder bool
}

// lookEvery is the time between two scrapes, and between two requests of a page.
const lookEvery = time.Second

// NativeWith is Tidings by its own API, under another name and looked at.
func NativeWith(name string, e Eyes) Stack {
	return Stack{Name: name, FromServer: func(t Target, o Options) (Informer, error) {
		return nativeFromServer(t, o, e)
	}}
}

// record gives a transport a recorder, if it is to have one.
func (e Eyes) record(transport *tidings.Transport) error {
	if !e.Recorder {
		return nil
	}
	recorder, err := flight.New(flight.Options{})
	transport.Recorder = recorder
	return err
}

// look begins to look at the informers of a factory, until ctx ends.
func (e Eyes) look(ctx context.Context, factory *tidings.Factory) error {
	if e.Metrics {
		collector := metrics.New(metrics.Options{})
		registry := prometheus.NewRegistry()
		if err := collector.Add(factory); err != nil {
			return err
		}
		if err := registry.Register(collector); err != nil {
			return err
		}
		go every(ctx, func() {
			if _, err := registry.Gather(); err != nil {
				panic(err)
			}
		})
	}
	if e.Pages {
		pages := debug.New(debug.Options{})
		if err := pages.Add(factory); err != nil {
			return err
		}
		context.AfterFunc(ctx, pages.Close)
		go every(ctx, func() {
			answer := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/?format=json", nil)
			if pages.ServeHTTP(answer, request); answer.Code != http.StatusOK {
				panic(fmt.Sprintf("the page is answered %d: %s", answer.Code, answer.Body))
			}
		})
	}
	return nil
}

// every calls f at once and then each second, until ctx ends.
func every(ctx context.Context, f func()) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
