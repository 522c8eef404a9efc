package nodewise

import (
	"context"
	"crypto/rand"

	"google.golang.org/grpc"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// AppendProfile appends to a profile in one call and commits. An empty request_id is filled in, so that another attempt changes nothing.
func (c *Client) AppendProfile(ctx context.Context, request *nodewisev1.AppendProfileRequest, options ...grpc.CallOption) (*nodewisev1.AppendProfileResponse, error) {
	if request.GetRequestId() == "" {
		request = shallow(request)
		request.RequestId = rand.Text()
	}
	return invoke[nodewisev1.AppendProfileResponse](ctx, c, nodewisev1.ProfileService_AppendProfile_FullMethodName, request, options)
}

// IngestBatch adds one batch to a session, or asks how far it is; [Client.Ingest] does so for all that a program records.
func (c *Client) IngestBatch(ctx context.Context, request *nodewisev1.IngestBatchRequest, options ...grpc.CallOption) (*nodewisev1.IngestBatchResponse, error) {
	return invoke[nodewisev1.IngestBatchResponse](ctx, c, nodewisev1.ProfileService_IngestBatch_FullMethodName, request, options)
}

// RetractEvidence takes observations, timed phases, facts or traces out of a profile; they stay in its history. An empty request_id is filled in.
func (c *Client) RetractEvidence(ctx context.Context, request *nodewisev1.RetractEvidenceRequest, options ...grpc.CallOption) (*nodewisev1.RetractEvidenceResponse, error) {
	if request.GetRequestId() == "" {
		request = shallow(request)
		request.RequestId = rand.Text()
	}
	return invoke[nodewisev1.RetractEvidenceResponse](ctx, c, nodewisev1.ProfileService_RetractEvidence_FullMethodName, request, options)
}

// GetProfile reads a profile as it is or was; pages after the first hold further observations alone. [Pages] gives all.
func (c *Client) GetProfile(ctx context.Context, request *nodewisev1.GetProfileRequest, options ...grpc.CallOption) (*nodewisev1.GetProfileResponse, error) {
	return invoke[nodewisev1.GetProfileResponse](ctx, c, nodewisev1.ProfileService_GetProfile_FullMethodName, request, options)
}

// ListProfiles lists profiles by name, without their content; one page of them. [Pages] gives all.
func (c *Client) ListProfiles(ctx context.Context, request *nodewisev1.ListProfilesRequest, options ...grpc.CallOption) (*nodewisev1.ListProfilesResponse, error) {
	return invoke[nodewisev1.ListProfilesResponse](ctx, c, nodewisev1.ProfileService_ListProfiles_FullMethodName, request, options)
}

// DeleteProfile deletes a profile if its etag is that of the request; "*" = whatever it is. Until its purge time it can return.
func (c *Client) DeleteProfile(ctx context.Context, request *nodewisev1.DeleteProfileRequest, options ...grpc.CallOption) (*nodewisev1.DeleteProfileResponse, error) {
	return invoke[nodewisev1.DeleteProfileResponse](ctx, c, nodewisev1.ProfileService_DeleteProfile_FullMethodName, request, options)
}

// UndeleteProfile brings a deleted profile back as it was.
func (c *Client) UndeleteProfile(ctx context.Context, request *nodewisev1.UndeleteProfileRequest, options ...grpc.CallOption) (*nodewisev1.UndeleteProfileResponse, error) {
	return invoke[nodewisev1.UndeleteProfileResponse](ctx, c, nodewisev1.ProfileService_UndeleteProfile_FullMethodName, request, options)
}

// ListUsage lists what namespaces store, in bytes, beside their quotas; one page of them. [Pages] gives all.
func (c *Client) ListUsage(ctx context.Context, request *nodewisev1.ListUsageRequest, options ...grpc.CallOption) (*nodewisev1.ListUsageResponse, error) {
	return invoke[nodewisev1.ListUsageResponse](ctx, c, nodewisev1.ProfileService_ListUsage_FullMethodName, request, options)
}
