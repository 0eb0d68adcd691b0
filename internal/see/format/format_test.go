package format

import (
	"testing"
	"time"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Int(0), "0"}, {Int(999), "999"}, {Int(1000), "1,000"}, {Int(int64(1234567)), "1,234,567"},
		{Int(-123), "-123"}, {Int(-1234), "-1,234"}, {Some(0), ""}, {Some(uint64(7)), "7"},
		{Counted(1, "object", "objects"), "1 object"}, {Counted(2000, "object", "objects"), "2,000 objects"},
		{Number(0), "0"}, {Number(0.123), "0.12"}, {Number(1.25), "1.2"}, {Number(12345), "12,345"},
		{Percent(0), "0 %"}, {Percent(255.0 / 256), "99 %"}, {Percent(1), "100 %"},
		{Bytes(0), "0 B"}, {Bytes(1023), "1023 B"}, {Bytes(uint64(12345)), "12.1 KiB"}, {Bytes(24 << 20), "24.0 MiB"}, {Bytes(3 << 29), "1.5 GiB"},
		{Short(843 * time.Microsecond), "840µs"}, {Short(1234 * time.Microsecond), "1.2ms"}, {Short(-time.Hour), "0s"},
		{Short(212345 * time.Microsecond), "212ms"}, {Short(30 * time.Second), "30s"}, {Short(2500 * time.Millisecond), "2.5s"},
		{Short(3*time.Minute + 2*time.Second), "3m2s"}, {Short(2*time.Hour + 5*time.Minute), "2h5m"},
		{Clock(time.Date(2026, 1, 2, 12, 25, 40, 0, time.FixedZone("", 3600))), "11:25:40 UTC"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
