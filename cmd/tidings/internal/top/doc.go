// Package top shows the figures of package debug in a terminal: a [Client] reads the pages of one
// process as JSON and returns them as text, and [Run] shows them until the user quits.
//
//	process ─▶ Client ─┬─▶ Run: model ─▶ screens: problems, informers, handlers, controllers, leases,
//	                   │                  │           shards
//	                   │                  └─ Enter ─▶ details: an informer, a controller, a group, a key
//	                   └─▶ Client.Tables, Client.JSON
//
// # The screens
//
//  1. Every refresh reads the first page, and the page of the open details.
//  2. Each screen is a table: columns, and rows with a link, which is the address of a page. Rows
//     with a problem come first, until the user chooses a column.
//  3. Details are lines of text. A line may have a link, for example from a key to the page of the
//     key.
//  4. Ages are relative to the time of the process on its first page: the clocks of the two
//     machines are not compared.
//  5. Without an answer, the last figures remain, in grey, and a line has their age and the error.
//  6. On a narrow screen, names keep their space: columns are left out by rank, and sentences have
//     lines of their own.
//  7. What a key does stands in bindings alone. The footer and the help are made from them.
//  8. Every text of the process passes through view.Printable.
//
// # Concurrency properties
//
// A Client may be used from any goroutine. The model belongs to the goroutine of the program;
// refreshes run in goroutines of their own, one at a time for each screen, and end with the
// context.
//
// # Memory
//
// The figures of the last refresh, and the open pages.
package top
