package deduptest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// JSON returns a random object in JSON, with values inside each other at most depth deep.
func (f *Filler) JSON(tb testing.TB, t reflect.Type, depth int) []byte {
	tb.Helper()
	f.json = true
	v := reflect.New(t)
	f.Fill(v.Elem(), depth)
	data, err := json.Marshal(v.Interface())
	if err != nil {
		tb.Fatalf("encode a random %v: %v", t, err)
	}
	return data
}

// maxSeed bounds the bytes of an object that a fuzz target begins with.
const maxSeed = 2000

// Seed returns a random object in JSON, which is small unless one with little in it is not.
func (f *Filler) Seed(tb testing.TB, t reflect.Type) []byte {
	tb.Helper()
	for depth := 4; ; depth-- {
		if data := f.JSON(tb, t, depth); len(data) <= maxSeed || depth == 0 {
			return data
		}
	}
}

// OddValues are values in JSON that stand in the place of others.
var OddValues = []string{
	"null", "true", "false", "0", "-0", "1", "-1", "1.0", "1e3", "1E-2", "127", "128", "255", "256", "-129", "32768", "2147483647", "2147483648", "-2147483649",
	"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1e99", "1e400", "0.1", "01", "-", "1.", "nul", "NaN", "{}", "[]", "[null]", "[[]]", "[{}]", `{"":null}`, `{"a":1,"a":{}}`,
	`""`, `"a"`, `"1"`, `"true"`, `"null"`, `"1Gi"`, `" 1 "`, `"1e3"`, `"0.5n"`, `"1e-100000"`, `"YQ=="`, `"YQ"`, `"YW\nI="`, `"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.123456Z"`, `"2026-01-02T03:04:05+02:00"`, `"2026-13-02T03:04:05Z"`, `"5m"`,
	`"\u0061"`, `"\u00e9\n"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\x"`, "\"\xff\"", "\"\t\"", `"é"`, `[1,2,3]`, `["a",null,"a"]`, `{"name":"a","name":"b"}`, `{"matchLabels":{"a":"b","a":"c"}}`,
}

// Odd returns a JSON text with one to three changes.
func (f *Filler) Odd(data []byte) []byte {
	for range 1 + f.Random.IntN(3) {
		var z wire.Tokens
		if !z.Read(data) || len(z.All) < 2 {
			return data
		}
		t := &z.All[1+f.Random.IntN(len(z.All)-1)]
		begin, end := int(t.Begin), int(t.End)
		switch {
		case f.Random.IntN(12) == 0:
			data = f.oddWhole(data)
		case t.IsText() && end < len(data)-2 && data[end+1] == ':':
			data = f.oddName(data, begin, end, &z.All[t.Next])
		default:
			if t.IsText() {
				begin, end = begin-1, end+1
			}
			value := OddValues[f.Random.IntN(len(OddValues))]
			if f.Random.IntN(4) == 0 {
				other := &z.All[1+f.Random.IntN(len(z.All)-1)]
				if !other.IsText() {
					value = string(data[other.Begin:other.End])
				}
			}
			data = slices.Concat(data[:begin], []byte(value), data[end:])
		}
	}
	return data
}

// oddName changes the name of a field, which is at data[begin:end], or repeats its field.
func (f *Filler) oddName(data []byte, begin, end int, value *wire.Token) []byte {
	name := string(data[begin:end])
	switch f.Random.IntN(6) {
	case 0:
		name = strings.ToUpper(name)
	case 1:
		name = "unknown"
	case 2:
		name = strings.Replace(name, "a", `\u0061`, 1)
	case 3:
		name += "\xff"
	case 4: // twice, with another value first or last
		name += `":` + OddValues[f.Random.IntN(len(OddValues))] + `,"` + name
	default: // twice with the same value
		last := int(value.End)
		if value.IsText() {
			last++
		}
		return slices.Concat(data[:begin-1], data[begin-1:last], []byte(","), data[begin-1:])
	}
	return slices.Concat(data[:begin], []byte(name), data[end:])
}

// oddWhole changes the bytes around an object, and the object as a whole.
func (f *Filler) oddWhole(data []byte) []byte {
	switch f.Random.IntN(6) {
	case 0:
		return append(slices.Clone(data), " \n"...)
	case 1:
		return append(slices.Clone(data), "{}"...)
	case 2:
		return slices.Concat([]byte(" \t"), data)
	case 3:
		deep := []int{50, 98, 99, 100, 101, 9990}[f.Random.IntN(6)]
		return slices.Concat([]byte(`{"unknown":`+strings.Repeat("[", deep)+strings.Repeat("]", deep)+","), data[1:])
	case 4:
		return slices.Concat([]byte(`{"kind":"Secret",`), data[1:])
	default:
		return []byte(strings.ReplaceAll(string(data), `,`, " ,\n "))
	}
}

// Damage returns data with one to three defects.
func (f *Filler) Damage(data []byte) []byte {
	data = slices.Clone(data)
	for range 1 + f.Random.IntN(3) {
		if len(data) == 0 {
			return data
		}
		i := f.Random.IntN(len(data))
		j := i + f.Random.IntN(min(len(data)-i, 40)+1)
		switch f.Random.IntN(6) {
		case 0:
			data[i] ^= 1 << f.Random.IntN(8)
		case 1:
			data[i] = byte(f.Random.IntN(256))
		case 2:
			data = data[:i]
		case 3:
			data = slices.Delete(data, i, j)
		case 4:
			data = slices.Insert(data, i, data[i:j]...)
		default:
			data = append(data, data[i:j]...)
		}
	}
	return data
}

// Same compares the object that the API machinery decodes from data, or its error, with that of
// another decoder. It reports whether there is an object.
func Same(tb testing.TB, data []byte, want, got any, wantErr, gotErr error) bool {
	tb.Helper()
	if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
		tb.Fatalf("%T from %s:\nAPI machinery: %v\nthis decoder:  %v", want, data, wantErr, gotErr)
	}
	if wantErr == nil && !reflect.DeepEqual(want, got) {
		tb.Fatalf("%T from %s:\nAPI machinery: %+v\nthis decoder:  %+v", want, data, want, got)
	}
	return wantErr == nil
}

// Overwrite checks that a decoder has not changed data, which was given to it as frame, and
// overwrites the frame: no object may point into it.
func Overwrite(tb testing.TB, frame, data []byte) {
	tb.Helper()
	if !bytes.Equal(frame, data) {
		tb.Fatalf("%q was changed into %q", data, frame)
	}
	for i := range frame {
		frame[i] ^= 0xa5
	}
}

// Exact checks that all slices of an object end where their memory does: an append
// to one that is shared must not write into it.
func Exact(tb testing.TB, v reflect.Value) {
	tb.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*unsafe.Pointer]() {
			Exact(tb, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				Exact(tb, v.Field(i))
			}
		}
	case reflect.Map:
		for _, value := range v.Seq2() {
			Exact(tb, value)
		}
	case reflect.Slice:
		if v.Cap() != v.Len() {
			tb.Fatalf("a %v has length %d and capacity %d", v.Type(), v.Len(), v.Cap())
		}
		for i := range v.Len() {
			Exact(tb, v.Index(i))
		}
	}
}
