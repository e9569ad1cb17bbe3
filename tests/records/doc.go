// Package records holds the oracle of mixed records: random schemas, records and queries, and what the answers are by definition. See the
// test files.
package records
