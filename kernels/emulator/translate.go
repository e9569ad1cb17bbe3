package main

import (
	"bytes"
	"fmt"
	"strings"
)

// A translator makes C++ of a preprocessed kernel source. What is left that C++ has not:
//
//	EMULATED_GLOBAL void EMULATED_BOUNDS(256, 6) name(const T t) {...}   the kernel is also registered, behind its body
//	extern EMULATED_SHARED uint8_t memory[];                            a pointer to the block's dynamic shared memory
//	EMULATED_SHARED T x;                                                a static variable
//	asm volatile("..." : "=r"(x) : "r"(y) : "memory");                  calls of the instructions' functions (asm.go)
//
// Lines stay where they are, so that the compiler's messages and the emulator's point into the source. Headers of the system are
// not touched.
type translator struct {
	in     []byte
	at     int
	out    bytes.Buffer
	file   string
	line   int
	scopes []bool // of each open brace: a namespace's
	// The kernel whose head or body is being read.
	kernel *kernelHead
}

type kernelHead struct {
	name, most string
	depth      int  // of braces where its body begins
	body       bool // has begun
}

// epilogue tells the driver what the module has. Its variables that are zero at first are static shared memory, those of templates too,
// for which g++ ignores a section; the emulator's own lie elsewhere.
const epilogue = `
extern "C" __attribute__((visibility("hidden"))) uint8_t __bss_start[], _end[];
extern "C" __attribute__((visibility("default"))) ::emulated::Module emulated_module() {
  return {::emulated::kernels, __bss_start, uint32_t(_end - __bss_start)};
}
`

func translate(preprocessed []byte) ([]byte, error) {
	t := &translator{in: preprocessed}
	for t.at < len(t.in) {
		if err := t.token(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", t.file, t.line, err)
		}
	}
	t.out.WriteString(epilogue)
	return t.out.Bytes(), nil
}

// token translates what comes next.
func (t *translator) token() error {
	c := t.in[t.at]
	switch {
	case c == '#' && (t.at == 0 || t.in[t.at-1] == '\n'):
		t.marker()
	case c == '"' || c == '\'':
		end, err := literalEnd(t.in, t.at)
		if err != nil {
			return err
		}
		t.copyTo(end)
	case isDigit(c):
		end := t.at
		for end < len(t.in) && (isWord(t.in[end]) || t.in[end] == '.' || t.in[end] == '\'') {
			end++
		}
		t.copyTo(end)
	case isWord(c):
		return t.word()
	case c == '{':
		t.scopes = append(t.scopes, t.opensNamespace())
		if t.kernel != nil && !t.kernel.body {
			t.kernel.body, t.kernel.depth = true, len(t.scopes)
		}
		t.copyTo(t.at + 1)
	case c == '}':
		t.copyTo(t.at + 1)
		t.close()
	default:
		t.copyTo(t.at + 1)
	}
	return nil
}

// copyTo copies the input up to a place.
func (t *translator) copyTo(end int) {
	t.out.Write(t.in[t.at:end])
	t.line += bytes.Count(t.in[t.at:end], []byte("\n"))
	t.at = end
}

// replaceTo writes a text in place of the input up to a place, on as many lines.
func (t *translator) replaceTo(end int, by string) {
	lines := bytes.Count(t.in[t.at:end], []byte("\n"))
	t.out.WriteString(by)
	t.out.WriteString(strings.Repeat("\n", lines))
	t.line += lines
	t.at = end
}

// marker reads a line marker: # line "file".
func (t *translator) marker() {
	end := t.at + bytes.IndexByte(t.in[t.at:], '\n')
	if end < t.at {
		end = len(t.in)
	}
	var line int
	var file string
	isMarker := false
	if n, _ := fmt.Sscanf(string(t.in[t.at:end]), "# %d %q", &line, &file); n == 2 {
		isMarker = true
	}
	t.copyTo(min(end+1, len(t.in)))
	if isMarker {
		t.line, t.file = line, file
	}
}

// ours says whether a token is of a kernel and not of the emulator or the system.
func (t *translator) ours() bool {
	return strings.Contains(t.file, "kernels/") && !strings.Contains(t.file, "kernels/emulator/device/")
}

func (t *translator) word() error {
	end := t.at
	for end < len(t.in) && isWord(t.in[end]) {
		end++
	}
	word := string(t.in[t.at:end])
	if !t.ours() {
		t.copyTo(end)
		return nil
	}
	switch word {
	case "asm":
		return t.asm(end)
	case "extern":
		if next := skipSpace(t.in, end); bytes.HasPrefix(t.in[next:], []byte("EMULATED_SHARED")) {
			return t.dynamic(next + len("EMULATED_SHARED"))
		}
	case "EMULATED_SHARED":
		t.replaceTo(end, "static")
		return nil
	case "EMULATED_GLOBAL":
		t.kernel = &kernelHead{}
		t.replaceTo(end, `__attribute__((visibility("default")))`)
		return nil
	case "EMULATED_BOUNDS":
		open := skipSpace(t.in, end)
		last, err := closing(t.in, open)
		if err != nil {
			return err
		}
		if t.kernel != nil {
			t.kernel.most = splitList(string(t.in[open+1 : last]))[0]
		}
		t.replaceTo(last+1, "")
		return nil
	default:
		if next := skipSpace(t.in, end); t.kernel != nil && t.kernel.name == "" && word != "void" && word != "__attribute__" && next < len(t.in) && t.in[next] == '(' {
			t.kernel.name = word
			last, err := closing(t.in, next)
			if err != nil {
				return err
			}
			if after := skipSpace(t.in, last+1); after < len(t.in) && t.in[after] == ';' {
				t.kernel = nil // it is declared
			}
		}
	}
	t.copyTo(end)
	return nil
}

// close ends a scope, and registers the kernel whose body it was.
func (t *translator) close() {
	if len(t.scopes) == 0 {
		return
	}
	if k := t.kernel; k != nil && k.body && k.depth == len(t.scopes) {
		most := k.most
		if most == "" {
			most = "0"
		}
		fmt.Fprintf(&t.out, ` static __attribute__((section(".data.emulated"))) ::emulated::Registered emulated_of_%[1]s("%[1]s", &::emulated::Thunk<decltype(&%[1]s)>::call<&%[1]s>,`+
			` ::emulated::Thunk<decltype(&%[1]s)>::bytes, ::emulated::Thunk<decltype(&%[1]s)>::parameters, uint32_t(%[2]s));`, k.name, most)
		t.kernel = nil
	}
	t.scopes = t.scopes[:len(t.scopes)-1]
}

// opensNamespace says whether the brace at hand is of `namespace [name]` or `extern "C"`.
func (t *translator) opensNamespace() bool {
	from := t.at
	for from > 0 && !strings.ContainsRune(";{}#", rune(t.in[from-1])) {
		from--
	}
	for head := range strings.Lines(string(t.in[from:t.at])) {
		head = strings.TrimSpace(head)
		if strings.HasPrefix(head, "namespace") || strings.HasPrefix(head, "inline namespace") || head == `extern "C"` || head == `extern "C++"` {
			return true
		}
	}
	return false
}

// dynamic translates a declaration of dynamic shared memory; from: behind its qualifier.
func (t *translator) dynamic(from int) error {
	end := bytes.IndexByte(t.in[from:], ';')
	if end < 0 {
		return fmt.Errorf("dynamic shared memory without an end")
	}
	end += from
	text := strings.TrimSpace(string(t.in[from:end]))
	for strings.HasPrefix(text, "__attribute__") {
		last, err := closing([]byte(text), strings.IndexByte(text, '('))
		if err != nil {
			return err
		}
		text = strings.TrimSpace(text[last+1:])
	}
	bracket := strings.IndexByte(text, '[')
	if bracket < 0 || strings.TrimSpace(text[bracket:]) != "[]" {
		return fmt.Errorf("dynamic shared memory is declared as an array without a length, not as %q", text)
	}
	text = strings.TrimSpace(text[:bracket])
	name := strings.LastIndexFunc(text, func(r rune) bool { return !isWord(byte(r)) }) + 1
	of, called := strings.TrimSpace(text[:name]), text[name:]
	for _, namespace := range t.scopes {
		if !namespace {
			t.replaceTo(end, fmt.Sprintf("%s* const %s = static_cast<%s*>(::emulated::dynamicShared())", of, called, of))
			return nil
		}
	}
	t.replaceTo(end, fmt.Sprintf("static const ::emulated::Dynamic<%s> %s{}", of, called))
	return nil
}

// ---- Text

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isWord(c byte) bool {
	return c == '_' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func skipSpace(in []byte, at int) int {
	for at < len(in) && (in[at] == ' ' || in[at] == '\n' || in[at] == '\t') {
		at++
	}
	return at
}

// literalEnd is where a literal ends that begins with the quote at a place.
func literalEnd(in []byte, at int) (int, error) {
	for end := at + 1; end < len(in); end++ {
		switch in[end] {
		case '\\':
			end++
		case in[at]:
			return end + 1, nil
		}
	}
	return 0, fmt.Errorf("a literal without an end")
}

// closing is the place of the parenthesis that closes the one at a place.
func closing(in []byte, at int) (int, error) {
	if at < 0 || at >= len(in) || in[at] != '(' {
		return 0, fmt.Errorf("a parenthesis is missing")
	}
	depth := 0
	for end := at; end < len(in); end++ {
		switch in[end] {
		case '"', '\'':
			after, err := literalEnd(in, end)
			if err != nil {
				return 0, err
			}
			end = after - 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
			if depth == 0 {
				return end, nil
			}
		}
	}
	return 0, fmt.Errorf("a parenthesis is not closed")
}

// splitList cuts a text at commas that are in no parentheses and no literal.
func splitList(text string) []string { return splitTop(text, ',') }

// splitTop cuts a text at a character that is in no parentheses and no literal.
func splitTop(text string, by byte) (parts []string) {
	depth, from := 0, 0
	in := []byte(text)
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c == '"' || c == '\'':
			if after, err := literalEnd(in, i); err == nil {
				i = after - 1
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case c == by && depth == 0:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}
