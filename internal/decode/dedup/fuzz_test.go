package dedup

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
)

// seedsOf returns small random objects of a type, encoded.
func seedsOf(f *testing.F, filler *deduptest.Filler, t reflect.Type, n int) [][]byte {
	var seeds [][]byte
	for depth := 6; len(seeds) < n; {
		data := randomObject(f, filler, t, depth)
		if len(data) <= 2000 || depth == 0 {
			seeds = append(seeds, data)
		} else {
			depth--
		}
	}
	return seeds
}

// compare decodes data after an object that left its parts in the table, with both
// kinds of sharing and often enough for everything to be shared, and compares
// each time with the generated code. The table is new, so that the effect of an
// input does not depend on the inputs before it; only the plan is an old one.
func compare(t *testing.T, compiled *plan, before, data []byte) {
	typ := compiled.root.typ
	table := tableOf(compiled, typ, inProtobuf)
	d := NewDecoder(table, newObject(typ), ShareAll)
	for range 2 {
		if err := d.Unmarshal(before, newObject(typ)); err != nil {
			t.Fatal(err)
		}
		keen(d)
	}
	same(t, d, data)
	keen(d)
	same(t, d, data)
	same(t, NewDecoder(table, newObject(typ), ShareStrings), data)
}

// tableOf returns a new table that has the plan of a type, without the workers of another table.
func tableOf(p *plan, typ reflect.Type, form form) *Table {
	table := new(Table)
	table.init()
	table.plans.plans[variant{typ: typ, form: form}] = &plan{
		err: p.err, root: p.root, stats: p.stats, types: p.types, hasMetadata: p.hasMetadata,
	}
	return table
}

func planOf(f *testing.F, typ reflect.Type, form form) *plan {
	table := new(Table)
	table.init()
	plan := table.plans.plan(typ, cut{}, form)
	if plan.err != nil && !secret(typ) {
		f.Fatal(plan.err)
	}
	return plan
}

// FuzzEveryType decodes as any type of client-go's scheme: the number says which.
func FuzzEveryType(f *testing.F) {
	types := slices.DeleteFunc(everyType(f), secret)
	filler := deduptest.New(2)
	before := make([][]byte, len(types))
	plans := make([]*plan, len(types))
	for i, typ := range types {
		seeds := seedsOf(f, filler, typ, 2)
		before[i], plans[i] = seeds[0], planOf(f, typ, inProtobuf)
		f.Add(uint16(i), seeds[1])
	}
	c := newCorpus(1, 3)
	w := c.workload(1)
	for _, seed := range []encodable{
		c.pod(w), c.deployment(w), c.configMap(w, 0), c.configMap(w, 1),
	} {
		f.Add(uint16(slices.Index(types, reflect.TypeOf(seed).Elem())), encode(seed))
	}
	f.Fuzz(func(t *testing.T, number uint16, data []byte) {
		i := int(number) % len(types)
		compare(t, plans[i], before[i], data)
	})
}

// FuzzViews decodes as a random view of any of the types, in both encodings. A number says which type,
// and a seed which view.
func FuzzViews(f *testing.F) {
	types := everyType(f)
	filler := deduptest.New(5)
	for i, typ := range types {
		f.Add(uint16(i), uint64(i), randomObject(f, filler, typ, 4))
		f.Add(uint16(i), uint64(i), filler.JSON(f, typ, 3))
	}
	f.Fuzz(func(t *testing.T, number uint16, seed uint64, data []byte) {
		api := types[int(number)%len(types)]
		view := deduptest.Views{Rand: rand.New(rand.NewPCG(seed, 0))}.View(api)
		if view == nil {
			return
		}
		table := new(Table)
		inProtobuf, err := NewDecoder(table, newObject(api), ShareAll).View(view)
		if err != nil {
			t.Fatal(err)
		}
		inJSON, err := newStructDecoder(table, api, ShareAll).View(view)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			sameView(t, inProtobuf, view, api, data)
			sameView(t, inJSON, view, api, data)
			keen(inProtobuf)
			keenStructs(inJSON)
		}
	})
}
