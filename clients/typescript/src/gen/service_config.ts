// protos/nodewise/v1/nodewise_grpc_service_config.json, as it is there.
export const serviceConfig = {
  "methodConfig": [
    {
      "name": [
        {"service": "nodewise.v1.PredictionService", "method": "Predict"},
        {"service": "nodewise.v1.PredictionService", "method": "ListEstimators"},
        {"service": "nodewise.v1.PredictionService", "method": "ListDevices"},
        {"service": "nodewise.v1.PredictionService", "method": "ListPlugins"},
        {"service": "nodewise.v1.ProfileService", "method": "GetProfile"},
        {"service": "nodewise.v1.ProfileService", "method": "ListProfiles"},
        {"service": "nodewise.v1.ProfileService", "method": "DeleteProfile"},
        {"service": "nodewise.v1.ProfileService", "method": "UndeleteProfile"},
        {"service": "nodewise.v1.ProfileService", "method": "ListUsage"},
        {"service": "nodewise.v1.ScheduleService", "method": "ListPolicies"}
      ],
      "timeout": "10s",
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.05s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"]
      }
    },
    {
      "name": [
        {"service": "nodewise.v1.PredictionService", "method": "BatchPredict"},
        {"service": "nodewise.v1.PredictionService", "method": "SuggestMeasurements"},
        {"service": "nodewise.v1.ProfileService", "method": "AppendProfile"},
        {"service": "nodewise.v1.ProfileService", "method": "IngestBatch"},
        {"service": "nodewise.v1.ProfileService", "method": "RetractEvidence"},
        {"service": "nodewise.v1.ScheduleService", "method": "Schedule"},
        {"service": "nodewise.v1beta1.CompletionService", "method": "EstimateCompletion"},
        {"service": "nodewise.v1beta1.CompletionService", "method": "EstimateRun"},
        {"service": "nodewise.v1beta1.DiagnosisService", "method": "ReportSteps"},
        {"service": "nodewise.v1beta1.SharingService", "method": "PredictSharing"}
      ],
      "timeout": "60s",
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.05s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"]
      }
    },
    {
      "name": [
        {"service": "nodewise.v1beta1.SimulationService", "method": "Simulate"},
        {"service": "nodewise.v1beta1.PlanService", "method": "Plan"},
        {"service": "nodewise.v1beta1.DiagnosisService", "method": "Replay"},
        {"service": "nodewise.v1beta1.DiagnosisService", "method": "Diagnose"},
        {"service": "nodewise.v1beta1.EvaluationService", "method": "Backtest"}
      ],
      "timeout": "600s",
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.05s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"]
      }
    },
    {
      "name": [
        {"service": "nodewise.v1beta1.AdminService", "method": "ListGenerations"},
        {"service": "nodewise.v1beta1.AdminService", "method": "Reload"},
        {"service": "nodewise.v1beta1.AdminService", "method": "SetCanary"},
        {"service": "nodewise.v1beta1.AdminService", "method": "Promote"},
        {"service": "nodewise.v1beta1.AdminService", "method": "Rollback"},
        {"service": "nodewise.v1beta1.AdminService", "method": "ListPluginStates"},
        {"service": "nodewise.v1beta1.AdminService", "method": "ListPriors"},
        {"service": "nodewise.v1beta1.AdminService", "method": "SetPrior"}
      ],
      "timeout": "600s"
    },
    {
      "name": [
        {"service": "nodewise.v1beta1.AdminService", "method": "CreateToken"},
        {"service": "nodewise.v1beta1.AdminService", "method": "ListTokens"},
        {"service": "nodewise.v1beta1.AdminService", "method": "RevokeToken"}
      ],
      "timeout": "10s"
    },
    {
      "name": [
        {"service": "nodewise.v1.ProfileService", "method": "WatchProfiles"}
      ],
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.05s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"]
      }
    }
  ],
  "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1}
} as const;
