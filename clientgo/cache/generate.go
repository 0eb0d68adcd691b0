package cache

//go:generate go run ../../internal/gen/cacheforward
