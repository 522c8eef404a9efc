// Conformance drives this package's public face as clients/conformance/PROTOCOL.md says: a JSON object a line in, one a line out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	nodewise "github.com/nodewise/nodewise/clients/go"
)

type line struct {
	ID                 json.RawMessage   `json:"id"`
	Target             string            `json:"target"`
	Face               string            `json:"face"`
	Method             string            `json:"method"`
	Requests           []json.RawMessage `json:"requests"`
	Options            clientOptions     `json:"options"`
	CancelAfterSeconds *float64          `json:"cancel_after_seconds"`
	CancelAfterReplies int               `json:"cancel_after_replies"`
	Ingest             ingestion         `json:"ingest"`
}

type clientOptions struct {
	TimeoutSeconds *float64 `json:"timeout_seconds"`
	Retry          *bool    `json:"retry"`
	Token          string   `json:"token"`
	UserAgent      string   `json:"user_agent"`
	MaxReceive     int      `json:"max_receive_bytes"`
	TLS            *struct {
		CA          string `json:"ca"`
		Certificate string `json:"certificate"`
		Key         string `json:"key"`
	} `json:"tls"`
}

type ingestion struct {
	ProfileID string            `json:"profile_id"`
	SessionID string            `json:"session_id"`
	Batches   []json.RawMessage `json:"batches"`
	Commit    bool              `json:"commit"`
}

type violation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

type outcome struct {
	ID                json.RawMessage   `json:"id"`
	Code              string            `json:"code"`
	Reason            string            `json:"reason"`
	Message           string            `json:"message"`
	Violations        []violation       `json:"violations"`
	Metadata          map[string]string `json:"metadata"`
	RetryDelaySeconds *float64          `json:"retry_delay_seconds"`
	Replies           []any             `json:"replies"`
	Rows              []row             `json:"rows"`
	ElapsedSeconds    float64           `json:"elapsed_seconds"`
}

func main() {
	clients := map[string]*nodewise.Client{}
	input, output := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		text, err := input.ReadBytes('\n')
		if len(text) > 1 {
			if err := output.Encode(answer(clients, text)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}

func answer(clients map[string]*nodewise.Client, text []byte) (told *outcome) {
	told = &outcome{Code: "OK", Violations: []violation{}, Metadata: map[string]string{}, Replies: []any{}, Rows: []row{}}
	begin := time.Now()
	defer func() { told.ElapsedSeconds = time.Since(begin).Seconds() }()
	var asked line
	if err := json.Unmarshal(text, &asked); err != nil {
		told.fail(fmt.Errorf("the line is not as PROTOCOL.md says: %w", err))
		return told
	}
	told.ID = asked.ID
	client, err := clientOf(clients, asked)
	if err != nil {
		told.fail(err)
		return told
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if seconds := asked.Options.TimeoutSeconds; seconds != nil {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, duration(*seconds))
		defer end()
	}
	begin = time.Now()
	if seconds := asked.CancelAfterSeconds; seconds != nil {
		defer time.AfterFunc(duration(*seconds), cancel).Stop()
	}
	if err := told.ask(ctx, client, asked); err != nil {
		told.fail(err)
	}
	return told
}

func clientOf(clients map[string]*nodewise.Client, asked line) (*nodewise.Client, error) {
	given := asked.Options
	given.TimeoutSeconds = nil
	name, err := json.Marshal([]any{asked.Target, given})
	if err != nil || clients[string(name)] != nil {
		return clients[string(name)], err
	}
	var options []nodewise.Option
	if given.Retry != nil {
		options = append(options, nodewise.WithRetry(*given.Retry))
	}
	if given.Token != "" {
		options = append(options, nodewise.WithToken(given.Token))
	}
	if given.UserAgent != "" {
		options = append(options, nodewise.WithUserAgent(given.UserAgent))
	}
	if given.MaxReceive != 0 {
		options = append(options, nodewise.WithMaxReceiveBytes(given.MaxReceive))
	}
	if given.TLS != nil {
		options = append(options, nodewise.WithTLSFiles(given.TLS.CA, given.TLS.Certificate, given.TLS.Key))
	}
	client, err := nodewise.NewClient(asked.Target, options...)
	if err == nil {
		clients[string(name)] = client
	}
	return client, err
}

func (told *outcome) fail(err error) {
	var failure *nodewise.Error
	if !errors.As(err, &failure) {
		told.Code, told.Message = "UNKNOWN", err.Error()
		return
	}
	told.Code, told.Reason, told.Message = code.Code(failure.Code).String(), failure.Reason, failure.Message
	for _, found := range failure.Violations {
		told.Violations = append(told.Violations, violation(found))
	}
	for name, value := range failure.Metadata {
		told.Metadata[name] = value
	}
	if delay, said := failure.RetryDelay(); said {
		seconds := delay.Seconds()
		told.RetryDelaySeconds = &seconds
	}
}

func (told *outcome) reply(message proto.Message) error {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	told.Replies = append(told.Replies, json.RawMessage(text))
	return err
}

func read[M proto.Message](text json.RawMessage, message M) (M, error) {
	return message, protojson.Unmarshal(text, message)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
