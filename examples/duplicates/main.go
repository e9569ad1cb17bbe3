// Duplicates finds the tickets that say the same as another, in one message to the index and without comparing each with each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
)

type ticket struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func main() {
	url := flag.String("nats", nats.DefaultURL, "URL of the NATS server")
	file := flag.String("tickets", "examples/duplicates/tickets.jsonl", "file that the index was built from")
	flag.Parse()
	tickets, err := read(*file)
	if err != nil {
		log.Fatal(err)
	}
	nc, err := nats.Connect(*url)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	queries := make([]client.Query, len(tickets))
	for i, t := range tickets {
		queries[i] = client.Query{ID: t.ID, Text: t.Text, K: 3}
	}
	results, err := c.RequestBatch(context.Background(), "tickets", queries)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			log.Fatal(r.Err)
		}
		words := r.Hits[0].Count // a ticket has all words of its own text, and nothing has more
		for _, hit := range r.Hits {
			if hit.Key < r.ID && 10*hit.Count >= 7*words {
				fmt.Printf("%s repeats %s: %d of %d words\n", r.ID, hit.Key, hit.Count, words)
			}
		}
	}
}

func read(name string) (tickets []ticket, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var t ticket
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		tickets = append(tickets, t)
	}
	return tickets, lines.Err()
}
