package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// asm translates an asm statement; end: behind the word. Its operands become variables, its instructions calls:
//
//	{ .reg .pred p; setp.ne.u32 p, %1, 0; @p mbarrier.arrive.shared.b64 _, [%0]; }
//
// becomes
//
//	{ bool p; setp_ne_u32(p, o1, 0, at); if (p) mbarrier_arrive_shared_b64(sink, o0, at); }
//
// What an instruction does says device/ptx.h; one that is not there does not compile.
func (t *translator) asm(end int) error {
	open := skipSpace(t.in, end)
	for _, qualifier := range []string{"volatile", "__volatile__"} {
		if bytes.HasPrefix(t.in[open:], []byte(qualifier)) {
			open = skipSpace(t.in, open+len(qualifier))
		}
	}
	last, err := closing(t.in, open)
	if err != nil {
		return fmt.Errorf("asm: %w", err)
	}
	text := string(t.in[open+1 : last])
	body, err := asmBody(text)
	if err != nil {
		return fmt.Errorf("asm(%s): %w", strings.Join(strings.Fields(text), " "), err)
	}
	t.replaceTo(last+1, "do { "+body+" } while (0)")
	return nil
}

func asmBody(text string) (string, error) {
	sections := splitTop(text, ':') // text, outputs, inputs, what is clobbered; two colons are an empty one between them
	ptx, err := unquote(sections[0])
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("const ::emulated::Place emulated_at = {__builtin_FILE(), __builtin_LINE()}; using namespace ::emulated::ptx; ")
	n := 0
	for i, section := range sections[1:] {
		if i == 2 {
			break // what is clobbered
		}
		for _, operand := range splitList(section) {
			if strings.TrimSpace(operand) == "" {
				continue
			}
			declared, err := declare(n, operand)
			if err != nil {
				return "", err
			}
			b.WriteString(declared)
			n++
		}
	}
	calls, err := instructions(ptx, n)
	if err != nil {
		return "", err
	}
	b.WriteString(calls)
	return b.String(), nil
}

var registers = map[byte]string{'r': "uint32_t", 'l': "uint64_t", 'h': "uint16_t", 'f': "float", 'd': "double"}

// declare makes a variable of an operand: "=r"(x) is a reference, "r"(x) a value.
func declare(n int, operand string) (string, error) {
	operand = strings.TrimSpace(operand)
	end, err := literalEnd([]byte(operand), 0)
	if err != nil || operand[0] != '"' {
		return "", fmt.Errorf("the operand %s has no constraint", operand)
	}
	constraint, value := operand[1:end-1], strings.TrimSpace(operand[end:])
	kind := constraint[len(constraint)-1]
	of, ok := registers[kind]
	switch {
	case constraint == "n":
		return fmt.Sprintf("const auto o%d = %s; ", n, value), nil
	case !ok:
		return "", fmt.Errorf("the constraint %q is not emulated", constraint)
	case len(constraint) == 2 && (constraint[0] == '=' || constraint[0] == '+'):
		return fmt.Sprintf("auto& o%d = out<%s>%s; ", n, of, value), nil
	case len(constraint) == 1:
		return fmt.Sprintf("auto o%d = in<%s>%s; ", n, of, value), nil
	}
	return "", fmt.Errorf("the constraint %q is not emulated", constraint)
}

// unquote joins string literals.
func unquote(text string) (string, error) {
	var all strings.Builder
	in := []byte(text)
	for at := skipSpace(in, 0); at < len(in); at = skipSpace(in, at) {
		if in[at] != '"' {
			return "", fmt.Errorf("asm without a text")
		}
		end, err := literalEnd(in, at)
		if err != nil {
			return "", err
		}
		part, err := strconv.Unquote(string(in[at:end]))
		if err != nil {
			return "", fmt.Errorf("%s: %w", in[at:end], err)
		}
		all.WriteString(part)
		at = end
	}
	return all.String(), nil
}

var ptxTypes = map[string]string{
	"pred": "bool", "b16": "uint16_t", "u16": "uint16_t", "s16": "uint16_t", "b32": "uint32_t", "u32": "uint32_t", "s32": "uint32_t",
	"b64": "uint64_t", "u64": "uint64_t", "s64": "uint64_t", "f32": "float", "f64": "double",
}

// instructions translates PTX.
func instructions(ptx string, operands int) (string, error) {
	var b strings.Builder
	for _, statement := range statementsOf(ptx) {
		switch {
		case statement == "{" || statement == "}":
			b.WriteString(statement + " ")
		case strings.HasPrefix(statement, ".reg"):
			fields := strings.Fields(statement)
			if len(fields) < 3 || ptxTypes[strings.TrimPrefix(fields[1], ".")] == "" {
				return "", fmt.Errorf("%q is not emulated", statement)
			}
			fmt.Fprintf(&b, "%s %s; ", ptxTypes[strings.TrimPrefix(fields[1], ".")], strings.Join(fields[2:], " "))
		default:
			call, err := instruction(statement, operands)
			if err != nil {
				return "", err
			}
			b.WriteString(call)
		}
	}
	return b.String(), nil
}

// statementsOf cuts PTX at semicolons, and at the braces of blocks.
func statementsOf(ptx string) (statements []string) {
	for len(ptx) > 0 {
		ptx = strings.TrimSpace(ptx)
		if ptx == "" {
			break
		}
		if ptx[0] == '{' || ptx[0] == '}' {
			statements = append(statements, ptx[:1])
			ptx = ptx[1:]
			continue
		}
		statement, rest, _ := strings.Cut(ptx, ";")
		statements = append(statements, strings.TrimSpace(statement))
		ptx = rest
	}
	return statements
}

// instruction translates `[@[!]p] mnemonic operand, ...`.
func instruction(text string, operands int) (string, error) {
	var condition string
	if strings.HasPrefix(text, "@") {
		predicate, rest, _ := strings.Cut(text[1:], " ")
		condition, text = "if ("+predicate+") ", strings.TrimSpace(rest)
	}
	mnemonic, rest, _ := strings.Cut(text, " ")
	if strings.HasSuffix(mnemonic, ":") || strings.HasPrefix(mnemonic, "bra") {
		return "", fmt.Errorf("branches in PTX are not emulated: write the loop in C++")
	}
	name := strings.NewReplacer("::", "__", ".", "_").Replace(mnemonic)
	var args []string
	for _, operand := range splitList(rest) {
		if operand = strings.TrimSpace(operand); operand == "" {
			continue
		}
		arg, err := argument(operand, operands)
		if err != nil {
			return "", err
		}
		args = append(args, arg)
	}
	return condition + name + "(" + strings.Join(append(args, "emulated_at"), ", ") + "); ", nil
}

// argument translates an operand of an instruction.
func argument(text string, operands int) (string, error) {
	switch {
	case text == "_":
		return "sink", nil
	case strings.HasPrefix(text, "{"):
		var of []string
		for _, part := range splitList(strings.Trim(text, "{}")) {
			arg, err := argument(strings.TrimSpace(part), operands)
			if err != nil {
				return "", err
			}
			of = append(of, arg)
		}
		return "regs(" + strings.Join(of, ", ") + ")", nil
	case strings.HasPrefix(text, "["):
		return argument(strings.TrimSpace(strings.Trim(text, "[]")), operands)
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		end := i + 1
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		n, err := strconv.Atoi(text[i+1 : end])
		if err != nil || n >= operands {
			return "", fmt.Errorf("there is no operand %s", text[i:end])
		}
		b.WriteString("o" + strconv.Itoa(n))
		i = end - 1
	}
	return b.String(), nil
}
