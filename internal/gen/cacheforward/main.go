// Cacheforward writes the forwards of clientgo/cache: an alias or a function for every exported name of client-go's
// tools/cache, at the version of go.mod, that the package does not implement itself.
//
// It may be run from any directory of the module; go generate runs it for clientgo/cache.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/tidings-go/tidings/internal/gen/cacheforward/forward"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("cacheforward: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := write(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func write(ctx context.Context) error {
	text, err := forward.Generate(ctx)
	if err != nil {
		return err
	}
	name, err := forward.Output(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
