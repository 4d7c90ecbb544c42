package js

import (
	"math"
	"strings"
	"time"
)

const (
	dayMillis = 24 * 60 * 60 * 1000
	// The furthest a Date gets from the epoch, either way (ECMA-262 TimeClip).
	maxDateMillis = 100_000_000 * dayMillis
	// A year further out than any Date; sums from years below it fit an int64.
	maxDateYear = 300_000
)

// ISO returns t as Date.prototype.toISOString writes it: UTC, milliseconds cut
// downwards, a sign and six digits for years outside 0 to 9999. Where t is
// outside what a Date can hold (271821 BC to 275760), toISOString would throw;
// ISO goes on in the same form.
func ISO(t time.Time) string {
	var b [len("+002026-01-02T03:04:05.678Z")]byte
	return string(AppendISO(b[:0], t))
}

// AppendISO is [ISO] behind what dst ends with.
func AppendISO(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	switch {
	case year < 0:
		dst = appendPadded(append(dst, '-'), -year, 6)
	case year > 9999:
		dst = appendPadded(append(dst, '+'), year, 6)
	default:
		dst = appendPadded(dst, year, 4)
	}
	dst = appendPadded(append(dst, '-'), int(month), 2)
	dst = appendPadded(append(dst, '-'), day, 2)
	dst = appendPadded(append(dst, 'T'), hour, 2)
	dst = appendPadded(append(dst, ':'), minute, 2)
	dst = appendPadded(append(dst, ':'), second, 2)
	dst = appendPadded(append(dst, '.'), t.Nanosecond()/1e6, 3)
	return append(dst, 'Z')
}

// appendPadded appends n in decimal, with zeros up to width digits.
func appendPadded(dst []byte, n, width int) []byte {
	if width == 2 {
		return append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	var digits [20]byte
	i := len(digits)
	for ; n > 0 || width > 0; width-- {
		i--
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, digits[i:]...)
}

// ParseDate returns new Date(s).getTime() as Node gives it in a process whose
// local time is UTC: milliseconds since 1970, NaN where s is no date.
//
// The rules are ECMA-262's "Date Time String Format", and for all else those of
// V8's dateparser, which reads far more than ISO 8601: words before the first
// number are skipped, text in parentheses too; a month is any word that begins
// with its three letters; AM, PM, UTC, GMT, Z and the North American zones are
// known; "10-12", "10/12" and "10 12" are a month and a day. February 31 is
// March 2 or 3. Dates that Pi writes take a shortcut.
func ParseDate(s string) float64 {
	if ms, ok := parseUsualDate(s); ok {
		return float64(ms)
	}
	return parseAnyDate(s)
}

// parseUsualDate reads the form that toISOString writes for years 0 to 9999.
func parseUsualDate(s string) (int64, bool) {
	if len(s) != len("2026-01-02T03:04:05.678Z") || s[4] != '-' || s[7] != '-' || s[10] != 'T' ||
		s[13] != ':' || s[16] != ':' || s[19] != '.' || s[23] != 'Z' {
		return 0, false
	}
	digits := true
	number := func(from, to int) int {
		n := 0
		for _, c := range []byte(s[from:to]) {
			digits = digits && c-'0' <= 9
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second, milli := number(11, 13), number(14, 16), number(17, 19), number(20, 23)
	if !digits || !isMonth(month) || !isDay(day) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return dateMillis(year, month, day) + timeMillis(hour, minute, second, milli), true
}

func isMonth(n int) bool  { return n >= 1 && n <= 12 }
func isDay(n int) bool    { return n >= 1 && n <= 31 }
func isHour(n int) bool   { return n >= 0 && n <= 23 }
func isMinute(n int) bool { return n >= 0 && n <= 59 } // or a second

// dateMillis returns when the day begins, in the Gregorian calendar at all
// times. A day past the end of its month runs on into the next.
func dateMillis(year, month, day int) int64 {
	// Years counted from March end with the leap day, and their months have a
	// regular pattern of lengths; 400 of them have 146097 days.
	if month <= 2 {
		year--
		month += 12
	}
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	y := year - era*400
	days := era*146097 + y*365 + y/4 - y/100 + (153*(month-3)+2)/5 + day - 1
	const epoch = 719468 // days from March 1 of year 0 to January 1, 1970
	return int64(days-epoch) * dayMillis
}

func timeMillis(hour, minute, second, milli int) int64 {
	return int64(((hour*60+minute)*60+second)*1000 + milli)
}

// missing stands for a field of dateFields that no token has set.
const missing = -1

// dateFields collects what the tokens of a date say. Numbers are taken in the
// order in which they come; which is the month is known only at the end.
type dateFields struct {
	iso      bool   // the numbers are year, month, day
	numbers  [3]int // day, month and year in some order
	nNumbers int
	month    int // named by a word, or missing

	clock    [4]int // hour, minute, second, millisecond
	nClock   int
	halfDay  int // hours that AM or PM adds, or missing
	zoneSign int // 0 while there is no zone: local time, which is UTC
	zoneHour int // without sign, or missing
	zoneMin  int // without sign, or missing
}

func (d *dateFields) addNumber(n int) bool {
	if d.nNumbers == len(d.numbers) {
		return false
	}
	d.numbers[d.nNumbers] = n
	d.nNumbers++
	return true
}

func (d *dateFields) addClock(n int) bool {
	if d.nClock == len(d.clock) {
		return false
	}
	d.clock[d.nClock] = n
	d.nClock++
	return true
}

// endClock says that no more of the time of day follows; the rest is zero.
func (d *dateFields) endClock() { d.nClock = len(d.clock) }

// wantsClock reports whether n can be what the time of day goes on with.
func (d *dateFields) wantsClock(n int) bool {
	switch d.nClock {
	case 1, 2:
		return isMinute(n)
	case 3:
		return n <= 999
	}
	return false
}

func (d *dateFields) setZone(sign, hour, minute int) {
	d.zoneSign, d.zoneHour, d.zoneMin = sign, hour, minute
}

// wantsZoneMinute reports whether n can be the minutes of an offset whose hour
// a colon followed.
func (d *dateFields) wantsZoneMinute(n int) bool {
	return d.zoneHour != missing && d.zoneMin == missing && isMinute(n)
}

// millis puts the fields together.
func (d *dateFields) millis() float64 {
	year, month, day, ok := d.yearMonthDay()
	if !ok || year < -maxDateYear || year > maxDateYear {
		return math.NaN()
	}
	clock, ok := d.timeOfDay()
	if !ok {
		return math.NaN()
	}
	offset, ok := d.zoneSeconds()
	if !ok {
		return math.NaN()
	}
	ms := dateMillis(year, month, day) + clock - offset*1000
	if ms < -maxDateMillis || ms > maxDateMillis {
		return math.NaN()
	}
	return float64(ms)
}

func (d *dateFields) yearMonthDay() (year, month, day int, ok bool) {
	if d.nNumbers == 0 {
		return 0, 0, 0, false
	}
	// A month and a day that were not given are the first.
	a, b, c := d.numbers[0], 1, 1
	if d.nNumbers > 1 {
		b = d.numbers[1]
	}
	if d.nNumbers > 2 {
		c = d.numbers[2]
	}
	switch named := d.month != missing; {
	case !named && (d.iso || !isDay(a)):
		year, month, day = a, b, c
	case !named:
		month, day, year = a, b, c
	case !isDay(a):
		year, month, day = a, d.month, b
	default:
		day, month, year = a, d.month, b
	}
	if !d.iso {
		switch {
		case year >= 0 && year <= 49:
			year += 2000
		case year >= 50 && year <= 99:
			year += 1900
		}
	}
	return year, month, day, isMonth(month) && isDay(day)
}

func (d *dateFields) timeOfDay() (ms int64, ok bool) {
	hour, minute, second, milli := d.clock[0], d.clock[1], d.clock[2], d.clock[3]
	if d.halfDay != missing {
		if hour > 12 {
			return 0, false
		}
		hour = hour%12 + d.halfDay
	}
	ok = isHour(hour) && isMinute(minute) && isMinute(second) && milli <= 999 ||
		hour == 24 && minute|second|milli == 0
	return timeMillis(hour, minute, second, milli), ok
}

func (d *dateFields) zoneSeconds() (int64, bool) {
	if d.zoneSign == 0 {
		return 0, true
	}
	// V8 multiplies in 32 bits and lets an absurd hour wrap around.
	seconds := uint32(max(0, d.zoneHour))*3600 + uint32(max(0, d.zoneMin))*60
	return int64(d.zoneSign) * int64(seconds), seconds <= math.MaxInt32
}

// parseAnyDate reads s as far as it goes as the ISO form, and the rest by the
// rules that V8 calls legacy.
func parseAnyDate(s string) float64 {
	// V8 takes U+0000 for the end.
	if end := strings.IndexByte(s, 0); end >= 0 {
		s = s[:end]
	}
	tokens := newDateTokens(s)
	fields := dateFields{month: missing, halfDay: missing, zoneHour: missing, zoneMin: missing}
	ok, done := readISODate(&tokens, &fields)
	if ok && !done {
		ok = readLegacyDate(&tokens, &fields)
	}
	if !ok {
		return math.NaN()
	}
	return fields.millis()
}

// readISODate reads [±YY]YYYY[-MM[-DD]][THH:mm[:ss[.s…]][Z|±HH[:]mm]]. Where the
// tokens turn out to be of another form, it leaves off before the first that
// does not fit, keeping what it has read, and done is false; but after a T, ok
// is false, because no other form has one there.
func readISODate(t *dateTokens, d *dateFields) (ok, done bool) {
	switch {
	case t.isSign():
		// Before a number, the legacy rules skip a sign.
		sign := t.take().sign()
		if !t.isNumber(6) {
			return true, false
		}
		// There is no year -0; V8 drops the number and goes on.
		year := t.take().value
		if sign < 0 && year == 0 {
			return true, false
		}
		d.addNumber(sign * year)
	case t.isNumber(4):
		d.addNumber(t.take().value)
	default:
		return true, false
	}
	for _, fits := range [](func(int) bool){isMonth, isDay} {
		if !t.skip('-') {
			break
		}
		if !t.isNumber(2) || !fits(t.next.value) {
			return true, false
		}
		d.addNumber(t.take().value)
	}
	if t.next.kind == dateEnd {
		d.iso = true
		return true, true
	}
	if t.next.kind != wordT {
		return true, false
	}
	t.take()
	d.iso = true
	ok = readISOTime(t, d) && readISOZone(t, d) && t.next.kind == dateEnd
	return ok, true
}

// readISOTime reads HH:mm[:ss[.s…]], where only 24:00:00.0 has the hour 24.
func readISOTime(t *dateTokens, d *dateFields) bool {
	if !t.isNumber(2) || t.next.value > 24 {
		return false
	}
	most := 59
	if t.next.value == 24 {
		most = 0
	}
	d.addClock(t.take().value)
	if !t.skip(':') || !t.isNumber(2) || t.next.value > most {
		return false
	}
	d.addClock(t.take().value)
	if !t.skip(':') {
		return true
	}
	if !t.isNumber(2) || t.next.value > most {
		return false
	}
	d.addClock(t.take().value)
	if !t.skip('.') {
		return true
	}
	if t.next.kind != dateNumber || most == 0 && t.next.value > 0 {
		return false
	}
	d.addClock(t.take().milliseconds())
	return true
}

// readISOZone reads Z, ±HH:mm, ±HHmm or nothing.
func readISOZone(t *dateTokens, d *dateFields) bool {
	if t.isZ() {
		t.take()
		d.setZone(1, 0, 0)
		return true
	}
	if !t.isSign() {
		return true
	}
	sign := t.take().sign()
	var hour, minute int
	if t.isNumber(4) {
		n := t.take().value
		hour, minute = n/100, n%100
	} else {
		if !t.isNumber(2) {
			return false
		}
		hour = t.take().value
		if !t.skip(':') || !t.isNumber(2) {
			return false
		}
		minute = t.take().value
	}
	d.setZone(sign, hour, minute)
	return isHour(hour) && isMinute(minute)
}

// readLegacyDate reads the tokens that are left, in whatever order they come.
func readLegacyDate(t *dateTokens, d *dateFields) bool {
	// Before the first number, words, signs and brackets mean nothing.
	numberSeen := d.nNumbers > 0
	for t.next.kind != dateEnd {
		ok := true
		switch token := t.take(); {
		case token.kind == dateNumber:
			numberSeen = true
			ok = readLegacyNumber(t, d, token.value)
		case token.kind >= wordOther:
			ok = readLegacyWord(t, d, token, numberSeen)
		case token.sign() != 0 && (d.nClock > 0 || d.zoneHour == 0 && d.zoneMin == 0):
			numberSeen = true
			ok = readLegacyOffset(t, d, token.sign())
		case token.sign() != 0, token.is(')'):
			ok = !numberSeen
		}
		if !ok {
			return false
		}
	}
	return true
}

// readLegacyNumber takes n for a part of the time, of the offset, or of the
// date: what stands behind it decides, then what is still open.
func readLegacyNumber(t *dateTokens, d *dateFields, n int) bool {
	if t.skip(':') {
		if t.skip(':') { // "10::" is "10:00:"
			return d.nClock == 0 && d.addClock(n) && d.addClock(0)
		}
		if !d.addClock(n) {
			return false
		}
		t.skip('.')
		return true
	}
	// The point goes even where n is no second.
	if t.skip('.') && d.wantsClock(n) {
		d.addClock(n)
		if t.next.kind != dateNumber {
			return false
		}
		d.addClock(t.take().milliseconds())
		d.endClock()
		return true
	}
	if d.wantsZoneMinute(n) {
		d.zoneMin = n
		return true
	}
	if d.wantsClock(n) {
		d.addClock(n)
		d.endClock()
		return t.next.kind == dateEnd || t.next.kind == dateSpace || t.isZ() || t.isSign()
	}
	if !d.addNumber(n) {
		return false
	}
	t.skip('-')
	return true
}

func readLegacyWord(t *dateTokens, d *dateFields, word dateToken, numberSeen bool) bool {
	switch {
	case word.kind == wordHalfDay && d.nClock > 0:
		d.halfDay = word.value
	case word.kind == wordMonth:
		d.month = word.value
		t.skip('-')
	case word.kind == wordZone && numberSeen:
		if word.value < 0 {
			d.setZone(-1, -word.value, 0)
		} else {
			d.setZone(1, word.value, 0)
		}
	default:
		// An unknown word may stand before the first number, but not touch it.
		return !numberSeen && t.next.kind != dateNumber
	}
	return true
}

// readLegacyOffset reads what follows the sign of an offset: H, HH, HMM or HHMM,
// or any number before a colon, whose minutes readLegacyNumber finds.
func readLegacyOffset(t *dateTokens, d *dateFields, sign int) bool {
	var number dateToken
	if t.next.kind == dateNumber {
		number = t.take()
	}
	n := number.value
	switch {
	case t.next.is(':'):
		d.setZone(sign, n, missing)
	case number.width == 1 || number.width == 2:
		d.setZone(sign, n, 0)
	case number.width == 3 || number.width == 4:
		d.setZone(sign, n/100, n%100)
	default:
		return false
	}
	return true
}

type dateKind uint8

const (
	dateEnd    dateKind = iota
	dateNumber          // value
	dateSymbol          // value is one of : - + . )
	dateSpace
	dateSkipped // any other character, or text in parentheses

	// Words, from here on.
	wordOther
	wordMonth   // value from 1
	wordHalfDay // value is the hours that it adds
	wordZone    // value is the offset in hours
	wordT
)

type dateToken struct {
	kind  dateKind
	value int
	width int // in characters; of a word, in bytes
}

func (t dateToken) is(symbol byte) bool { return t.kind == dateSymbol && t.value == int(symbol) }

// sign returns 1 for +, -1 for - and 0 for all else.
func (t dateToken) sign() int {
	switch {
	case t.is('+'):
		return 1
	case t.is('-'):
		return -1
	}
	return 0
}

const maxDateDigits = 9

// milliseconds returns the first three digits behind a decimal point; in a
// number of more than nine digits that begins with zeros V8 takes later ones,
// because its value and its width are then cut at different places.
func (t dateToken) milliseconds() int {
	n, width := t.value, min(t.width, maxDateDigits)
	for ; width < 3; width++ {
		n *= 10
	}
	for ; width > 3; width-- {
		n /= 10
	}
	return n
}

// dateTokens reads a date's tokens, one ahead.
type dateTokens struct {
	rest string
	next dateToken
}

func newDateTokens(s string) dateTokens {
	t := dateTokens{rest: s}
	t.scan()
	return t
}

// take returns the next token and goes past it.
func (t *dateTokens) take() dateToken {
	token := t.next
	t.scan()
	return token
}

// skip goes past the next token if it is the symbol.
func (t *dateTokens) skip(symbol byte) bool {
	if !t.next.is(symbol) {
		return false
	}
	t.scan()
	return true
}

func (t *dateTokens) isSign() bool { return t.next.sign() != 0 }
func (t *dateTokens) isNumber(width int) bool {
	return t.next.kind == dateNumber && t.next.width == width
}
func (t *dateTokens) isZ() bool { return t.next.kind == wordZone && t.next.width == 1 }

func (t *dateTokens) scan() {
	if t.rest == "" {
		t.next = dateToken{kind: dateEnd}
		return
	}
	width := 1
	switch c := t.rest[0]; {
	case c-'0' <= 9:
		t.next = dateDigits(t.rest)
		width = t.next.width
	case dateSpaceWidth(t.rest) > 0:
		width = dateSpaceWidth(t.rest)
		t.next = dateToken{kind: dateSpace}
	case c >= 'A':
		width = dateWordWidth(t.rest)
		kind, value := dateWord(t.rest[:width])
		t.next = dateToken{kind, value, width}
	case c == '(':
		width = parenthesized(t.rest)
		t.next = dateToken{kind: dateSkipped}
	default:
		t.next = dateToken{kind: dateSkipped}
		if strings.IndexByte(":-+.)", c) >= 0 {
			t.next = dateToken{dateSymbol, int(c), 1}
		}
	}
	t.rest = t.rest[width:]
}

// dateDigits returns the number that s begins with. V8 drops its digits after
// the ninth that counts, though not from its width.
func dateDigits(s string) dateToken {
	t := dateToken{kind: dateNumber}
	for significant := 0; t.width < len(s) && s[t.width]-'0' <= 9; t.width++ {
		digit := int(s[t.width] - '0')
		if significant == 0 && digit == 0 {
			continue
		}
		if significant < maxDateDigits {
			t.value = t.value*10 + digit
		}
		significant++
	}
	return t
}

// dateSpaceWidth returns the width of the white space character that the
// non-empty s begins with, or 0. U+2028 and U+2029 are none here.
func dateSpaceWidth(s string) int {
	n := leadingSpace(s)
	if n == 3 && (s[:3] == "\u2028" || s[:3] == "\u2029") {
		return 0
	}
	return n
}

// dateWordWidth returns the width of the word that s begins with. For V8 every
// character from A on is a letter, brackets and emoji too, unless it is white
// space; and so is every byte of the UTF-8 of one beyond ASCII.
func dateWordWidth(s string) int {
	i := 0
	for i < len(s) && s[i] >= 'A' && dateSpaceWidth(s[i:]) == 0 {
		i++
	}
	return i
}

// parenthesized returns the width of the text in parentheses, nested ones
// included, that s begins with. It ends with s if nothing closes it.
func parenthesized(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// dateWord returns what a word means. Case does not count; only months may go
// on after their third letter.
func dateWord(word string) (dateKind, int) {
	var letters [3]byte
	n := min(len(word), len(letters))
	for i := range n {
		letters[i] = word[i] | 0x20 // the lower case; makes no letter of what is none
	}
	switch string(letters[:n]) {
	case "jan":
		return wordMonth, 1
	case "feb":
		return wordMonth, 2
	case "mar":
		return wordMonth, 3
	case "apr":
		return wordMonth, 4
	case "may":
		return wordMonth, 5
	case "jun":
		return wordMonth, 6
	case "jul":
		return wordMonth, 7
	case "aug":
		return wordMonth, 8
	case "sep":
		return wordMonth, 9
	case "oct":
		return wordMonth, 10
	case "nov":
		return wordMonth, 11
	case "dec":
		return wordMonth, 12
	}
	if len(word) > len(letters) {
		return wordOther, 0
	}
	switch string(letters[:n]) {
	case "am":
		return wordHalfDay, 0
	case "pm":
		return wordHalfDay, 12
	case "z", "ut", "utc", "gmt":
		return wordZone, 0
	case "edt":
		return wordZone, -4
	case "est", "cdt":
		return wordZone, -5
	case "cst", "mdt":
		return wordZone, -6
	case "mst", "pdt":
		return wordZone, -7
	case "pst":
		return wordZone, -8
	case "t":
		return wordT, 0
	}
	return wordOther, 0
}
