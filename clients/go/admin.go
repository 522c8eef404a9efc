package nodewise

import (
	"context"

	"google.golang.org/grpc"

	nodewisev1beta1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1beta1"
)

// ListGenerations returns a page of the generations of plugins, the newest first, and which jobs each serves. [Pages] gives all.
func (c *Client) ListGenerations(ctx context.Context, request *nodewisev1beta1.ListGenerationsRequest, options ...grpc.CallOption) (*nodewisev1beta1.ListGenerationsResponse, error) {
	return invoke[nodewisev1beta1.ListGenerationsResponse](ctx, c, nodewisev1beta1.AdminService_ListGenerations_FullMethodName, request, options)
}

// Reload lets another generation take over, once it was tried.
func (c *Client) Reload(ctx context.Context, request *nodewisev1beta1.ReloadRequest, options ...grpc.CallOption) (*nodewisev1beta1.ReloadResponse, error) {
	return invoke[nodewisev1beta1.ReloadResponse](ctx, c, nodewisev1beta1.AdminService_Reload_FullMethodName, request, options)
}

// SetCanary lets a generation answer a share of the jobs, once it was tried.
func (c *Client) SetCanary(ctx context.Context, request *nodewisev1beta1.SetCanaryRequest, options ...grpc.CallOption) (*nodewisev1beta1.SetCanaryResponse, error) {
	return invoke[nodewisev1beta1.SetCanaryResponse](ctx, c, nodewisev1beta1.AdminService_SetCanary_FullMethodName, request, options)
}

// Promote lets the canary answer all jobs.
func (c *Client) Promote(ctx context.Context, request *nodewisev1beta1.PromoteRequest, options ...grpc.CallOption) (*nodewisev1beta1.PromoteResponse, error) {
	return invoke[nodewisev1beta1.PromoteResponse](ctx, c, nodewisev1beta1.AdminService_Promote_FullMethodName, request, options)
}

// Rollback ends the canary; without one, it returns to the generation that was stable before.
func (c *Client) Rollback(ctx context.Context, request *nodewisev1beta1.RollbackRequest, options ...grpc.CallOption) (*nodewisev1beta1.RollbackResponse, error) {
	return invoke[nodewisev1beta1.RollbackResponse](ctx, c, nodewisev1beta1.AdminService_Rollback_FullMethodName, request, options)
}

// ListPluginStates tells how the plugins of every track fare in the process that answers.
func (c *Client) ListPluginStates(ctx context.Context, request *nodewisev1beta1.ListPluginStatesRequest, options ...grpc.CallOption) (*nodewisev1beta1.ListPluginStatesResponse, error) {
	return invoke[nodewisev1beta1.ListPluginStatesResponse](ctx, c, nodewisev1beta1.AdminService_ListPluginStates_FullMethodName, request, options)
}

// CreateToken makes a bearer token. Its text is told here alone.
func (c *Client) CreateToken(ctx context.Context, request *nodewisev1beta1.CreateTokenRequest, options ...grpc.CallOption) (*nodewisev1beta1.CreateTokenResponse, error) {
	return invoke[nodewisev1beta1.CreateTokenResponse](ctx, c, nodewisev1beta1.AdminService_CreateToken_FullMethodName, request, options)
}

// ListTokens lists all tokens, without their texts; one page of them. [Pages] gives all.
func (c *Client) ListTokens(ctx context.Context, request *nodewisev1beta1.ListTokensRequest, options ...grpc.CallOption) (*nodewisev1beta1.ListTokensResponse, error) {
	return invoke[nodewisev1beta1.ListTokensResponse](ctx, c, nodewisev1beta1.AdminService_ListTokens_FullMethodName, request, options)
}

// RevokeToken ends a token for good.
func (c *Client) RevokeToken(ctx context.Context, request *nodewisev1beta1.RevokeTokenRequest, options ...grpc.CallOption) (*nodewisev1beta1.RevokeTokenResponse, error) {
	return invoke[nodewisev1beta1.RevokeTokenResponse](ctx, c, nodewisev1beta1.AdminService_RevokeToken_FullMethodName, request, options)
}

// ListPriors lists what was learned from the store's jobs, namespace by namespace, and what it changed; one page of them. [Pages] gives all.
func (c *Client) ListPriors(ctx context.Context, request *nodewisev1beta1.ListPriorsRequest, options ...grpc.CallOption) (*nodewisev1beta1.ListPriorsResponse, error) {
	return invoke[nodewisev1beta1.ListPriorsResponse](ctx, c, nodewisev1beta1.AdminService_ListPriors_FullMethodName, request, options)
}

// SetPrior pins what a namespace learned, lets it learn again, or returns it to what it learned before.
func (c *Client) SetPrior(ctx context.Context, request *nodewisev1beta1.SetPriorRequest, options ...grpc.CallOption) (*nodewisev1beta1.SetPriorResponse, error) {
	return invoke[nodewisev1beta1.SetPriorResponse](ctx, c, nodewisev1beta1.AdminService_SetPrior_FullMethodName, request, options)
}
