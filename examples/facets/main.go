// Facets asks for everything that one would like to have, and gets what comes nearest: no filter that leaves nothing over.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
)

func main() {
	url := flag.String("nats", nats.DefaultURL, "URL of the NATS server")
	flag.Parse()
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

	// No laptop meets all five. The price counts for three of the others.
	result, err := c.Request(context.Background(), "laptops", client.Query{K: 4, WithPayload: true, Row: client.Conditions(
		client.Weighted(3, client.AtMost("price", 1000)),
		client.AtLeast("memory", 16),
		client.Between("screen", 14.0, 14.5),
		client.AtMost("weight", 1.1),
		client.AnyOf("brand", "Tern", "Corvus"),
	)})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range result.Hits {
		fmt.Printf("%d of 7  %-9s %s\n", hit.Count, hit.Key, hit.Payload)
	}
}
