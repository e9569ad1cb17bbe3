package value

import (
	"math"
	"strconv"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// exact is the largest float64 up to which every integer has one of its own.
const exact = 1 << 53

func appendFloat(dst []byte, v float64) []byte {
	if math.Abs(v) == exact {
		return msgpack.AppendInt(dst, int64(v))
	}
	return msgpack.AppendNumber(dst, v) // as an integer, where it is less than that
}

// decimalType is the extension type of MessagePack that holds a number as decimal text.
const decimalType = 1

// appendDecimal appends a number that has no other form.
func appendDecimal(dst []byte, text string) []byte {
	return append(append(msgpack.AppendHead8(dst, msgpack.Ext8, len(text)), decimalType), text...)
}

// Decimal returns the text of a number that comes as MessagePack's extension type 1: data is what follows the head, its type first.
func Decimal(data string) (text string, ok bool) {
	if data == "" || data[0] != decimalType {
		return "", false
	}
	_, ok = scan(data[1:])
	return data[1:], ok
}

// decimal is a number as its significant digits, without zeros at either end.
type decimal struct {
	negative bool
	digits   [20]byte // no float64 needs more than 17
	n        int      // digits, of which those beyond len(digits) are not kept
	power    int      // of ten, of the first digit
	integer  bool     // written without a point and an exponent
}

// append appends the number, which is that of text, in the first form that holds it exactly. What is known not to fit is not tried:
// strconv's errors take memory.
func (d *decimal) append(dst []byte, text string) []byte {
	if d.integer && d.power < 20 && text != "-0" {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return msgpack.AppendInt(dst, v)
		} else if v, err := strconv.ParseUint(text, 10, 64); err == nil {
			return msgpack.AppendUint(dst, v)
		}
	}
	if d.power < 309 {
		if v, err := strconv.ParseFloat(text, 64); err == nil && d.is(v) {
			return appendFloat(dst, v)
		}
	}
	return appendDecimal(dst, text)
}

// scan reads a number in the spelling of JSON. It is false for anything else.
func scan(text string) (d decimal, ok bool) {
	i := 0
	if i < len(text) && text[i] == '-' {
		d.negative = true
		i++
	}
	whole := digits(text, i)
	if whole == i || text[i] == '0' && whole > i+1 {
		return d, false
	}
	d.add(text[i:whole], whole-i-1)
	d.integer = whole == len(text)
	if i = whole; i < len(text) && text[i] == '.' {
		end := digits(text, i+1)
		if end == i+1 {
			return d, false
		}
		d.add(text[i+1:end], -1)
		i = end
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		sign := i
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		end := digits(text, i)
		if end == i {
			return d, false
		}
		power, _ := strconv.Atoi(text[sign:end]) // the largest there is when it is larger, which is as good
		d.power += max(-1<<40, min(power, 1<<40))
		i = end
	}
	for d.n > 0 && d.n <= len(d.digits) && d.digits[d.n-1] == '0' {
		d.n--
		d.digits[d.n] = 0
	}
	if d.n == 0 {
		d.power = 0
	}
	return d, i == len(text)
}

// digits returns where the digits at s[i:] end.
func digits(s string, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// add adds digits, the first of which has a power of ten.
func (d *decimal) add(digits string, power int) {
	for i := range len(digits) {
		c := digits[i]
		if d.n == 0 {
			if c == '0' {
				continue
			}
			d.power = power - i
		}
		if d.n < len(d.digits) {
			d.digits[d.n] = c
			d.n++
		} else if c != '0' {
			d.n = len(d.digits) + 1
		}
	}
}

// is says whether v, in its shortest decimal form, is this very number.
func (d *decimal) is(v float64) bool {
	const always, least = 15, 0x1p-1022 // digits that any float64 but the smallest ones holds
	switch {
	case d.n == 0 || v == 0:
		return d.n == 0 && v == 0
	case d.n <= always && math.Abs(v) >= least:
		return true
	}
	var buf [32]byte
	short, _ := scan(string(strconv.AppendFloat(buf[:0], v, 'e', -1, 64)))
	return d.negative == short.negative && d.n == short.n && d.digits == short.digits && d.power == short.power
}
