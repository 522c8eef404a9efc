package nodewise

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

const (
	domain      = "nodewise"
	pushbackKey = "grpc-retry-pushback-ms"
	clockSlack  = 20 * time.Millisecond
)

// Violation is a field that holds what it must not.
type Violation struct {
	// Field is the path from the request, e.g. "configurations.nodes[3]".
	Field string
	// Description says what would be right, and what was found.
	Description string
}

// Error is a call, a job of a call, or a question of a stream that failed. Get it by errors.As. Where the context ended the call, it wraps the
// context's error: errors.Is(err, context.DeadlineExceeded) or errors.Is(err, context.Canceled) holds.
type Error struct {
	// Code is the status code.
	Code codes.Code
	// Reason is from the server's catalogue, e.g. "PROFILE_NOT_FOUND": stable, and meant to be switched on. Empty where the server gave none.
	Reason string
	// Message is for people.
	Message string
	// Violations are the fields that hold what they must not.
	Violations []Violation
	// Metadata holds the dynamic parts of the message, by name.
	Metadata map[string]string

	delay    time.Duration
	hasDelay bool
	status   *status.Status
	cause    error
}

// RetryDelay is how long the server asks to wait before the same is tried again, and whether it said so. Where it did not, the same fails again.
func (e *Error) RetryDelay() (delay time.Duration, said bool) { return e.delay, e.hasDelay }

// MissingFields are the fields of the profile that would make an answer possible.
func (e *Error) MissingFields() []string {
	return strings.FieldsFunc(e.Metadata["missingFields"], func(r rune) bool { return r == ',' || r == ' ' })
}

func (e *Error) Error() string {
	name := e.Reason
	if name == "" {
		name = e.Code.String()
	}
	text := "nodewise: " + name + ": " + e.Message
	for _, violation := range e.Violations {
		if !strings.Contains(e.Message, violation.Description) {
			text += "; " + violation.Field + ": " + violation.Description
		}
	}
	if e.hasDelay {
		text += fmt.Sprintf("; try again in %v", e.delay)
	}
	return text
}

// GRPCStatus is the status as gRPC gave it, so that status.FromError and status.Code work.
func (e *Error) GRPCStatus() *status.Status {
	if e.status == nil {
		return status.New(e.Code, e.Message)
	}
	return e.status
}

// Unwrap is the context's error where that ended the call, else nil.
func (e *Error) Unwrap() error { return e.cause }

// ReasonOf is the reason of an error of this package, else empty.
func ReasonOf(err error) string {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

// ProblemError is a problem of one job, row or question as an error; nil where there is none.
func ProblemError(problem *nodewisev1.Problem) error {
	if problem == nil {
		return nil
	}
	code, known := codesByReason[problem.GetReason()]
	if !known {
		code = codes.Unknown
	}
	failure := &Error{Code: code, Reason: problem.GetReason(), Message: problem.GetMessage(), Metadata: map[string]string{}}
	for name, value := range problem.GetMetadata() {
		failure.Metadata[name] = value
	}
	if missing := problem.GetMissingFields(); len(missing) > 0 {
		failure.Metadata["missingFields"] = strings.Join(missing, ",")
	}
	for _, violation := range problem.GetViolations() {
		failure.Violations = append(failure.Violations, Violation{violation.GetField(), violation.GetDescription()})
	}
	if problem.RetryDelaySeconds != nil {
		failure.delay, failure.hasDelay = time.Duration(problem.GetRetryDelaySeconds()*float64(time.Second)), true
	}
	return failure
}

// explained is the error of a call that gRPC says has failed.
func explained(ctx context.Context, err error, trailer metadata.MD, target, method string) *Error {
	given := status.Convert(err)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		given = status.FromContextError(err)
	}
	failure := &Error{Code: given.Code(), Message: given.Message(), status: given, cause: ctx.Err()}
	// Server and client count the same deadline, each by its own clock: the server's may be over a little before.
	if deadline, has := ctx.Deadline(); has && failure.cause == nil && failure.Code == codes.DeadlineExceeded && time.Until(deadline) < clockSlack {
		failure.cause = context.DeadlineExceeded
	}
	if values := trailer.Get(pushbackKey); len(values) == 1 {
		if milliseconds, err := strconv.Atoi(values[0]); err == nil && milliseconds >= 0 {
			failure.delay, failure.hasDelay = time.Duration(milliseconds)*time.Millisecond, true
		}
	}
	for _, detail := range given.Proto().GetDetails() {
		var info errdetails.ErrorInfo
		var bad errdetails.BadRequest
		var retry errdetails.RetryInfo
		switch {
		case detail.UnmarshalTo(&info) == nil:
			if info.GetDomain() == domain {
				failure.Reason, failure.Metadata = info.GetReason(), info.GetMetadata()
			}
		case detail.UnmarshalTo(&bad) == nil:
			for _, found := range bad.GetFieldViolations() {
				failure.Violations = append(failure.Violations, Violation{found.GetField(), found.GetDescription()})
			}
		case detail.UnmarshalTo(&retry) == nil:
			failure.delay, failure.hasDelay = retry.GetRetryDelay().AsDuration(), true
		}
	}
	if failure.Reason == "" {
		failure.Message = advice(failure.Code, failure.Message, target, method)
	}
	return failure
}

func advice(code codes.Code, text, target, method string) string {
	switch {
	case code == codes.Unavailable:
		return fmt.Sprintf("no answer from a Nodewise server at %s (%s). Check that it runs (`nodewise serve` prints where it listens), "+
			"that host and port are right and reachable from here, and that both sides agree on TLS", target, text)
	case code == codes.DeadlineExceeded:
		return fmt.Sprintf("%s at %s was not answered in time (%s); allow more by the context or WithTimeout", method, target, text)
	case code == codes.ResourceExhausted && strings.Contains(text, "larger than max"):
		return text + "; ask for fewer rows, use StreamPredict, or allow more by WithMaxReceiveBytes"
	case code == codes.Unimplemented:
		return fmt.Sprintf("the server at %s does not offer %s (%s)", target, method, text)
	}
	return text
}

// codesByReason has the status codes that the reasons of the catalogue imply.
var codesByReason = func() map[string]codes.Code {
	found := map[string]codes.Code{}
	for code, reasons := range map[codes.Code]string{
		codes.InvalidArgument: "INVALID_FIELD CONTRADICTORY_FACTS MALFORMED_MESSAGE LIMIT_EXCEEDED",
		codes.NotFound: "PROFILE_NOT_FOUND REVISION_NOT_FOUND EVIDENCE_NOT_FOUND ESTIMATOR_NOT_FOUND POLICY_NOT_FOUND DIAGNOSER_NOT_FOUND " +
			"SHARING_MODEL_NOT_FOUND GENERATION_NOT_FOUND TOKEN_NOT_FOUND PRIOR_NOT_FOUND",
		codes.Aborted:            "ETAG_MISMATCH GENERATION_BUSY",
		codes.AlreadyExists:      "BATCH_CONFLICT REQUEST_ID_REUSED",
		codes.FailedPrecondition: "SESSION_NOT_OPEN BATCH_OUT_OF_ORDER EVIDENCE_MISSING OBJECTIVE_UNREACHABLE UNSUPPORTED_CONFIGURATION MODEL_NOT_CACHED",
		codes.Internal: "ESTIMATOR_FAILED ESTIMATOR_INVALID_RESULT POLICY_FAILED POLICY_INVALID_RESULT READER_FAILED READER_INVALID_RESULT " +
			"DIAGNOSER_FAILED DIAGNOSER_INVALID_RESULT SHARING_MODEL_FAILED SHARING_MODEL_INVALID_RESULT INTERNAL",
		codes.Unavailable:       "REVISION_NOT_REACHED ESTIMATOR_UNAVAILABLE STORE_UNAVAILABLE COMPUTE_LOST",
		codes.ResourceExhausted: "OVERLOADED QUOTA_EXCEEDED",
		codes.Unauthenticated:   "UNAUTHENTICATED",
		codes.PermissionDenied:  "PERMISSION_DENIED",
		codes.Unimplemented:     "NOT_IMPLEMENTED",
		codes.DeadlineExceeded:  "DEADLINE_EXCEEDED ESTIMATOR_TIMEOUT",
	} {
		for reason := range strings.FieldsSeq(reasons) {
			found[reason] = code
		}
	}
	return found
}()
