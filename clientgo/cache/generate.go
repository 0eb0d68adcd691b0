package cache

//go:generate go run ../../internal/tool/gen/cacheforward
