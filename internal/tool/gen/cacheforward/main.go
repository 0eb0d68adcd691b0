// Command cacheforward writes the forwards of clientgo/cache: an alias or a function for every
// exported name of client-go's tools/cache, at the version of go.mod, that the package does not
// implement itself.
//
// go generate runs it in clientgo/cache.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/tidings-go/tidings/internal/tool/gen/cacheforward/forward"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("cacheforward: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	text, err := forward.Generate(ctx)
	if err == nil {
		err = os.WriteFile(forward.Output, text, 0o644)
	}
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
