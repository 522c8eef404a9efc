package nodewise

import (
	"context"

	"google.golang.org/grpc"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// Predict predicts one job, stored or given inline, on configurations that were never run, and recommends one. Read its rows by [RowsOf].
func (c *Client) Predict(ctx context.Context, request *nodewisev1.PredictRequest, options ...grpc.CallOption) (*nodewisev1.PredictResponse, error) {
	return invoke[nodewisev1.PredictResponse](ctx, c, nodewisev1.PredictionService_Predict_FullMethodName, request, options)
}

// BatchPredict predicts many jobs, or many architectures of one. A job that cannot be answered carries its error; the others are answered. Read it by
// [JobsOf].
func (c *Client) BatchPredict(ctx context.Context, request *nodewisev1.BatchPredictRequest, options ...grpc.CallOption) (*nodewisev1.BatchPredictResponse, error) {
	return invoke[nodewisev1.BatchPredictResponse](ctx, c, nodewisev1.PredictionService_BatchPredict_FullMethodName, request, options)
}

// SuggestMeasurements tells which of some configurations to measure next, best first, by what each would teach and by its cost in node-seconds.
func (c *Client) SuggestMeasurements(ctx context.Context, request *nodewisev1.SuggestMeasurementsRequest, options ...grpc.CallOption) (*nodewisev1.SuggestMeasurementsResponse, error) {
	return invoke[nodewisev1.SuggestMeasurementsResponse](ctx, c, nodewisev1.PredictionService_SuggestMeasurements_FullMethodName, request, options)
}

// ListEstimators lists the estimators that can be asked; one page of them. [Pages] gives all.
func (c *Client) ListEstimators(ctx context.Context, request *nodewisev1.ListEstimatorsRequest, options ...grpc.CallOption) (*nodewisev1.ListEstimatorsResponse, error) {
	return invoke[nodewisev1.ListEstimatorsResponse](ctx, c, nodewisev1.PredictionService_ListEstimators_FullMethodName, request, options)
}

// ListDevices lists the devices that the server's catalog knows, with the names that they go by; one page of them. [Pages] gives all.
func (c *Client) ListDevices(ctx context.Context, request *nodewisev1.ListDevicesRequest, options ...grpc.CallOption) (*nodewisev1.ListDevicesResponse, error) {
	return invoke[nodewisev1.ListDevicesResponse](ctx, c, nodewisev1.PredictionService_ListDevices_FullMethodName, request, options)
}

// ListPlugins lists the plugins that are loaded, and those that could not be; one page of them. [Pages] gives all.
func (c *Client) ListPlugins(ctx context.Context, request *nodewisev1.ListPluginsRequest, options ...grpc.CallOption) (*nodewisev1.ListPluginsResponse, error) {
	return invoke[nodewisev1.ListPluginsResponse](ctx, c, nodewisev1.PredictionService_ListPlugins_FullMethodName, request, options)
}
