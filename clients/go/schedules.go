package nodewise

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
	nodewisev1beta1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1beta1"
)

// Schedule shares a cluster among jobs. It is pure: give policy_state of the last reply, and now to repeat a decision; where that is absent, it is the
// present time.
func (c *Client) Schedule(ctx context.Context, request *nodewisev1.ScheduleRequest, options ...grpc.CallOption) (*nodewisev1.ScheduleResponse, error) {
	if request.GetNow() == nil {
		request = shallow(request)
		request.Now = timestamppb.Now()
	}
	return invoke[nodewisev1.ScheduleResponse](ctx, c, nodewisev1.ScheduleService_Schedule_FullMethodName, request, options)
}

// ListPolicies lists the policies that can be asked, with their parameters; one page of them. [Pages] gives all.
func (c *Client) ListPolicies(ctx context.Context, request *nodewisev1.ListPoliciesRequest, options ...grpc.CallOption) (*nodewisev1.ListPoliciesResponse, error) {
	return invoke[nodewisev1.ListPoliciesResponse](ctx, c, nodewisev1.ScheduleService_ListPolicies_FullMethodName, request, options)
}

// EstimateCompletion tells time, cost and risk of a job on offers of machines that can be taken away, and the offer to take.
func (c *Client) EstimateCompletion(ctx context.Context, request *nodewisev1beta1.EstimateCompletionRequest, options ...grpc.CallOption) (*nodewisev1beta1.EstimateCompletionResponse, error) {
	return invoke[nodewisev1beta1.EstimateCompletionResponse](ctx, c, nodewisev1beta1.CompletionService_EstimateCompletion_FullMethodName, request, options)
}

// EstimateRun tells of a run before its start whether it fits, and its time, cost, energy and emissions, with failures.
func (c *Client) EstimateRun(ctx context.Context, request *nodewisev1beta1.EstimateRunRequest, options ...grpc.CallOption) (*nodewisev1beta1.EstimateRunResponse, error) {
	return invoke[nodewisev1beta1.EstimateRunResponse](ctx, c, nodewisev1beta1.CompletionService_EstimateRun_FullMethodName, request, options)
}

// ReportSteps sends times of steps of a job that runs; the reply says what its recorders are asked to record.
func (c *Client) ReportSteps(ctx context.Context, request *nodewisev1beta1.ReportStepsRequest, options ...grpc.CallOption) (*nodewisev1beta1.ReportStepsResponse, error) {
	return invoke[nodewisev1beta1.ReportStepsResponse](ctx, c, nodewisev1beta1.DiagnosisService_ReportSteps_FullMethodName, request, options)
}

// PredictSharing tells what jobs keep of their solo speed on one device, set by set, and whether sharing is worth it.
func (c *Client) PredictSharing(ctx context.Context, request *nodewisev1beta1.PredictSharingRequest, options ...grpc.CallOption) (*nodewisev1beta1.PredictSharingResponse, error) {
	return invoke[nodewisev1beta1.PredictSharingResponse](ctx, c, nodewisev1beta1.SharingService_PredictSharing_FullMethodName, request, options)
}
