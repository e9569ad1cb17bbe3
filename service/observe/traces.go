package observe

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/geniemq/geniemq/service/metrics"
)

// noParent is the context of a span that has no other but its remote parent.
var noParent = context.Background()

// Traces sends spans to an OpenTelemetry collector, by OTLP over HTTP. What the collector does not take in time is dropped: a queue of 2,048 spans is all
// that waits, and no query waits for it.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// TraceOptions say where spans go.
type TraceOptions struct {
	// Endpoint is the collector's URL, such as http://127.0.0.1:4318; without a path, spans go to /v1/traces. Required. Headers, certificates and time
	// limits are those of the variables OTEL_EXPORTER_OTLP_*, as the library reads them.
	Endpoint string
	// Version is this program's.
	Version string
	// Log takes what goes wrong with sending. Required.
	Log *slog.Logger
}

// StartTraces begins to send. Nobody needs to listen yet.
func StartTraces(ctx context.Context, opts TraceOptions) (*Traces, error) {
	endpoint := strings.TrimSuffix(opts.Endpoint, "/")
	if _, path, _ := strings.Cut(endpoint, "://"); !strings.Contains(path, "/") {
		endpoint += "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("sending traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "geniemq"), attribute.String("service.version", opts.Version)), resource.WithFromEnv())
	if err != nil {
		opts.Log.Warn("what traces say of this process is not complete", "error", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(reporting{exporter, opts.Log}),
		sdk.WithResource(about),
		sdk.WithSampler(sdk.ParentBased(sdk.NeverSample())), // whoever asks decides
	)
	return &Traces{provider: provider, tracer: provider.Tracer("github.com/geniemq/geniemq")}, nil
}

// Shutdown sends what is left until ctx ends.
func (t *Traces) Shutdown(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last traces: %w", err)
	}
	return nil
}

// reporting logs what an exporter says, which the library would tell a handler of the whole process.
type reporting struct {
	sdk.SpanExporter
	log *slog.Logger
}

func (r reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := r.SpanExporter.ExportSpans(ctx, spans); err != nil {
		r.log.Warn("traces are not sent", "error", err)
	}
	return nil
}

// message makes the span of a message, and one below it for each stage.
func (t *Traces) message(index string, parent trace.SpanContext, a Answered, c course) {
	kind, operation := trace.SpanKindConsumer, "process"
	if a.Way == metrics.Direct {
		kind, operation = trace.SpanKindServer, "search"
	}
	ctx := trace.ContextWithRemoteSpanContext(noParent, parent)
	ctx, span := t.tracer.Start(ctx, operation+" "+index, trace.WithTimestamp(c.arrived), trace.WithSpanKind(kind), trace.WithAttributes(
		attribute.String("messaging.system", "nats"),
		attribute.String("geniemq.index", index),
		attribute.String("geniemq.version", a.Request.Version()),
		attribute.String("geniemq.way", a.Way.String()),
		attribute.Int("messaging.batch.message_count", a.Request.Len()),
	))
	if a.Way == metrics.Stored {
		span.SetAttributes(attribute.Int64("geniemq.sequence", int64(a.Sequence)))
	}
	if c.failed != nil {
		span.SetStatus(codes.Error, string(c.failed.Code))
	}
	at := c.arrived
	for i, s := range c.stages {
		if i == len(c.stages)-1 { // publishing ends the message, whatever was between
			at = c.ended.Add(-s.took)
		}
		if s.took > 0 {
			_, part := t.tracer.Start(ctx, s.name, trace.WithTimestamp(at))
			at = at.Add(s.took)
			part.End(trace.WithTimestamp(at))
		}
	}
	span.End(trace.WithTimestamp(c.ended))
}
