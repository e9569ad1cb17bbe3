package client

import (
	"reflect"

	"github.com/geniemq/geniemq/wire"
)

// The types of the protocol, under short names.
type (
	Query     = wire.Query
	Condition = wire.Condition
	Value     = wire.Value
	Result    = wire.Result
	Hit       = wire.Hit
	Near      = wire.Near
	Point     = wire.Point
)

// Scalar is what conditions compare with. Integers beyond 2^53 lose their last digits: numbers travel as float64.
type Scalar interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~string | ~bool
}

// Conditions makes the Row or the Items of a [Query] out of [Equal], [Between], [AtLeast], [AtMost] and [AnyOf]:
//
//	client.Query{K: 10, Row: client.Conditions(
//		client.Between("age", 30, 40),
//		client.Equal("sex", "Female"),
//		client.AnyOf("state", "WA", "OR"),
//	)}
func Conditions(conditions ...Condition) []Condition { return conditions }

// Equal matches one value.
func Equal[T Scalar](attr string, v T) Condition { return Condition{Attr: attr, Value: ValueOf(v)} }

// Between matches an inclusive range of numbers, or of strings in the order of their UTF-8 bytes.
func Between[T Scalar](attr string, lo, hi T) Condition {
	return Condition{Attr: attr, Min: ValueOf(lo), Max: ValueOf(hi)}
}

// AtLeast matches everything from a value on.
func AtLeast[T Scalar](attr string, lo T) Condition { return Condition{Attr: attr, Min: ValueOf(lo)} }

// AtMost matches everything up to a value, inclusively.
func AtMost[T Scalar](attr string, hi T) Condition { return Condition{Attr: attr, Max: ValueOf(hi)} }

// AnyOf matches each of several values.
func AnyOf[T Scalar](attr string, values ...T) Condition {
	return Condition{Attr: attr, In: Values(values...)}
}

// Within makes a search by distance, of what a [Query] has as Vector, Text or Point, one for what lies within a radius, in what the column's metric
// reports: of points metres.
//
//	client.Query{Point: &client.Point{Lat: 48.86, Lon: 2.35}, Near: client.Within(100_000), Total: true}
func Within(radius float64) Near { return Near{Radius: radius, HasRadius: true} }

// Weighted returns the condition with a weight: each match counts w instead of 1. w is 1 to 65,535.
func Weighted(w uint32, c Condition) Condition {
	c.Weight = w
	return c
}

// Values makes the Set of a [Query].
func Values[T Scalar](values ...T) []Value {
	vs := make([]Value, len(values))
	for i, v := range values {
		vs[i] = ValueOf(v)
	}
	return vs
}

// ValueOf makes a [Value] of a Go number, string or bool.
func ValueOf[T Scalar](v T) Value {
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return wire.Number(float64(r.Int()))
	case r.CanUint():
		return wire.Number(float64(r.Uint()))
	case r.CanFloat():
		return wire.Number(r.Float())
	case r.Kind() == reflect.Bool:
		return wire.Bool(r.Bool())
	default:
		return wire.String(r.String())
	}
}
